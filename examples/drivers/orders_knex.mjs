// Snowflake IDs with Knex: a migration, batches, and an alteration that drops the default.
//
// Packages: nodejs npm
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import Knex from "knex";
import { assertExact, ids } from "./exact.mjs";

const knex = Knex({ client: "pg", connection: {} });

// Migrations, which are files in a project.  A default that is not knex.raw() is quoted as a text.
const migrations = {
  orders: {
    up: (knex) =>
      knex.schema.createTable("orders", (table) => {
        table.bigInteger("id").primary().defaultTo(knex.raw("snowflake_id()"));
        table.text("item").notNullable();
      }),
    down: (knex) => knex.schema.dropTable("orders"),
  },
  customers: {
    up: (knex) => knex.schema.alterTable("orders", (table) => table.text("customer")),
    down: (knex) => knex.schema.alterTable("orders", (table) => table.dropColumn("customer")),
  },
};
const migrationSource = {
  getMigrations: async () => Object.keys(migrations),
  getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name],
};
await knex.migrate.latest({ migrationSource });
const columnDefault = async (table) =>
  (await knex("information_schema.columns").where({ table_name: table, column_name: "id" }).first("column_default")).column_default;
assert.equal(await columnDefault("orders"), "snowflake_id()");

// The ID comes back as a string.
const [{ id }] = await knex("orders").insert({ item: "a lamp" }).returning("id");
console.log(`order ${id}`);
assert.equal(typeof id, "string");
assert.equal((await knex("orders").where({ id }).first("item")).item, "a lamp");

// A batch reads its keys by RETURNING, in the order of its rows.
const batch = await knex("orders").insert([{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }], ["id", "item"]);
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.deepEqual(batch.map((row) => row.id), batch.map((row) => row.id).sort());
// A number is rounded, unless the ID is a multiple of 256.
const rounded = batch.find((row) => BigInt(row.id) % 256n !== 0n);
assert.equal(await knex("orders").where({ id: Number(rounded.id), item: rounded.item }).first(), undefined);
const many = await knex.batchInsert("orders", Array.from({ length: 25 }, (_, n) => ({ item: `item ${n}` })), 10).returning(["id", "item"]);
assert.deepEqual(many.map((row) => row.item), Array.from({ length: 25 }, (_, n) => `item ${n}`));
assert.deepEqual(many.map((row) => row.id), many.map((row) => row.id).sort());

// Leave the key out, or undefined: null is inserted as NULL.
const mixed = await knex("orders").insert([{ id: undefined, item: "a shelf" }, { id: "5", item: "a rug" }], "id");
assert.ok(BigInt(mixed[0].id) > 2n ** 60n);
await assert.rejects(knex("orders").insert({ id: null, item: "a shelf" }), { code: "23502" });

// Exact as rows, in a relation and in an aggregate.
await knex.schema.createTable("lines", (table) => table.bigInteger("order_id").references("orders.id"));
assertExact((await knex("orders").insert(ids.map((id) => ({ id, item: "exact" })), "id")).map((row) => row.id));
await knex("lines").insert(ids.map((id) => ({ order_id: id })));
assertExact((await knex("orders").join("lines", "order_id", "orders.id").select("orders.id")).map((row) => row.id));
assert.equal((await knex("lines").max("order_id as last").first()).last, ids[2]);

// A default as text.
assert.match(knex.schema.createTable("quoted", (table) => table.bigInteger("id").defaultTo("snowflake_id()")).toString(), /default 'snowflake_id\(\)'/);

// The trap: .alter() sets a column to the new definition, and drops a default that is not repeated
// there.
await knex.schema.alterTable("orders", (table) => table.bigInteger("id").alter({ alterNullable: false }));
assert.equal(await columnDefault("orders"), null);
await knex.schema.alterTable("orders", (table) => table.bigInteger("id").defaultTo(knex.raw("snowflake_id()")).alter({ alterNullable: false }));
assert.equal(await columnDefault("orders"), "snowflake_id()");
await knex.destroy();
