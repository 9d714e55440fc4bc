// Snowflake IDs that a Node.js program generates itself, with a machine ID from a registry; version 1.0.
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

// script/layouts writes these definitions. A layout without machine IDs is of no use here.
const presets = {
  twitter: "epoch=2010-11-04T01:42:54.657Z tick=1ms timestamp=41 machine=10 sequence=12",
  discord: "epoch=2015-01-01T00:00:00Z tick=1ms timestamp=41 machine=10 sequence=12",
  instagram: "epoch=2011-08-24T21:07:01.721Z tick=1ms timestamp=40 machine=13 sequence=10",
  sonyflake: "epoch=2014-09-01T00:00:00Z tick=10ms timestamp=39 sequence=8 machine=16",
  pgedge: "epoch=2023-01-01T00:00:00Z tick=1ms timestamp=41 machine=10 sequence=12",
  javascript: "epoch=2020-01-01T00:00:00Z tick=1ms timestamp=41 machine=5 sequence=7",
};

const instant = (parameter) => `timestamptz '1970-01-01 00:00:00Z' + $${parameter}::bigint * interval '1 microsecond'`;
// A registry that is not the expected one does nothing, and returns its identity as lease_number.
const commit = (call) => `CALL snowflake_registry.commit(CASE WHEN snowflake_registry.identity() = $1::bigint THEN ${call}
  ELSE ROW(NULL, NULL, NULL, snowflake_registry.identity(), NULL, NULL, NULL)::snowflake_registry.answer END,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL)`;
const length = `$6::integer * interval '1 second', ${instant(7)}, $8, $9::bigint)`;
const CLAIM = commit(`snowflake_registry.claim($2::uuid, $3, $4::integer, $5::integer, ${length}`);
const RENEW = commit(`snowflake_registry.renew($2::uuid, $3::integer, ${instant(4)}, ${instant(5)}, ${length}`);
const RELEASE = commit(`ROW(NULL, NULL, NULL, NULL, NULL,
  snowflake_registry.release($2::uuid, ${instant(3)}, $4::bigint)::text, NULL)::snowflake_registry.answer`);

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

// The driver throws an exception from an event if it is sent nonsense, which would end the program.
function endOnException(stream) {
  const { emit } = stream;
  stream.emit = (...event) => {
    try {
      return emit.apply(stream, event);
    } catch (error) {
      stream.destroy(error);
    }
  };
}

export class Generator {
  #epoch; #tickLength; #bits = { sequence: 0 }; #shift = { sequence: 0 };
  #addresses; #layout; #length; #maxWait; #holder;
  #token = randomUUID(); #identity; #known = "0"; // known is the greatest lease number
  #tick = 0; #sequence = 0; // of the next ID: they only move forward
  #lease; // machineId, from, until, and ends, by the monotonic clock
  #state = "claiming"; #reason; #asked = 0; #delay = 0; #draw = 0;
  #timer; #attempt; #closing;

