// The tables of orders_drizzle.mjs, for drizzle-kit and for the program.
import { relations, sql } from "drizzle-orm";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";

export const orders = pgTable("orders", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`snowflake.snowflake_id()`),
  item: text().notNull(),
});

export const lines = pgTable("lines", { orderId: bigint({ mode: "bigint" }).primaryKey() });

export const ordersRelations = relations(orders, ({ many }) => ({ lines: many(lines) }));
export const linesRelations = relations(lines, ({ one }) => ({ order: one(orders, { fields: [lines.orderId], references: [orders.id] }) }));
