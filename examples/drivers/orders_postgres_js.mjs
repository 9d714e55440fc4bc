// Snowflake IDs with postgres.js: as strings, as BigInt, batches; and sno.
//
// Packages: nodejs npm
//
// postgres.js returns a bigint as a string.  With types: { bigint: postgres.BigInt }, it is a
// BigInt.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import postgres from "postgres";
import { assertExact, assertRounded, ids, parseExactly } from "./exact.mjs";

const sql = postgres();
await sql`CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)`;

// The ID comes back as a string, and can be a parameter as a string or as a BigInt.
const [{ id }] = await sql`INSERT INTO orders (item) VALUES ('a lamp') RETURNING id`;
console.log(`order ${id}`);
assert.equal(typeof id, "string");
assert.equal((await sql`SELECT item FROM orders WHERE id = ${id}`)[0].item, "a lamp");
assert.equal((await sql`SELECT item FROM orders WHERE id = ${BigInt(id)}`)[0].item, "a lamp");

// A batch reads its keys by RETURNING, in the order of its rows.  Leave the key out of the objects.
const rows = [{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }];
const batch = await sql`INSERT INTO orders ${sql(rows)} RETURNING id, item`;
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.deepEqual(batch.map((row) => row.id), batch.map((row) => row.id).sort());

// As BigInt.
const exact = postgres({ types: { bigint: postgres.BigInt } });
const [order] = await exact`INSERT INTO orders (item) VALUES ('a shelf') RETURNING id`;
assert.equal(typeof order.id, "bigint");
assert.equal((await exact`SELECT item FROM orders WHERE id = ${order.id}`)[0].item, "a shelf");
assert.equal(typeof (await exact`SELECT ARRAY[id] AS ids FROM orders`)[0].ids[0], "bigint");
assert.equal((await exact`SELECT item FROM orders WHERE id IN ${exact([order.id])}`)[0].item, "a shelf");

// The trap: an array of BigInt is no parameter, an array of strings is.
await assert.rejects(exact`SELECT item FROM orders WHERE id = ANY(${[order.id]})`, { name: "PostgresError" });
assert.equal((await exact`SELECT item FROM orders WHERE id = ANY(${[String(order.id)]})`)[0].item, "a shelf");
assert.throws(() => JSON.stringify(order), TypeError); // JSON has no BigInt
await exact.end();

// And a number is rounded, as everywhere, unless the ID is a multiple of 256.
const rounded = batch.find((row) => BigInt(row.id) % 256n !== 0n);
assert.notEqual(BigInt(Number(rounded.id)), BigInt(rounded.id));
assert.equal((await sql`SELECT item FROM orders WHERE id = ${Number(rounded.id)}`).filter((row) => row.item === rounded.item).length, 0);

// Exact as rows, in a relation and in an aggregate.  JSON that the server has built needs a parser.
await sql`INSERT INTO orders ${sql(ids.map((id) => ({ id, item: "exact" })))}`;
await sql`CREATE TABLE lines AS SELECT id AS order_id FROM orders WHERE item = 'exact'`;
assertExact((await sql`SELECT id FROM orders JOIN lines ON order_id = id`).map((row) => row.id));
assertExact((await sql`SELECT array_agg(order_id) AS ids FROM lines`)[0].ids);
assertRounded((await sql`SELECT json_agg(order_id) AS ids FROM lines`)[0].ids);
const parsing = postgres({
  types: { json: { to: 114, from: [114, 3802], serialize: JSON.stringify, parse: parseExactly } },
});
const [parsed] = await parsing`SELECT json_agg(order_id) AS ids, to_jsonb(array_agg(order_id)) AS binary FROM lines`;
assertExact(parsed.ids);
assertExact(parsed.binary);
await parsing.end();

// sno: text both ways, also in arrays.
const [event] = await sql`SELECT sno_nextval() AS id, ARRAY[sno_nextval()] AS ids`;
console.log(`event ${event.id}`);
assert.match(event.id, /^[2-9a-x]{16}$/);
assert.match(event.ids[0], /^[2-9a-x]{16}$/);
assert.equal((await sql`SELECT unnest(${[event.id]}::sno[]) AS id`)[0].id, event.id);
await sql.end();
