// Snowflake IDs that a Node.js program generates itself, with a machine ID that a registry leases to it.
//
// Packages: nodejs npm
//
// docs/application-ids.md describes the protocol. As a program, this file reads commands and prints
// IDs, as conformance.pl specifies.
import { randomUUID } from "node:crypto";
import { realpathSync } from "node:fs";
import { hostname } from "node:os";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";

const instant = (parameter) => `timestamptz '1970-01-01 00:00:00Z' + $${parameter}::bigint * interval '1 microsecond'`;
const commit = (answer) => `CALL snowflake_registry.commit(${answer}, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`;
const length = `$5::integer * interval '1 second', ${instant(6)}, $7, $8::bigint)`;
const CLAIM = commit(`snowflake_registry.claim($1::uuid, $2, $3::integer, $4::integer, ${length}`);
const RENEW = commit(`snowflake_registry.renew($1::uuid, $2::integer, ${instant(3)}, ${instant(4)}, ${length}`);
const RELEASE = commit(`ROW(NULL, NULL, NULL, NULL, NULL,
  snowflake_registry.release($1::uuid, ${instant(2)}, $3::bigint)::text, NULL)`);

const failures = {
  claiming: "before the first answer of the registry",
  held: "after the end of the lease",
  refused: "without a lease of a machine ID",
  unreachable: "while the registry is unreachable",
  released: "after the release of the machine ID",
};

// No ID was issued. code is the SQLSTATE of the same error of snowflake_nextval().
export class SnowflakeError extends Error {
  constructor(code, reason, detail) {
    super(`could not generate a Snowflake ID ${reason}${detail ? `: ${detail}` : ""}`);
    this.code = code;
  }
}

// Microseconds since 1970, a number that is exact until the year 2255; and seconds of a clock that is never set.
const clock = () => Date.now() * 1000;
const monotonic = () => performance.now() / 1000;

export class Generator {
  #epoch; #tickLength; #bits = { timestamp: 0, machine: 0, sequence: 0 }; #shift = { machine: 0, sequence: 0 };
  #registry; #layout; #length; #maxWait; #holder;
  #token = randomUUID(); #identity; #known = "0"; // known is the greatest lease number
  #tick = 0; #sequence = 0; // of the next ID: they only move forward
  #lease; // machineId, from, until, and ends, by the monotonic clock
  #state = "claiming"; #reason; #asked = 0; #delay = 0; #draw = 0;
  #timer; #attempt;

