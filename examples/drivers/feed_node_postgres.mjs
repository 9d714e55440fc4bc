// A generator of the new rows of a table with node-postgres: the view of new rows, and snowflake_wait().
//
// Packages: nodejs npm
//
// Before this runs, `npm ci` in this directory installs node-postgres, which returns a bigint as a string.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import pg from "pg";

// docs/change-feeds.md has this function.
async function* newMessages(client, lastId) {
  let horizon = "0";
  for (;;) {
    const { rows } = await client.query("SELECT id, body FROM new_messages WHERE id > $1 ORDER BY id LIMIT 100", [lastId]);
    for (const row of rows) {
      yield row;
      lastId = row.id;
    }
    if (rows.length === 0) horizon = (await client.query("CALL snowflake_wait($1, '30 s')", [horizon])).rows[0].horizon;
  }
}

const [reader, writer, slow] = [new pg.Client(), new pg.Client(), new pg.Client()];
for (const client of [reader, writer, slow]) await client.connect();
await writer.query("CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake_id(), body text NOT NULL)");
await writer.query("SELECT snowflake_enable_feed('messages', view => 'new_messages')");
const insert = (client, body) => client.query("INSERT INTO messages (body) VALUES ($1)", [body]);

// Another session has the lowest ID, and commits last.
await insert(writer, "first");
await slow.query("BEGIN");
await insert(slow, "slow");
for (let number = 0; number < 250; number++) await insert(writer, `message ${number}`);

const bodies = [];
for await (const { body } of newMessages(reader, "0")) {
  bodies.push(body);
  if (body === "first") {
    assert.equal((await writer.query("SELECT count(*) FROM new_messages")).rows[0].count, "1");
    setTimeout(() => slow.query("COMMIT"), 100);    // while the reader waits
  }
  if (body === "message 249") break;
}
assert.deepEqual(bodies, (await writer.query("SELECT body FROM messages ORDER BY id")).rows.map((row) => row.body));
assert.equal(bodies.length, 252);
console.log(`${bodies.length} messages, the second one is: ${bodies[1]}`);
for (const client of [reader, writer, slow]) await client.end();
