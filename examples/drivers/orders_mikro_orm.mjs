// Snowflake IDs with MikroORM 6: the default in the entity, the schema generator, migrations, batches.
//
// Packages: nodejs npm
// Not in script/test: it installs 490 MB with the other tools for JavaScript.
// Needs Node.js 20.
//
// With decorators, in TypeScript, the key is
//     @PrimaryKey({ type: "bigint", autoincrement: false, defaultRaw: "snowflake_id()" }) id!: bigint;
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync } from "node:fs";
import { Migrator } from "@mikro-orm/migrations";
import { EntitySchema, MikroORM, raw } from "@mikro-orm/postgresql";
import { assertExact, ids } from "./exact.mjs";

// Connect with entities whose keys are declared as that.
const migrations = mkdtempSync(`${import.meta.dirname}/node_modules/.mikro_orm`);
const connect = (id) => MikroORM.init({
  host: process.env.PGHOST, port: Number(process.env.PGPORT ?? 5432), user: process.env.PGUSER, dbName: process.env.PGDATABASE,
  extensions: [Migrator], migrations: { path: migrations, emit: "js", silent: true }, allowGlobalContext: true,
  entities: [
    new EntitySchema({ name: "Order", tableName: "orders", properties: {
      id, item: { type: "text" }, lines: { kind: "1:m", entity: "Line", mappedBy: "order" },
    } }),
    new EntitySchema({ name: "Line", tableName: "lines", properties: { id, order: { kind: "m:1", entity: "Order" } } }),
  ],
});
const plan = (orm) => orm.schema.getUpdateSchemaSQL({ wrap: false });

// The migration has the default.  Once it has run, nothing is left to do.
let orm = await connect(
  { type: "bigint", primary: true, autoincrement: false, defaultRaw: "snowflake_id()" },
);
assert.match((await orm.migrator.createMigration()).diff.up.join(), /"id" bigint not null default snowflake_id\(\)/);
await orm.migrator.up();
assert.equal(await plan(orm), "");
assert.deepEqual((await orm.migrator.createMigration()).diff.up, []);
assert.equal(readdirSync(migrations).filter((name) => name.endsWith(".js")).length, 1);

// The ID comes back as a BigInt, by RETURNING.  MikroORM writes it into JSON as a string.
const order = orm.em.create("Order", { item: "a lamp" });
await orm.em.flush();
console.log(`order ${order.id}`);
assert.equal(typeof order.id, "bigint");
assert.equal(JSON.parse(JSON.stringify(order)).id, String(order.id));

// A batch is one INSERT, and reads its keys in the order of its rows.
const batch = ["a chair", "a bed", "a desk"].map((item) => orm.em.create("Order", { item }));
await orm.em.flush();
assert.ok(batch.every((row, n) => n === 0 || row.id > batch[n - 1].id));

// Exact as rows, in a relation and in an aggregate.
for (const id of ids.map(BigInt)) orm.em.create("Line", { id, order: orm.em.create("Order", { id, item: "exact" }) });
await orm.em.flush();
for (const strategy of ["joined", "select-in"]) {
  const rows = await orm.em.fork().find("Order", { item: "exact" }, { populate: ["lines"], strategy });
  assertExact(rows.map((row) => row.id));
  assertExact(rows.flatMap((row) => row.lines.getItems().map((line) => line.order.id)));
}
assert.equal((await orm.em.createQueryBuilder("Line").select(raw("max(id) as last")).execute("get")).last, ids[2]);
await orm.close();

// The trap: MikroORM takes a default that contains "nextval" for a bigserial, and plans a change of type each time.
orm = await connect({ type: "bigint", primary: true, autoincrement: false, defaultRaw: "snowflake_nextval()" });
for (let time = 1; time <= 2; time++) {
  assert.match(await plan(orm), /alter table "orders" alter column "id" type bigint using \("id"::bigint\)/);
  await orm.schema.updateSchema();
}
await orm.close();

// And without autoincrement: false, it creates a bigserial, and keys are 1, 2, 3.
orm = await connect({ type: "bigint", primary: true, defaultRaw: "snowflake_id()" });
assert.match(await orm.schema.getCreateSchemaSQL(), /create table "orders" \("id" bigserial/);
await orm.close();
