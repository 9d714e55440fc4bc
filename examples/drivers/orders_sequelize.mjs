// Snowflake IDs with Sequelize: the default in the model, sync({ alter: true }), batches.
//
// Packages: nodejs npm
// Not in script/test: it installs 490 MB with the other tools for JavaScript.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
import assert from "node:assert/strict";
import { DataTypes, Sequelize } from "sequelize";
import { assertExact, ids } from "./exact.mjs";

const statements = [];
const sequelize = new Sequelize({
  dialect: "postgres", host: process.env.PGHOST, port: process.env.PGPORT, username: process.env.PGUSER, database: process.env.PGDATABASE,
  logging: (statement) => statements.push(statement),
});
const define = (name, id) => sequelize.define(name, { id, item: DataTypes.TEXT }, { tableName: "orders", timestamps: false });
const columnDefault = async () =>
  (await sequelize.query("SELECT column_default FROM information_schema.columns WHERE (table_name, column_name) = ('orders', 'id')", { plain: true })).column_default;

const Order = define("Order", {
  type: DataTypes.BIGINT, primaryKey: true, defaultValue: sequelize.literal("snowflake_id()"),
});
await Order.sync();
assert.equal(await columnDefault(), "snowflake_id()");

// The ID comes back as a string, by RETURNING.
const order = await Order.create({ item: "a lamp" });
console.log(`order ${order.id}`);
assert.equal(typeof order.id, "string");
assert.equal((await Order.findByPk(order.id)).item, "a lamp");

// A batch reads its keys by RETURNING, in the order of its rows.
const batch = await Order.bulkCreate([{ item: "a chair" }, { item: "a bed" }, { item: "a desk" }]);
assert.deepEqual(batch.map((row) => row.item), ["a chair", "a bed", "a desk"]);
assert.deepEqual(batch.map((row) => row.id), batch.map((row) => row.id).sort());
for (const row of batch) assert.equal((await Order.findByPk(row.id)).item, row.item);

// Exact as rows, in a relation and in an aggregate.
const Line = sequelize.define("Line", { orderId: { type: DataTypes.BIGINT, primaryKey: true } }, { tableName: "lines", timestamps: false });
Order.hasMany(Line, { foreignKey: "orderId", as: "lines" });
await Line.sync();
assertExact((await Order.bulkCreate(ids.map((id) => ({ id, item: "exact" })))).map((row) => row.id));
await Line.bulkCreate(ids.map((orderId) => ({ orderId })));
const related = await Order.findAll({ where: { item: "exact" }, include: "lines" });
assertExact(related.map((row) => row.id));
assertExact(related.map((row) => row.lines[0].orderId));

// The trap: max() and min() convert to a number, and round.  Give them another type.
assert.notEqual(String(await Line.max("orderId")), ids[2]);
assert.equal(await Line.max("orderId", { dataType: DataTypes.STRING }), ids[2]);
await Line.drop();

// sync({ alter: true }) alters the other columns each time, and never a primary key: its default is kept.
for (let time = 1; time <= 2; time++) {
  statements.length = 0;
  await Order.sync({ alter: true });
  const alterations = statements.filter((statement) => statement.includes("ALTER TABLE"));
  assert.ok(alterations.length > 0 && alterations.every((statement) => !statement.includes('"id"')));
  assert.equal(await columnDefault(), "snowflake_id()");
}

// The trap: with a default in the table only, Sequelize inserts NULL.
const WithoutDefault = define("WithoutDefault", { type: DataTypes.BIGINT, primaryKey: true });
await assert.rejects(WithoutDefault.create({ item: "a shelf" }), /null value in column "id"/);
await assert.rejects(WithoutDefault.bulkCreate([{ item: "a shelf" }]), /null value in column "id"/);

// A model of a table that a migration has made can say autoIncrement, and then inserts DEFAULT ...
const Existing = define("Existing", { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true });
assert.ok(BigInt((await Existing.create({ item: "a shelf" })).id) > 2n ** 60n);

// ... but its sync() makes a sequence, if the table does not exist.
await sequelize.query("DROP TABLE orders");
await Existing.sync();
assert.match(await columnDefault(), /^nextval\('orders_id_seq'/);

// And the default as a text is quoted.
await assert.rejects(
  sequelize.define("Quoted", { id: { type: DataTypes.BIGINT, primaryKey: true, defaultValue: "snowflake_id()" } }).sync(),
  /invalid input syntax for type bigint/,
);
await sequelize.close();
