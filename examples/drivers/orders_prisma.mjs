// Snowflake IDs with Prisma: dbgenerated(), BigInt and JSON, push, diff and pull, batches.
//
// Packages: nodejs npm
// Not in script/test: it installs 490 MB with the other tools for JavaScript.
// Needs Node.js 20.
//
// The model is prisma/schema.prisma.  All of Prisma that runs here comes from npm: the client, which
// `prisma generate` writes, and the schema engine as WebAssembly (prisma/schema_engine.mjs).
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { PrismaPg } from "@prisma/adapter-pg";
import { assertExact, assertRounded, ids } from "./exact.mjs";
import { schemaEngine } from "./prisma/schema_engine.mjs";

process.chdir(import.meta.dirname);
const connection = { host: process.env.PGHOST, user: process.env.PGUSER, database: process.env.PGDATABASE };
const model = readFileSync("prisma/schema.prisma", "utf8");
const withDefault = (text) => model.replace(/@default\(dbgenerated\(.*\)\)/, text);

// db push creates the table, and changes nothing the second time.
const engine = await schemaEngine(connection, model);
assert.match(await engine.diff(model), /"id" BIGINT NOT NULL DEFAULT snowflake_id\(\)/);
assert.equal((await engine.push()).executedSteps, 3);
assert.equal((await engine.push()).executedSteps, 0);
assert.match(await engine.diff(model), /This is an empty migration/);

// db pull reads the default as it is declared.
assert.match(await engine.pull(), /id +BigInt @id @default\(dbgenerated\("snowflake_id\(\)"\)\)/);

// The trap of migrations: without dbgenerated("..."), they drop the default.  autoincrement() makes a sequence.
assert.match(await engine.diff(withDefault("")), /ALTER TABLE "orders" ALTER COLUMN "id" DROP DEFAULT/);
assert.match(await engine.diff(withDefault("@default(autoincrement())")), /CREATE SEQUENCE orders_id_seq;/);

// The client.  It would look for a schema engine, which generate does not need.
execFileSync("node_modules/.bin/prisma", ["generate"], { env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true" } });
const { PrismaClient } = createRequire(import.meta.url)("./node_modules/.prisma-orders");
const prisma = new PrismaClient({ adapter: new PrismaPg(connection) });

// The ID comes back as a BigInt.
const order = await prisma.order.create({ data: { item: "a lamp" } });
console.log(`order ${order.id}`);
assert.equal(typeof order.id, "bigint");
assert.equal((await prisma.order.findUnique({ where: { id: order.id } })).item, "a lamp");

// A batch reads its keys by createManyAndReturn(), in the order of its rows; createMany() returns a count.
const data = [{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }];
const batch = await prisma.order.createManyAndReturn({ data });
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.ok(batch.every((row, n) => n === 0 || row.id > batch[n - 1].id));
assert.deepEqual(await prisma.order.createMany({ data }), { count: 3 });

// The traps: JSON has no BigInt; send IDs as strings.  Prisma takes a number as an ID, and does not find the row.
assert.throws(() => JSON.stringify(order), TypeError);
const json = JSON.stringify(order, (key, value) => (typeof value === "bigint" ? String(value) : value));
assert.equal(JSON.parse(json).id, String(order.id));
assert.equal((await prisma.order.findUnique({ where: { id: BigInt(JSON.parse(json).id) } })).item, "a lamp");
const rounded = batch.find((row) => row.id % 256n !== 0n); // a multiple of 256 is not rounded
assert.notEqual((await prisma.order.findUnique({ where: { id: Number(rounded.id) } }))?.id, rounded.id);

// Exact as rows, in a relation and in an aggregate.  Prisma casts the keys in JSON that it builds in the query.
const exact = ids.map(BigInt);
await prisma.order.createMany({ data: exact.map((id) => ({ id, item: "exact" })) });
await prisma.line.createMany({ data: exact.map((orderId) => ({ orderId })) });
for (const relationLoadStrategy of ["join", "query"]) {
  const rows = await prisma.order.findMany({ where: { item: "exact" }, include: { lines: true }, relationLoadStrategy });
  assertExact(rows.map((row) => row.id));
  assertExact(rows.flatMap((row) => row.lines.map((line) => line.orderId)));
}
assert.equal((await prisma.line.aggregate({ _max: { orderId: true } }))._max.orderId, exact[2]);

// The trap: in a query of your own, JSON that the server builds is rounded.  Cast the keys.
const [raw] = await prisma.$queryRaw`SELECT json_agg(order_id) AS ids, json_agg(order_id::text) AS texts FROM lines`;
assertRounded(raw.ids);
assertExact(raw.texts);

// sno: text.
const [event] = await prisma.$queryRaw`SELECT sno_nextval() AS id`;
assert.match(event.id, /^[2-9a-x]{16}$/);
await prisma.$disconnect();
process.exit(); // the schema engine keeps its connection
