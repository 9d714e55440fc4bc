// Snowflake IDs with Kysely: a migration, types, batches.
//
// Packages: nodejs npm
// Needs Node.js 20.
//
// In TypeScript, the table is declared as
//     interface Database { orders: { id: Generated<string>; item: string } }
// where Generated says that INSERT can leave the key out, and string is the type that node-postgres
// returns.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import { Kysely, Migrator, PostgresDialect, sql } from "kysely";
import { jsonArrayFrom } from "kysely/helpers/postgres";
import pg from "pg";
import { assertExact, assertRounded, ids, parseExactly } from "./exact.mjs";

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });

// Migrations, which are files in a project.  A default that is not sql`` is quoted as a text.
const migrations = {
  orders: {
    up: (db) =>
      db.schema
        .createTable("orders")
        .addColumn("id", "bigint", (column) => column.primaryKey().defaultTo(sql`snowflake_id()`))
        .addColumn("item", "text", (column) => column.notNull())
        .execute(),
  },
  types: { up: (db) => db.schema.alterTable("orders").alterColumn("id", (column) => column.setDataType("bigint")).execute() },
};
const { error } = await new Migrator({ db, provider: { getMigrations: async () => migrations } }).migrateToLatest();
assert.equal(error, undefined);

// The default is kept, also by a migration that alters the type.
const columnDefault = await sql`SELECT column_default FROM information_schema.columns WHERE (table_name, column_name) = ('orders', 'id')`.execute(db);
assert.equal(columnDefault.rows[0].column_default, "snowflake_id()");

// The ID comes back as a string.
const { id } = await db.insertInto("orders").values({ item: "a lamp" }).returning("id").executeTakeFirstOrThrow();
console.log(`order ${id}`);
assert.equal(typeof id, "string");
assert.equal((await db.selectFrom("orders").select("item").where("id", "=", id).executeTakeFirstOrThrow()).item, "a lamp");

// A batch reads its keys by RETURNING, in the order of its rows.
const batch = await db.insertInto("orders").values([{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }]).returning(["id", "item"]).execute();
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.deepEqual(batch.map((row) => row.id), batch.map((row) => row.id).sort());

// Exact as rows, in a relation and in an aggregate.
await db.schema.createTable("lines").addColumn("order_id", "bigint", (column) => column.references("orders.id")).execute();
assertExact((await db.insertInto("orders").values(ids.map((id) => ({ id, item: "exact" }))).returning("id").execute()).map((row) => row.id));
await db.insertInto("lines").values(ids.map((id) => ({ order_id: id }))).execute();
assertExact((await db.selectFrom("orders").innerJoin("lines", "order_id", "id").select("id").execute()).map((row) => row.id));
assert.equal((await db.selectFrom("lines").select((eb) => eb.fn.max("order_id").as("last")).executeTakeFirst()).last, ids[2]);

// The trap: jsonArrayFrom() and jsonObjectFrom() build JSON in the query, and its numbers are rounded.  Cast the keys.
const orders = (key) => db.selectFrom("orders").where("item", "=", "exact").select((eb) => ["id",
  jsonArrayFrom(eb.selectFrom("lines").whereRef("order_id", "=", "id").select(key)).as("lines")]).execute();
const related = (rows) => rows.flatMap((row) => row.lines.map((line) => line.order_id));
assertRounded(related(await orders("order_id")));
assertExact(related(await orders(
  (eb) => eb.cast("order_id", "text").as("order_id"),
)));
// Or parse integers of more than 15 digits as strings.
pg.types.setTypeParser(pg.types.builtins.JSON, parseExactly);
assertExact(related(await orders("order_id")));

// The traps: without returning() there is no key, since insertId is for MySQL ...
assert.equal((await db.insertInto("orders").values({ item: "a shelf" }).executeTakeFirstOrThrow()).insertId, undefined);

// ... and a default as text is quoted.
await assert.rejects(
  db.schema.createTable("quoted").addColumn("id", "bigint", (column) => column.defaultTo("snowflake_id()")).execute(),
  /invalid input syntax for type bigint/,
);
await db.destroy();