  // registry: connection string, a URL; several hosts are tried in turn. layout: preset, or definition as the view
  // snowflake_layouts shows it. lease: its length in seconds. maxWait: longest wait of a call in seconds.
  constructor({ registry, layout, lease = 60, maxWait = 5, holder = `${hostname()}:${process.pid}` }) {
    this.#layout = presets[layout] ?? layout;
    const [, epoch, fraction, number, unit, fields = ""] =
      /^epoch=([\dT:-]+)(\.\d+)?Z tick=(\d+)(us|ms|s) (timestamp=\d+( (machine|sequence)=\d+)+)$/.exec(this.#layout) ?? [];
    if (!fields.includes("machine"))
      throw new Error(`layout must be ${Object.keys(presets).join(", ")}, or a definition with machine IDs, not ${layout}`);
    this.#epoch = Date.parse(`${epoch}Z`) * 1000 + Math.round((fraction ?? 0) * 1000000);
    this.#tickLength = number * { us: 1, ms: 1000, s: 1000000 }[unit];
    let shift = 0;
    for (const [name, bits] of fields.split(" ").reverse().map((field) => field.split("="))) {
      [this.#bits[name], this.#shift[name]] = [Number(bits), shift];
      shift += Number(bits);
    }
    [this.#addresses, this.#length, this.#maxWait, this.#holder] = [this.#addressesOf(registry), lease, maxWait, holder];
    this.#work();
  }

  // The URL of each host.
  #addressesOf(registry) {
    const [, scheme, hosts, rest] = /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^/?]*)(.*)$/.exec(registry) ?? [];
    if (scheme === undefined || /[?&](host|port)=[^&]*(,|%2c)/i.test(rest))
      throw new Error("registry must be a URL, and several hosts must be written as in postgresql://a:5432,b:5432/database");
    return hosts.split(",").map((host) => scheme + host + rest);
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
      if (left <= 0) throw new SnowflakeError(...problem);
      await sleep(left * 1000);
    }
  }

  // Append IDs to the array; if there are too few, return the parts of the error, and the seconds to wait first.
  #issue(ids, count) {
    const now = Math.floor((clock() - this.#epoch) / this.#tickLength);
    if (!this.#isUsable(now)) {
      const waits = ["claiming", "held"].includes(this.#state); // else the registry's last answer was no lease
      return [["55000", failures[this.#state], this.#reason], waits ? 0.05 : 0];
    }
    if (now >= 2 ** this.#bits.timestamp) return [["2200H", "after the last timestamp of the layout"], 0];
    if (this.#tick < now) [this.#tick, this.#sequence] = [now, 0];
    while (ids.length < count && this.#tick === now) {
      ids.push((BigInt(this.#tick) << BigInt(this.#shift.timestamp)) | (BigInt(this.#lease.machineId) << BigInt(this.#shift.machine))
        | (BigInt(this.#sequence) << BigInt(this.#shift.sequence)));
      this.#sequence++;
      if (this.#sequence === 2 ** this.#bits.sequence) [this.#tick, this.#sequence] = [this.#tick + 1, 0];
    }
    if (ids.length === count) return [];
    const missing = Math.max(this.#tick * this.#tickLength + this.#epoch - clock(), 0) / 1e6;
    const problem = ["53400", `within ${this.#maxWait} s`, `The next ID can be issued in ${missing} s.`];
    return [problem, Math.min(Math.max(missing, 0.000001), 0.1)]; // the clock can be set meanwhile
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
    return Math.min(this.#delay, usable ? this.#length / 8 : 60) * (1 - this.#draw / 2) - since;
  }

  async #ask() {
    let state = "held";
    let reason;
    try {
      reason = await this.#withRegistry(async (client) => {
        if (!this.#lease || (await this.#renew(client))) return this.#claim(client);
      });
      if (reason) state = "refused";
    } catch (error) {
      state = error instanceof pg.DatabaseError ? "refused" : "unreachable";
      reason = error.message || String(error.code);
    }
    this.#delay = state === "held" ? 0 : Math.min(Math.max(2 * this.#delay, 0.25), 60);
    [this.#asked, this.#draw] = [monotonic(), Math.random()];
    if (this.#state !== "released") [this.#state, this.#reason] = [state, reason];
  }

  // Call a function with a connection to the first address for which it throws no error, which is first from then on.
  async #withRegistry(use) {
    for (let left = this.#addresses.length; ; ) {
      try {
        return await this.#withAddress(this.#addresses[0], use);
      } catch (error) {
        this.#addresses.push(this.#addresses.shift());
        if (--left === 0) throw error;
      }
    }
  }

  async #withAddress(connectionString, use) {
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5000, query_timeout: 5000 });
    client.on("error", () => {}); // the query fails as well
    endOnException(client.connection.stream);
    client.connection.on("sslconnect", () => endOnException(client.connection.stream));
    try {
      await client.connect();
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
    const row = await this.#query(client, query, [...own, this.#length, now, this.#holder, this.#known]);
    if (row.refusal) return row.refusal;
    const lease = { machineId: row.machine_id, from: Number(row.lease_from), until: Number(row.lease_until) };
    if (!(lease.machineId >= 0 && lease.machineId < 2 ** this.#bits.machine && lease.from < lease.until && row.lease_number > 0))
      throw new Error(`the registry sent an invalid answer: ${JSON.stringify(row)}`);
    lease.ends = began + (lease.until - now) / 1e6;
    if (lease.machineId !== this.#lease?.machineId || lease.from !== this.#lease.from)
      [this.#tick, this.#sequence] = [Math.max(this.#unused(), this.#ceiling(lease.from)), 0];
    [this.#lease, this.#known] = [lease, row.lease_number];
  }

  // Asks the registry that answered first, since another one can grant the same lease.
  async #query(client, query, own) {
    const { rows: [row] } = await client.query(query, [this.#identity, this.#token, ...own]);
    if (row.machine_id !== null || row.refusal || !row.lease_number) return row;
    if (this.#identity) throw new Error(`this is registry ${row.lease_number}, not registry ${this.#identity}`);
    this.#identity = row.lease_number;
    return this.#query(client, query, own);
  }

  // The first tick that no ID has.
  #unused() {
    return this.#tick + (this.#sequence > 0);
  }

  // Issue no more IDs, and release the rest of the lease. If that fails, the lease runs out. All calls end together.
  close() {
    return (this.#closing ??= this.#release());
  }

  async #release() {
    this.#state = "released";
    clearTimeout(this.#timer);
    await this.#attempt;
    const usedUntil = this.#unused() * this.#tickLength + this.#epoch;
    if (this.#lease)
      await this.#withRegistry((client) => this.#query(client, RELEASE, [usedUntil, this.#known])).catch(() => {});
  }
}

// Answer a command of conformance.pl.
async function answer(generator, command, numbers) {
  if (command === "fork") return "none"; // Node.js has no such call
  if (command === "close") return generator.close().then(() => "closed");
  if (command === "next") return (await generator.nextvals(numbers[0])).join(" ");
  return (await Promise.all(Array.from({ length: numbers[0] }, () => generator.nextvals(numbers[1])))).flat().join(" ");
}

async function main() {
  const { SNOWFLAKE_REGISTRY: registry, SNOWFLAKE_LAYOUT: layout, SNOWFLAKE_LEASE: lease, SNOWFLAKE_HOLDER: holder } = process.env;
  const maxWait = Number(process.env.SNOWFLAKE_MAX_WAIT ?? 5);
  const generator = new Generator({ registry, layout, lease: Number(lease), holder, maxWait });
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, ...numbers] = line.split(" ");
    try {
      console.log(await answer(generator, command, numbers.map(Number)));
    } catch (error) {
      if (!(error instanceof SnowflakeError)) throw error;
      console.log("error", error.code, error.message.replaceAll("\n", " "));
    }
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
