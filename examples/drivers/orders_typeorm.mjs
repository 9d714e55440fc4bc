// Snowflake IDs with TypeORM: the default in the entity, synchronize and generated migrations, batches.
//
// Packages: nodejs npm
// Not in script/test: it installs 490 MB with the other tools for JavaScript.
// Needs Node.js 20.
//
// With decorators, in TypeScript, the column is
//     @PrimaryColumn({ type: "bigint", default: () => "snowflake_id()" }) id: string;
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import { DataSource, EntitySchema } from "typeorm";
import { assertExact, ids } from "./exact.mjs";

// Connect with an entity whose key is declared as that.
async function connect(id, relation = {}, ...others) {
  const entity = new EntitySchema({ name: "Order", tableName: "orders", columns: { id, item: { type: "text" } }, ...relation });
  return new DataSource({
    type: "postgres", host: process.env.PGHOST, username: process.env.PGUSER, database: process.env.PGDATABASE, entities: [entity, ...others],
  }).initialize();
}
// The statements that migration:generate would write now.
const plan = async (source) => (await source.driver.createSchemaBuilder().log()).upQueries.map((query) => query.query);
const columnDefault = async (source) =>
  (await source.query("SELECT column_default FROM information_schema.columns WHERE (table_name, column_name) = ('orders', 'id')"))[0].column_default;

let source = await connect(
  { type: "bigint", primary: true, default: () => "snowflake_id()" },
);
assert.match((await plan(source)).join(), /"id" bigint NOT NULL DEFAULT snowflake_id\(\)/);
await source.synchronize();
assert.equal(await columnDefault(source), "snowflake_id()");

// Once the table has it, nothing is planned.
assert.deepEqual(await plan(source), []);

// The ID comes back as a string, by RETURNING.
const orders = source.getRepository("Order");
const order = await orders.save({ item: "a lamp" });
console.log(`order ${order.id}`);
assert.equal(typeof order.id, "string");
assert.equal((await orders.findOneBy({ id: order.id })).item, "a lamp");

// A batch reads its keys by RETURNING, in the order of its rows.
const batch = await orders.save([{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }]);
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.deepEqual(batch.map((row) => row.id), batch.map((row) => row.id).sort());
for (const row of batch) assert.equal((await orders.findOneBy({ id: row.id })).item, row.item);
const inserted = await orders.insert([{ item: "a shelf" }, { item: "a rug" }]);
assert.ok(BigInt(inserted.identifiers[0].id) < BigInt(inserted.identifiers[1].id));

// Exact as rows, in a relation and in an aggregate.
await source.destroy();
source = await connect(
  { type: "bigint", primary: true, default: () => "snowflake_id()" },
  { relations: { lines: { type: "one-to-many", target: "Line", inverseSide: "order" } } },
  new EntitySchema({
    name: "Line", tableName: "lines", columns: { id: { type: "bigint", primary: true } },
    relations: { order: { type: "many-to-one", target: "Order", joinColumn: true } },
  }),
);
await source.synchronize();
const related = source.getRepository("Order");
await related.save(ids.map((id) => ({ id, item: "exact" })));
await source.getRepository("Line").save(ids.map((id) => ({ id, order: { id } })));
for (const relationLoadStrategy of ["join", "query"]) {
  const found = await related.find({ where: { item: "exact" }, relations: { lines: { order: true } }, relationLoadStrategy });
  assertExact(found.map((row) => row.id));
  assertExact(found.map((row) => row.lines[0].order.id));
}
assert.equal((await related.createQueryBuilder().select("max(id)", "last").getRawOne()).last, ids[2]);
await source.query("DROP TABLE lines; DELETE FROM orders WHERE item = 'exact'");
await source.destroy();

// The trap: with "generated", which @PrimaryGeneratedColumn("increment") sets, a migration creates
// a sequence, and drops the default; then INSERT fails, and the next migration sets the sequence's.
source = await connect({ type: "bigint", primary: true, generated: true });
assert.deepEqual(await plan(source), [
  `CREATE SEQUENCE IF NOT EXISTS "orders_id_seq" OWNED BY "orders"."id"`,
  `ALTER TABLE "orders" ALTER COLUMN "id" SET DEFAULT nextval('"orders_id_seq"')`,
  `ALTER TABLE "orders" ALTER COLUMN "id" DROP DEFAULT`,
]);
await source.synchronize();
assert.equal(await columnDefault(source), null);
await assert.rejects(source.getRepository("Order").save({ item: "a shelf" }), /null value in column "id"/);
await source.destroy();

// The declaration above repairs it.
source = await connect({ type: "bigint", primary: true, default: () => "snowflake_id()" });
await source.synchronize();
assert.equal(await columnDefault(source), "snowflake_id()");
await source.query("DROP SEQUENCE orders_id_seq");
await source.destroy();

// With both, a migration sets the sequence's default, and INSERT takes 1, 2, 3 from it without an error.
source = await connect({ type: "bigint", primary: true, generated: true, default: () => "snowflake_id()" });
console.log((await plan(source)).join("\n"));
await source.synchronize();
assert.equal(await columnDefault(source), "nextval('orders_id_seq'::regclass)");
assert.equal((await source.getRepository("Order").save({ item: "a shelf" })).id, "1");
await source.destroy();
