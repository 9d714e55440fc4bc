// Snowflake IDs with Slonik 46: as BigInt, batches, a parser of JSON.
//
// Packages: nodejs npm
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import { createPool, createTypeParserPreset, sql } from "slonik";
import { assertExact, assertRounded, ids, parseExactly } from "./exact.mjs";

const { PGUSER, PGHOST, PGPORT, PGDATABASE } = process.env;
const url = `postgres://${PGUSER}@${encodeURIComponent(PGHOST)}:${PGPORT}/${PGDATABASE}`;
const pool = await createPool(url);
await pool.query(sql.unsafe`CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)`);

// The ID comes back as a BigInt, and can be a parameter as a BigInt or as a string.
const id = await pool.oneFirst(sql.unsafe`INSERT INTO orders (item) VALUES ('a lamp') RETURNING id`);
console.log(`order ${id}`);
assert.equal(typeof id, "bigint");
for (const parameter of [id, String(id)]) assert.equal(await pool.oneFirst(sql.unsafe`SELECT item FROM orders WHERE id = ${parameter}`), "a lamp");

// A batch is one INSERT, and reads its keys in the order of its rows.
const insert = (rows) => pool.many(sql.unsafe`INSERT INTO orders SELECT * FROM ${sql.unnest(rows, ["int8", "text"])} RETURNING id, item`);
const batch = await pool.many(sql.unsafe`
  INSERT INTO orders (item) SELECT * FROM ${sql.unnest([["a chair"], ["a bed"], ["a desk"]], ["text"])} RETURNING id, item`);
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.ok(batch.every((row, n) => n === 0 || row.id > batch[n - 1].id));

// Exact as rows, in a relation and in an aggregate.
assertExact((await insert(ids.map((id) => [id, "exact"]))).map((row) => row.id));
await pool.query(sql.unsafe`CREATE TABLE lines AS SELECT id AS order_id FROM orders WHERE item = 'exact'`);
assertExact(await pool.manyFirst(sql.unsafe`SELECT id FROM orders JOIN lines ON order_id = id`));
assertExact(await pool.oneFirst(sql.unsafe`SELECT array_agg(order_id) FROM lines`));

// The trap: JSON that the server builds is rounded, unless integers of more than 15 digits are parsed as strings.
const json = sql.unsafe`SELECT json_agg(order_id) FROM lines`;
assertRounded(await pool.oneFirst(json));
const parsing = await createPool(url, { typeParsers: [...createTypeParserPreset(), { name: "json", parse: parseExactly }] });
assertExact(await parsing.oneFirst(json));
await Promise.all([pool.end(), parsing.end()]);
