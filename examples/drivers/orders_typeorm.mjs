// Snowflake IDs with TypeORM: the default in the entity, synchronize and generated migrations, batches.
//
// Packages: nodejs npm
// Not in script/test: it installs 430 MB with the other tools for JavaScript.
// Needs Node.js 20.
//
// With decorators, in TypeScript, the column is
//     @PrimaryColumn({ type: "bigint", default: () => "snowflake_nextval()" }) id: string;
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import { DataSource, EntitySchema } from "typeorm";

// Connect with an entity whose key is declared as that.
async function connect(id) {
  const entity = new EntitySchema({ name: "Order", tableName: "orders", columns: { id, item: { type: "text" } } });
  return new DataSource({
    type: "postgres", host: process.env.PGHOST, username: process.env.PGUSER, database: process.env.PGDATABASE, entities: [entity],
  }).initialize();
}
// The statements that migration:generate would write now.
const plan = async (source) => (await source.driver.createSchemaBuilder().log()).upQueries.map((query) => query.query);
const columnDefault = async (source) =>
  (await source.query("SELECT column_default FROM information_schema.columns WHERE (table_name, column_name) = ('orders', 'id')"))[0].column_default;

let source = await connect(
  { type: "bigint", primary: true, default: () => "snowflake_nextval()" },
);
assert.match((await plan(source))[0], /"id" bigint NOT NULL DEFAULT snowflake_nextval\(\)/);
await source.synchronize();
assert.equal(await columnDefault(source), "snowflake_nextval()");

// Once the table has it, nothing is planned.
assert.deepEqual(await plan(source), []);

// The ID comes back as a string, by RETURNING.
const orders = source.getRepository("Order");
const order = await orders.save({ item: "a lamp" });
console.log(`order ${order.id}`);
assert.equal(typeof order.id, "string");
assert.equal((await orders.findOneBy({ id: order.id })).item, "a lamp");

// A batch reads its keys by RETURNING, in the order of its rows.
const batch = await orders.save([{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }]);
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.deepEqual(batch.map((row) => row.id), batch.map((row) => row.id).sort());
for (const row of batch) assert.equal((await orders.findOneBy({ id: row.id })).item, row.item);
const inserted = await orders.insert([{ item: "a shelf" }, { item: "a rug" }]);
assert.ok(BigInt(inserted.identifiers[0].id) < BigInt(inserted.identifiers[1].id));
await source.destroy();

// The trap: with "generated", which @PrimaryGeneratedColumn("increment") sets, a migration creates
// a sequence, and drops the default; then INSERT fails, and the next migration sets the sequence's.
source = await connect({ type: "bigint", primary: true, generated: true });
assert.deepEqual(await plan(source), [
  `CREATE SEQUENCE IF NOT EXISTS "orders_id_seq" OWNED BY "orders"."id"`,
  `ALTER TABLE "orders" ALTER COLUMN "id" SET DEFAULT nextval('"orders_id_seq"')`,
  `ALTER TABLE "orders" ALTER COLUMN "id" DROP DEFAULT`,
]);
await source.synchronize();
assert.equal(await columnDefault(source), null);
await assert.rejects(source.getRepository("Order").save({ item: "a shelf" }), /null value in column "id"/);
await source.destroy();

// The declaration above repairs it.
source = await connect({ type: "bigint", primary: true, default: () => "snowflake_nextval()" });
await source.synchronize();
assert.equal(await columnDefault(source), "snowflake_nextval()");
await source.query("DROP SEQUENCE orders_id_seq");
await source.destroy();

// With both, a migration sets the sequence's default, and INSERT takes 1, 2, 3 from it without an error.
source = await connect({ type: "bigint", primary: true, generated: true, default: () => "snowflake_nextval()" });
console.log((await plan(source)).join("\n"));
await source.synchronize();
assert.equal(await columnDefault(source), "nextval('orders_id_seq'::regclass)");
assert.equal((await source.getRepository("Order").save({ item: "a shelf" })).id, "1");
await source.destroy();
