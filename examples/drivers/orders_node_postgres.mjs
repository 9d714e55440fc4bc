// Snowflake IDs with node-postgres: as strings, as BigInt, and as text in URLs; batches.
//
// Packages: nodejs npm
//
// A JavaScript number holds 53 bits, and so no ID of the layout "twitter" (the layout
// "javascript" has IDs that it holds).  node-postgres returns a bigint as a string, which is exact.
// Before this runs, `npm ci` in this directory installs node-postgres.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import pg from "pg";
import { assertExact, assertRounded, ids as exact, parseExactly } from "./exact.mjs";

const client = new pg.Client();
await client.connect();
await client.query("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)");

// The ID comes back as a string.
const inserted = await client.query("INSERT INTO orders (item) VALUES ($1) RETURNING id", ["a lamp"]);
const id = inserted.rows[0].id;
console.log(`order ${id}`);
assert.equal(typeof id, "string");
assert.ok(BigInt(id) > 2n ** 60n);

// With a number the last digits are wrong.
assert.ok(!Number.isSafeInteger(Number(id)));

// IDs of the layout "javascript" are numbers that hold them exactly.
const short = (await client.query("SELECT snowflake_encode('2089-09-06', 31, 127, 'javascript') AS id")).rows[0].id;
assert.ok(Number.isSafeInteger(Number(short)));

// Sent back to the server unchanged.
const found = await client.query("SELECT item, snowflake_timestamp(id) AS ordered_at FROM orders WHERE id = $1", [id]);
console.log(`${found.rows[0].item}, ordered at ${found.rows[0].ordered_at.toISOString()}`);
assert.equal(found.rows[0].item, "a lamp");

// In URLs and in JSON: 13 characters, which sort as the IDs do.
const text = (await client.query("SELECT snowflake_to_base32($1) AS text", [id])).rows[0].text;
console.log(`/orders/${text}`);
assert.match(text, /^[0-9a-hjkmnp-tv-z]{13}$/);
const byText = await client.query("SELECT id FROM orders WHERE id = snowflake_from_base32($1)", [JSON.parse(JSON.stringify({ text })).text]);
assert.equal(byText.rows[0].id, id);

// A batch reads its keys by RETURNING, in the order of its rows.
const batch = await client.query("INSERT INTO orders (item) SELECT * FROM unnest($1::text[]) RETURNING id, item", [["a chair", "a bed", "a desk"]]);
assert.deepEqual(batch.rows.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.deepEqual(batch.rows.map((row) => row.id), batch.rows.map((row) => row.id).sort());

// Exact as rows, in a relation and in an aggregate.
await client.query("CREATE TABLE lines (order_id bigint NOT NULL REFERENCES orders)");
const related = (await client.query(`
  WITH exact AS (INSERT INTO orders (id, item) SELECT *, 'exact' FROM unnest($1::bigint[]) RETURNING id)
  INSERT INTO lines SELECT id FROM exact RETURNING order_id`, [exact])).rows;
assertExact(related.map((row) => row.order_id));
assertExact((await client.query("SELECT id FROM orders JOIN lines ON order_id = id")).rows.map((row) => row.id));
assertExact((await client.query("SELECT array_agg(id) AS ids FROM orders WHERE item = 'exact'")).rows[0].ids);

// The trap: node-postgres parses JSON that the server has built, and rounds IDs.  Cast them, or set another parser.
const json = "SELECT json_agg(order_id) AS ids, json_agg(order_id::text) AS texts, to_jsonb(array_agg(order_id)) AS binary FROM lines";
const { ids: parsed, texts, binary } = (await client.query(json)).rows[0];
assertRounded(parsed);
assertRounded(binary);
assertExact(texts);
pg.types.setTypeParser(pg.types.builtins.JSON, parseExactly);
pg.types.setTypeParser(pg.types.builtins.JSONB, parseExactly);
const reparsed = (await client.query(json)).rows[0];
for (const list of [reparsed.ids, reparsed.texts, reparsed.binary]) assertExact(list);
await client.query("DROP TABLE lines; DELETE FROM orders WHERE item = 'exact'");

// IDs fetched ahead, and rows of them in one statement.
const ids = (await client.query("SELECT snowflake_nextvals(1000) AS id")).rows.map((row) => row.id);
await client.query("INSERT INTO orders (id, item) SELECT *, 'a desk' FROM unnest($1::bigint[])", [ids]);
const count = (await client.query("SELECT count(*) FROM orders WHERE id > $1", [id])).rows[0].count;
assert.equal(count, "1003");

// A parser of int8 makes IDs BigInt.  Parameters can be BigInt as well.
pg.types.setTypeParser(pg.types.builtins.INT8, BigInt);
const asBigInt = (await client.query("SELECT id, ARRAY[id] AS ids FROM orders WHERE id = $1", [BigInt(id)])).rows[0];
assert.equal(asBigInt.id, BigInt(id));
assert.deepEqual(asBigInt.ids, [id]); // an array of bigint has a parser of its own

// The trap: a parser that makes numbers, as it is often recommended for count(*), rounds IDs.  The lookup finds no row,
// or that of another ID.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
const whole = batch.rows.find((row) => BigInt(row.id) % 256n !== 0n).id; // a multiple of 256 is not rounded
const rounded = (await client.query("SELECT id FROM orders WHERE id = $1", [whole])).rows[0].id;
console.log(`${whole} as a number: ${rounded}`);
assert.notEqual(String(rounded), whole);
await client.end();