  // registry: connection string. layout: definition, as the view snowflake_layouts shows it. lease: its length in
  // seconds. maxWait: longest wait of a call in seconds.
  constructor({ registry, layout, lease = 60, maxWait = 5, holder = `${hostname()}:${process.pid}` }) {
    const fields = Object.fromEntries(layout.split(" ").map((field) => field.split("=")));
    const [, number, unit] = /^(\d+)(us|ms|s)$/.exec(fields.tick);
    const [whole, , fraction = ""] = fields.epoch.split(/([.Z])/);
    this.#epoch = Date.parse(`${whole}Z`) * 1000 + Number(fraction.padEnd(6, "0"));
    this.#tickLength = number * { us: 1, ms: 1000, s: 1000000 }[unit];
    let shift = 0;
    for (const name of Object.keys(fields).reverse().filter((name) => name in this.#bits)) {
      this.#bits[name] = Number(fields[name]);
      this.#shift[name] = shift;
      shift += this.#bits[name];
    }
    [this.#registry, this.#layout, this.#length, this.#maxWait, this.#holder] = [registry, layout, lease, maxWait, holder];
    this.#work();
  }

  async nextval() {
    return (await this.nextvals(1))[0];
  }

  // BigInts in ascending order; all are lost if an error is thrown.
  async nextvals(count) {
    const ids = [];
    const deadline = monotonic() + this.#maxWait;
    for (;;) {
      const [problem, wait] = this.#issue(ids, count);
      if (ids.length === count) return ids;
      const left = Math.min(wait, deadline - monotonic());
      if (left <= 0) throw problem;
      await sleep(left * 1000);
    }
  }

  // Append IDs to the array; if there are too few, return the error and the seconds to wait first.
  #issue(ids, count) {
    const now = Math.floor((clock() - this.#epoch) / this.#tickLength);
    if (!this.#isUsable(now)) {
      const waits = ["claiming", "held"].includes(this.#state); // else the registry's last answer was no lease
      return [new SnowflakeError("55000", failures[this.#state], this.#reason), waits ? 0.01 : 0];
    }
    if (now >= 2 ** this.#bits.timestamp) throw new SnowflakeError("2200H", "after the last timestamp of the layout");
    if (this.#tick < now) [this.#tick, this.#sequence] = [now, 0];
    while (ids.length < count && this.#tick === now) {
      ids.push((BigInt(this.#tick) << BigInt(this.#shift.timestamp)) | (BigInt(this.#lease.machineId) << BigInt(this.#shift.machine))
        | (BigInt(this.#sequence) << BigInt(this.#shift.sequence)));
      this.#sequence++;
      if (this.#sequence === 2 ** this.#bits.sequence) [this.#tick, this.#sequence] = [this.#tick + 1, 0];
    }
    const missing = Math.max(this.#tick * this.#tickLength + this.#epoch - clock(), 0) / 1e6;
    const problem = new SnowflakeError("53400", `within ${this.#maxWait} s`, `The next ID can be issued in ${missing} s.`);
    return [problem, Math.min(Math.max(missing, 0.000001), 0.1)];
  }

  // The first tick that does not begin before an instant.
  #ceiling(instant) {
    return Math.ceil((instant - this.#epoch) / this.#tickLength);
  }

  #isUsable(tick) {
    return this.#state !== "released" && this.#lease && tick < this.#ceiling(this.#lease.until) && monotonic() < this.#lease.ends;
  }

  async #work() {
    if (this.#due() <= 0) await (this.#attempt = this.#ask());
    if (this.#state !== "released") this.#timer = setTimeout(() => this.#work(), Math.min(Math.max(this.#due(), 0), 1) * 1000).unref();
  }

  // Seconds until the registry is asked: between 3/8 and 1/2 of the lease, by both clocks.
  #due() {
    const part = (3 + this.#draw) / 8;
    const since = monotonic() - this.#asked;
    if (this.#state === "claiming") return 0;
    if (this.#state === "held")
      return Math.min(part * this.#length - since, (this.#lease.until - clock()) / 1e6 - (1 - part) * this.#length);
    const usable = this.#isUsable(Math.floor((clock() - this.#epoch) / this.#tickLength));
    return Math.min(this.#delay, usable ? this.#length / 8 : 1) * (1 - this.#draw / 2) - since;
  }

  async #ask() {
    let state = "held";
    let reason;
    try {
      await this.#withRegistry(async (client) => {
        if (!this.#lease || (await this.#renew(client))) reason = await this.#claim(client);
      });
      if (reason) state = "refused";
    } catch (error) {
      state = error instanceof pg.DatabaseError ? "refused" : "unreachable";
      reason = error.message;
    }
    this.#delay = state === "held" ? 0 : Math.min(Math.max(2 * this.#delay, 0.25), 60);
    [this.#asked, this.#draw] = [monotonic(), Math.random()];
    if (this.#state !== "released") [this.#state, this.#reason] = [state, reason];
  }

  // A connection to the registry that was asked first: another one can grant the same lease.
  async #withRegistry(use) {
    const client = new pg.Client({ connectionString: this.#registry, connectionTimeoutMillis: 5000, query_timeout: 5000 });
    client.on("error", () => {}); // the query fails as well
    try {
      await client.connect();
      const { identity } = (await client.query("SELECT snowflake_registry.identity()::text")).rows[0];
      this.#identity ??= identity;
      if (identity !== this.#identity) throw new Error(`this is registry ${identity}, not registry ${this.#identity}`);
      return await use(client);
    } finally {
      client.end().catch(() => {});
    }
  }

  #claim(client) {
    return this.#call(client, CLAIM, [this.#layout, this.#bits.machine, null]);
  }

  #renew(client) {
    return this.#call(client, RENEW, [this.#lease.machineId, this.#lease.from, this.#lease.until]);
  }

  // Returns the refusal, if it is one.
  async #call(client, query, own) {
    const [began, now] = [monotonic(), clock()];
    const { rows: [row] } = await client.query(query, [this.#token, ...own, this.#length, now, this.#holder, this.#known]);
    if (row.refusal) return row.refusal;
    const lease = { machineId: row.machine_id, from: Number(row.lease_from), until: Number(row.lease_until) };
    lease.ends = began + (lease.until - now) / 1e6;
    if (lease.machineId !== this.#lease?.machineId || lease.from !== this.#lease.from)
      [this.#tick, this.#sequence] = [Math.max(this.#tick + (this.#sequence > 0), this.#ceiling(lease.from)), 0];
    [this.#lease, this.#known] = [lease, row.lease_number];
  }

  // Issue no more IDs, and release the rest of the lease. If that fails, the lease runs out.
  async close() {
    this.#state = "released";
    clearTimeout(this.#timer);
    await this.#attempt;
    const usedUntil = (this.#tick + (this.#sequence > 0)) * this.#tickLength + this.#epoch;
    if (this.#lease)
      await this.#withRegistry((client) => client.query(RELEASE, [this.#token, usedUntil, this.#known])).catch(() => {});
  }
}

async function main() {
  const { SNOWFLAKE_REGISTRY: registry, SNOWFLAKE_LAYOUT: layout, SNOWFLAKE_LEASE: lease, SNOWFLAKE_HOLDER: holder } = process.env;
  const generator = new Generator({ registry, layout, lease: Number(lease), holder });
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, count] = line.split(" ");
    try {
      if (command === "close") await generator.close();
      console.log(command === "close" ? "closed" : (await generator.nextvals(Number(count))).join(" "));
    } catch (error) {
      if (!(error instanceof SnowflakeError)) throw error;
      console.log("error", error.code, error.message.replaceAll("\n", " "));
    }
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
