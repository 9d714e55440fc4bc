// IDs of the type sno with node-postgres: parameters, casts, arrays, bytes.
//
// Packages: nodejs npm
//
// A driver without support for a type sends and returns its text form: 16 characters for a sno,
// which sort as the IDs do.  Before this runs, `npm ci` in this directory installs node-postgres.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import pg from "pg";

const client = new pg.Client();
await client.connect();
await client.query("CREATE TABLE events (id sno PRIMARY KEY DEFAULT sno_nextval(), name text NOT NULL)");

// The ID comes back as a string.
const { id } = (await client.query("INSERT INTO events (name) VALUES ($1) RETURNING id", ["opened"])).rows[0];
console.log(`event ${id}`);
assert.match(id, /^[2-9a-x]{16}$/);

// A parameter beside a column needs no cast.
assert.equal((await client.query("SELECT name FROM events WHERE id = $1", [id])).rows[0].name, "opened");

// A parameter whose type does not follow from the context needs one.
const cast = await client.query("SELECT $1::sno AS id, sno_timestamp($1) AS created_at", [id]);
console.log(`made at ${cast.rows[0].created_at.toISOString()}`);
assert.equal(cast.rows[0].id, id);
assert.equal((await client.query("SELECT pg_typeof($1::sno)::text = 'sno' AS is_sno", [id])).rows[0].is_sno, true);

// A batch reads its keys by RETURNING, in the order of its rows.
const batch = await client.query("INSERT INTO events (name) SELECT * FROM unnest($1::text[]) RETURNING id, name", [["read", "edited", "closed"]]);
const ids = batch.rows.map((row) => row.id);
assert.deepEqual(batch.rows.map((row) => row.name), ["read", "edited", "closed"]);
assert.deepEqual(ids, [...ids].sort());

// An array of strings is a parameter of type sno[].
const some = await client.query("SELECT name FROM events WHERE id = ANY($1::sno[]) ORDER BY id", [[ids[0], ids[2]]]);
assert.deepEqual(some.rows.map((row) => row.name), ["read", "closed"]);

// The trap: an array that comes back is one string, since node-postgres has no parser for sno[].
// Cast it to text[].
const arrays = (await client.query("SELECT array_agg(id ORDER BY id) AS raw, array_agg(id ORDER BY id)::text[] AS parsed FROM events")).rows[0];
assert.equal(arrays.raw, `{${[id, ...ids].join(",")}}`);
assert.deepEqual(arrays.parsed, [id, ...ids]);

// Its 10 bytes are a Buffer, and come back by a cast.
const { bytes } = (await client.query("SELECT $1::sno::bytea AS bytes", [id])).rows[0];
assert.equal(bytes.length, 10);
assert.equal((await client.query("SELECT $1::bytea::sno AS id", [bytes])).rows[0].id, id);

// Text that is no sno is refused by the server.
await assert.rejects(client.query("SELECT name FROM events WHERE id = $1", ["opened"]), { code: "22P02" });
await client.end();
