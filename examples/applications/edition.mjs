// Runs portable/snowflake.sql and snowflake_setup() with a client for JavaScript, or loads the table items.  For edition.pl.
//
//   node edition.mjs CLIENT FILE       prints the version of the client
//   node edition.mjs node-postgres     prints the ID of each row, until an error
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";

const [client, file] = process.argv.slice(2);
const text = file && readFileSync(file, "utf8");
const setup = "SELECT snowflake_setup(machine_id => 7)";
const table = "CREATE TABLE IF NOT EXISTS items (id bigint PRIMARY KEY DEFAULT snowflake_id(), n integer)";
const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env;
const version = (name) => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version;

async function nodePostgres(run) {
  const { default: pg } = await import("pg");
  const connection = new pg.Client();
  await connection.connect();
  await run(connection);
  await connection.end();
}

// The file, the setup and a table.  A migration that the tool has recorded does not run again.
const clients = {
  "node-postgres": ["pg", () => nodePostgres(async (connection) => {
    for (const statement of [text, setup, table]) await connection.query(statement);
  })],
  "node-postgres, extended protocol": ["pg", () => nodePostgres(async (connection) => {
    for (const statement of [text, setup, table]) await connection.query({ text: statement, queryMode: "extended" });
  })],
  "node-postgres, all at once": ["pg", () => nodePostgres((connection) => connection.query([text, setup, table].join(";\n")))],
  "node-postgres, in a transaction": ["pg", () => nodePostgres(async (connection) => {
    const functions = async () => (await connection.query("SELECT array_agg(xmin || proname) AS all FROM pg_proc WHERE proname LIKE 'snowflake%'")).rows;
    const before = await functions();
    for (const statement of ["BEGIN", text, setup, table, "INSERT INTO items DEFAULT VALUES", "ROLLBACK"]) await connection.query(statement);
    assert.deepEqual(await functions(), before);
    for (const statement of ["BEGIN", text, setup, table, "INSERT INTO items DEFAULT VALUES", "COMMIT"]) await connection.query(statement);
  })],
  "postgres.js": ["postgres", async () => {
    const { default: postgres } = await import("postgres");
    const sql = postgres({ max: 1, onnotice: () => {} });
    await sql.file(file);
    for (const statement of [setup, table]) await sql.unsafe(statement);
    await sql.end();
  }],
  knex: ["knex", async () => {
    const { default: knex } = await import("knex");
    const connection = knex({ client: "pg", connection: {} });
    const migrations = [[text, setup], [table]];
    await connection.migrate.latest({ migrationSource: {
      getMigrations: async () => migrations,
      getMigrationName: (migration) => `${migrations.indexOf(migration)}`,
      getMigration: async (migration) => ({ up: async (trx) => { for (const statement of migration) await trx.raw(statement); }, down: () => {} }),
    } });
    await connection.destroy();
  }],
  sequelize: ["sequelize", async () => {
    const { Sequelize } = await import("sequelize");
    const connection = new Sequelize(database, user, "", { host, port, dialect: "postgres", logging: false });
    for (const statement of [text, setup, table]) await connection.query(statement);
    await connection.close();
  }],
  typeorm: ["typeorm", async () => {
    const { DataSource } = await import("typeorm");
    class Edition1 {
      name = "Edition1764000000000";
      up = async (runner) => { for (const statement of [text, setup, table]) await runner.query(statement); };
    }
    const source = await new DataSource({ type: "postgres", host, port, username: user, database, migrations: [Edition1] }).initialize();
    await source.runMigrations();
    await source.destroy();
  }],
  drizzle: ["drizzle-orm", async () => {
    const { drizzle } = await import("drizzle-orm/node-postgres");
    const { migrate } = await import("drizzle-orm/node-postgres/migrator");
    const folder = mkdtempSync(`${tmpdir()}/drizzle`);
    mkdirSync(`${folder}/meta`);
    const entries = [text, `${setup};\n--> statement-breakpoint\n${table};`].map((sql, idx) => {
      writeFileSync(`${folder}/${idx}.sql`, sql);
      return { idx, version: "7", when: idx + 1, tag: `${idx}`, breakpoints: true };
    });
    writeFileSync(`${folder}/meta/_journal.json`, JSON.stringify({ version: "7", dialect: "postgresql", entries }));
    await nodePostgres((connection) => migrate(drizzle(connection), { migrationsFolder: folder }));
  }],
  prisma: ["@prisma/schema-engine-wasm", async () => {
    const { schemaEngine } = await import("../drivers/prisma/schema_engine.mjs");
    const engine = await schemaEngine({ host, port, user, database }, 'datasource db {\n  provider = "postgresql"\n}\n');
    await engine.migrate({ "1_edition": text, "2_items": `${setup};\n${table};` });
  }],
  // One session, in a server of its own.
  pglite: ["@electric-sql/pglite", async () => {
    const { PGlite } = await import("@electric-sql/pglite");
    const server = new PGlite();
    for (const statement of [text, setup, table, text, setup]) await server.exec(statement);
    for (let n = 0; n < 200; n++) {
      await server.query("INSERT INTO items DEFAULT VALUES");
      if (n % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 30));
    }
    const { rows: [found] } = await server.query(`SELECT count(*)::integer, min(snowflake_machine_id(id)) AS machine_id,
      max(abs(extract(epoch FROM clock_timestamp() - snowflake_timestamp(id))))::float AS age, max(id) AS last FROM items`);
    assert.equal(found.count, 200);
    assert.equal(found.machine_id, 7);
    assert.ok(found.age < 600);
    const { rows: [{ horizon }] } = await server.query("SELECT snowflake_horizon() AS horizon");
    assert.ok(BigInt(horizon) > BigInt(found.last));
    await server.close();
  }],
};

if (text === undefined) {
  await nodePostgres(async (connection) => {
    for (;;) console.log((await connection.query("INSERT INTO items SELECT FROM generate_series(1, 100) RETURNING id")).rows.map((row) => row.id).join("\n"));
  });
} else {
  const [name, run] = clients[client];
  await run();
  console.log(`${name} ${version(name)}`);
}
