// Snowflake IDs with pg-promise: as strings, batches, parameters.
//
// Packages: nodejs npm
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import pgPromise from "pg-promise";
import { assertExact, assertRounded, ids, parseExactly } from "./exact.mjs";

const pgp = pgPromise();
const db = pgp({});
await db.none("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)");

// The ID comes back as a string, and can be a parameter as a string or as a BigInt.
const { id } = await db.one("INSERT INTO orders (item) VALUES ($1) RETURNING id", ["a lamp"]);
console.log(`order ${id}`);
assert.equal(typeof id, "string");
for (const parameter of [id, BigInt(id)]) assert.equal((await db.one("SELECT item FROM orders WHERE id = $1", parameter)).item, "a lamp");
assert.equal((await db.one("SELECT item FROM orders WHERE id IN ($1:csv)", [[id]])).item, "a lamp");

// A batch is one INSERT, and reads its keys in the order of its rows.
const insert = (rows, columns) => db.many(`${pgp.helpers.insert(rows, columns, "orders")} RETURNING id, item`);
const batch = await insert([{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }], ["item"]);
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.deepEqual(batch.map((row) => row.id), batch.map((row) => row.id).sort());

// Exact as rows, in a relation and in an aggregate.
assertExact((await insert(ids.map((id) => ({ id, item: "exact" })), ["id", "item"])).map((row) => row.id));
await db.none("CREATE TABLE lines AS SELECT id AS order_id FROM orders WHERE item = 'exact'");
assertExact((await db.many("SELECT id FROM orders JOIN lines ON order_id = id")).map((row) => row.id));
assertExact((await db.one("SELECT array_agg(order_id) AS ids FROM lines")).ids);

// The trap: JSON that the server builds is rounded, unless integers of more than 15 digits are parsed as strings.
const json = "SELECT json_agg(order_id) AS ids FROM lines";
assertRounded((await db.one(json)).ids);
pgp.pg.types.setTypeParser(pgp.pg.types.builtins.JSON, parseExactly);
assertExact((await db.one(json)).ids);
await db.$pool.end();
