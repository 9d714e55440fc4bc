// Snowflake IDs with Drizzle: push, introspect, generated migrations, batches.
//
// Packages: nodejs npm
// Not in script/test: it installs 490 MB with the other tools for JavaScript.
// Needs Node.js 20.
//
// drizzle-kit manages all views of the schema "public", and so those of the extension if it is in
// that schema.  So the extension has a schema of its own, which is not in search_path.  The tables
// are in drizzle/schema.mjs, the configuration of drizzle-kit is drizzle/config.mjs.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { eq, max, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";
import pg from "pg";
import * as schema from "./drizzle/schema.mjs";
import { assertExact, assertRounded, ids, parseExactly } from "./exact.mjs";

process.chdir(import.meta.dirname);
let config = "drizzle/config.mjs";
const kit = (...words) => {
  const { stdout, stderr } = spawnSync("node_modules/.bin/drizzle-kit", [...words, `--config=${config}`], { encoding: "utf8" });
  return stdout + stderr;
};
const push = () => kit("push", "--verbose", "--force");
const configure = (settings) => {
  config = "node_modules/drizzle.config.mjs";
  writeFileSync(config, `import config from "../drizzle/config.mjs"; export default { ...config, ...${JSON.stringify(settings)} };`);
};
const written = "node_modules/.drizzle";
const client = new pg.Client();
await client.connect();
const columnDefault = async () =>
  (await client.query("SELECT column_default FROM information_schema.columns WHERE (table_name, column_name) = ('orders', 'id')")).rows[0]?.column_default;

// In "public", push plans to drop the extension's views, each time.  PostgreSQL refuses that, and push ends with the error.
await client.query("CREATE SCHEMA snowflake; CREATE FUNCTION snowflake.snowflake_id() RETURNS bigint RETURN public.snowflake_id()");
for (let time = 1; time <= 2; time++) {
  const inPublic = push();
  for (const view of ["pg_stat_snowflake", "pg_stat_snowflake_horizon", "snowflake_layouts"]) assert.ok(inPublic.includes(`DROP VIEW "public"."${view}";`), inPublic);
  assert.match(inPublic, /2BP01/);
}
assert.equal(await columnDefault(), "snowflake.snowflake_id()");

// There, introspect writes the views into the program's schema, with types that do not exist.
kit("introspect");
assert.match(readFileSync(`${written}/schema.ts`, "utf8"), /pgView\("pg_stat_snowflake_horizon".*unknown\("datid"\)/s);

// A filter keeps drizzle-kit from the views.
configure({
  tablesFilter: ["!pg_stat_snowflake*", "!snowflake_layouts"],
});
assert.match(push(), /No changes detected/);
config = "drizzle/config.mjs";
await client.query("DROP TABLE lines, orders; DROP SCHEMA snowflake CASCADE");

// In a schema of its own, the views are left alone, and a second push changes nothing.
await client.query("DROP EXTENSION snowflake; CREATE SCHEMA snowflake; CREATE EXTENSION snowflake SCHEMA snowflake");
const pushed = push();
assert.match(pushed, /Changes applied/);
assert.ok(!pushed.includes("DROP"), pushed);
assert.equal(await columnDefault(), "snowflake.snowflake_id()");
assert.match(push(), /No changes detected/);

// With mode "bigint", the ID comes back as a BigInt.
const { orders, lines } = schema;
const db = drizzle({ client, schema });
const [{ id }] = await db.insert(orders).values({ item: "a lamp" }).returning({ id: orders.id });
console.log(`order ${id}`);
assert.equal(typeof id, "bigint");
assert.equal((await db.select().from(orders).where(eq(orders.id, id)))[0].item, "a lamp");
assert.throws(() => JSON.stringify({ id }), TypeError); // JSON has no BigInt

// A batch reads its keys by returning(), in the order of its rows.
const batch = await db.insert(orders).values([{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }]).returning();
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.ok(batch.every((row, n) => n === 0 || row.id > batch[n - 1].id));

// Exact as rows, in a join and in an aggregate.
const exact = ids.map(BigInt);
assertExact((await db.insert(orders).values(exact.map((id) => ({ id, item: "exact" }))).returning()).map((row) => row.id));
await db.insert(lines).values(exact.map((orderId) => ({ orderId })));
assertExact((await db.select({ id: orders.id }).from(orders).innerJoin(lines, eq(orders.id, lines.orderId))).map((row) => row.id));
assert.equal((await db.select({ last: max(orders.id) }).from(orders))[0].last, exact[2]);

// The trap: relational queries build JSON in the query, and round the keys of related rows without an error.
const relational = (columns) => db.query.orders.findMany({ where: eq(orders.item, "exact"), with: { lines: columns } });
const related = (rows) => rows.flatMap((row) => row.lines.map((line) => line.orderId));
assertRounded(related(await relational(true)));
// Select the keys as text ...
assertExact(related(await relational(
  { columns: {}, extras: (line) => ({ orderId: sql`${line.orderId}::text`.as("orderId") }) },
)));
// ... or parse integers of more than 15 digits as strings, which Drizzle converts to BigInt.
pg.types.setTypeParser(pg.types.builtins.JSON, parseExactly);
assertExact(related(await relational(true)));
assert.equal(typeof related(await relational(true))[0], "bigint");
await client.query("DELETE FROM lines; DELETE FROM orders WHERE item = 'exact'");

// The trap: drizzle-kit introspect writes mode "number", which rounds IDs.
rmSync(written, { recursive: true, force: true });
kit("introspect");
const introspected = readFileSync(`${written}/schema.ts`, "utf8");
assert.ok(introspected.includes('id: bigint({ mode: "number" }).default(sql`snowflake.snowflake_id()`)'), introspected);
assert.ok(!introspected.includes("snowflake_layouts"));
const rounding = pgTable("orders", { id: bigint({ mode: "number" }).primaryKey(), item: text() });
const whole = batch.find((row) => row.id % 256n !== 0n); // a multiple of 256 is not rounded
const [rounded] = await db.select().from(rounding).where(eq(rounding.item, whole.item));
console.log(`${whole.id} with mode "number": ${rounded.id}`);
assert.notEqual(BigInt(rounded.id), whole.id);
assert.deepEqual((await db.select().from(rounding).where(eq(rounding.id, rounded.id))).filter((row) => row.item === whole.item), []);

// generate writes the default into a migration, and the second time nothing; migrate runs it.
rmSync(written, { recursive: true });
kit("generate");
assert.match(kit("generate"), /No schema changes/);
const [migration] = readdirSync(written).filter((name) => name.endsWith(".sql"));
assert.match(readFileSync(`${written}/${migration}`, "utf8"), /"id" bigint PRIMARY KEY DEFAULT snowflake\.snowflake_id\(\)/);
await client.query("DROP TABLE lines, orders");
kit("migrate");
assert.equal(await columnDefault(), "snowflake.snowflake_id()");

// With the schema in search_path, the server prints the default without it, and push plans a
// change each time.  Declare it without the schema there.
await client.query(`ALTER DATABASE "${client.database}" SET search_path = public, snowflake`);
kit("introspect");
for (let time = 1; time <= 2; time++) assert.match(push(), /ALTER COLUMN "id" SET DEFAULT snowflake\.snowflake_id\(\)/);
configure({ schema: `./${written}/schema.ts` });
assert.match(readFileSync(`${written}/schema.ts`, "utf8"), /default\(sql`snowflake_id\(\)`\)/);
assert.match(push(), /No changes detected/);
assert.ok((await client.query("SELECT FROM snowflake.snowflake_layouts")).rowCount > 1);
await client.end();
