// The configuration of drizzle-kit: the schema to push, and the directory of its
// output.
export default {
  dialect: "postgresql",
  schema: "./drizzle/schema.mjs",
  out: "./node_modules/.drizzle",
  dbCredentials: { host: process.env.PGHOST, user: process.env.PGUSER, database: process.env.PGDATABASE, ssl: false },
};
