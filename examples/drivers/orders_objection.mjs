// Snowflake IDs with Objection: models, graphs, batches.
//
// Packages: nodejs npm
//
// Objection uses Knex, whose migrations are in orders_knex.mjs.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import Knex from "knex";
import { Model } from "objection";
import { assertExact, ids } from "./exact.mjs";

const knex = Knex({ client: "pg", connection: {} });
Model.knex(knex);
const key = (table) => table.bigInteger("id").primary().defaultTo(knex.raw("snowflake_id()"));
await knex.schema.createTable("orders", (table) => key(table) && table.text("item"));
await knex.schema.createTable("lines", (table) => key(table) && table.bigInteger("order_id").references("orders.id"));

class Line extends Model {
  static tableName = "lines";
}
class Order extends Model {
  static tableName = "orders";
  static relationMappings = {
    lines: { relation: Model.HasManyRelation, modelClass: Line, join: { from: "orders.id", to: "lines.order_id" } },
  };
}

// The ID comes back as a string, by RETURNING, and so do those of a graph.
const order = await Order.query().insertGraph({ item: "a lamp", lines: [{}, {}] });
console.log(`order ${order.id} with lines ${order.lines.map((line) => line.id)}`);
assert.equal(typeof order.id, "string");
assert.ok(order.lines.every((line) => line.order_id === order.id && line.id > order.id));

// A batch is one INSERT, and reads its keys in the order of its rows.
const batch = await Order.query().insert([{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }]);
assert.deepEqual(batch.map((row) => row.id), batch.map((row) => row.id).sort());
for (const row of batch) assert.equal((await Order.query().findById(row.id)).item, row.item);

// Exact as rows, in a relation and in an aggregate.
await Order.query().insertGraph(ids.map((id) => ({ id, item: "exact", lines: [{ id }] })));
for (const fetch of ["withGraphFetched", "withGraphJoined"]) {
  const rows = await Order.query().where("item", "exact")[fetch]("lines");
  assertExact(rows.map((row) => row.id));
  assertExact(rows.flatMap((row) => row.lines.map((line) => line.order_id)));
}
assert.equal((await Line.query().max("order_id as last").first()).last, ids[2]);
await knex.destroy();
