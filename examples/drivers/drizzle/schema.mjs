// The tables of orders_drizzle.mjs, for drizzle-kit and for the program.
import { sql } from "drizzle-orm";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";

export const orders = pgTable("orders", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`snowflake.snowflake_nextval()`),
  item: text().notNull(),
});
