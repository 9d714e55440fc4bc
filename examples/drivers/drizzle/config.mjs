// Of drizzle-kit: what is pushed, and where it writes what it reads.
export default {
  dialect: "postgresql",
  schema: "./drizzle/schema.mjs",
  out: "./node_modules/.drizzle",
  dbCredentials: { host: process.env.PGHOST, user: process.env.PGUSER, database: process.env.PGDATABASE, ssl: false },
};
