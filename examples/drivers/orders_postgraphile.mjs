// Snowflake IDs with PostGraphile 4, a GraphQL server that builds JSON in its queries: it casts them to text.
//
// Packages: nodejs npm
// Not in script/test: it installs 490 MB with the other tools for JavaScript.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import { graphql } from "graphql";
import pg from "pg";
import { createPostGraphileSchema, withPostGraphileContext } from "postgraphile";
import { assertExact, ids } from "./exact.mjs";

const pool = new pg.Pool();
await pool.query(`
  CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL);
  CREATE TABLE lines (order_id bigint PRIMARY KEY REFERENCES orders);`);
await pool.query("INSERT INTO orders SELECT *, 'exact' FROM unnest($1::bigint[])", [ids]);
await pool.query("INSERT INTO lines SELECT id FROM orders");

const schema = await createPostGraphileSchema(pool, "public");
const run = async (source) => {
  const { data, errors } = await withPostGraphileContext({ pgPool: pool }, (context) => graphql(schema, source, null, context));
  assert.equal(errors, undefined);
  return JSON.parse(JSON.stringify(data));
};

// Exact as rows, in a relation, and as an argument.  GraphQL's type of a bigint, BigInt, is a string in JSON.
const { allOrders } = await run("{ allOrders { nodes { id lineByOrderId { orderId } } } }");
assertExact(allOrders.nodes.map((order) => order.id));
assertExact(allOrders.nodes.map((order) => order.lineByOrderId.orderId));
assert.equal((await run(`{ orderById(id: "${ids[2]}") { item } }`)).orderById.item, "exact");

// A mutation returns the new key.
const { createOrder } = await run('mutation { createOrder(input: { order: { item: "a lamp" } }) { order { id } } }');
console.log(`order ${createOrder.order.id}`);
assert.ok(BigInt(createOrder.order.id) > 2n ** 60n);
await pool.end();
