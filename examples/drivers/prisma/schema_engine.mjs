// Prisma's schema engine as WebAssembly, from npm, for `prisma db push`, `prisma migrate diff`,
// `prisma migrate deploy` and `prisma db pull`.  The engine that Prisma's commands use is downloaded from elsewhere.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { PrismaPg } from "@prisma/adapter-pg";
import { bindMigrationAwareSqlAdapterFactory } from "@prisma/driver-adapter-utils";
import * as engine from "@prisma/schema-engine-wasm/schema_engine_bg";

// PrismaPg 7.10 does not support the type "char" of system catalogs, which the engine reads: it is
// converted to text.  PrismaPg cuts a migration at each semicolon; Prisma's commands send it as a whole.
class CatalogPg extends PrismaPg {
  async connect() {
    const adapter = await super.connect();
    const performIO = adapter.performIO.bind(adapter);
    adapter.performIO = async (query) => {
      const result = await performIO(query);
      for (const field of result.fields) if (field.dataTypeID === 18) field.dataTypeID = 25;
      return result;
    };
    adapter.executeScript = async (script) => { await adapter.client.query(script); };
    return adapter;
  }
}

const filters = { externalTables: [], externalEnums: [] };

/** db push, migrate diff, migrate deploy and db pull for a connection, as for schema.prisma with that content. */
export async function schemaEngine(connection, content) {
  const directory = fileURLToPath(import.meta.resolve("@prisma/schema-engine-wasm/schema_engine_bg")).replace(/[^/]*$/, "");
  const module = await WebAssembly.instantiate(await readFile(`${directory}schema_engine_bg.wasm`), { "./schema_engine_bg.js": engine });
  globalThis.PRISMA_WASM_PANIC_REGISTRY = { set_message: console.error };
  engine.__wbg_set_wasm(module.instance.exports);
  module.instance.exports.__wbindgen_start();

  const files = (text) => ({ files: [{ path: "schema.prisma", content: text }] });
  const schema = files(content);
  const running = await engine.SchemaEngine.new({ datamodels: [["schema.prisma", content]] }, () => {}, bindMigrationAwareSqlAdapterFactory(new CatalogPg(connection)));
  return {
    // texts of migrations by their names
    migrate: (migrations) => running.applyMigrations({
      migrationsList: {
        baseDir: ".", lockfile: { path: "migration_lock.toml", content: 'provider = "postgresql"' }, shadowDbInitScript: "",
        migrationDirectories: Object.entries(migrations).map(([path, text]) => ({ path, migrationFile: { path: "migration.sql", content: { tag: "ok", value: text } } })),
      }, filters,
    }),
    push: () => running.schemaPush({ force: false, schema, filters }),
    diff: async (text) => (await running.diff({
      from: { tag: "schemaDatasource", ...schema, configDir: "." }, to: { tag: "schemaDatamodel", ...files(text) },
      shadowDatabaseUrl: null, script: true, exitCode: null, filters,
    })).stdout,
    pull: async () => (await running.introspect({
      schema, baseDirectoryPath: ".", force: true, compositeTypeDepth: 0, namespaces: null, viewsDirectoryPath: "./views", filters,
    })).schema.files[0].content,
  };
}
