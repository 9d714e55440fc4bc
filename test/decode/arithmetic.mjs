// Tests the arithmetic of docs/decode.html, without a browser: its first script against the layouts of src/core and the
// published values of test/vectors.  Also tests the parts of the page.  Prints TAP.
import { arithmetic, done, html, is, ok, scripts, styles, sum, table } from "./page.mjs";

const page = arithmetic();

// The text that a call returns, or the message of its error.
function attempt(call) {
	try {
		return call();
	} catch (error) {
		return error.message;
	}
}

/* The parts of the page */

const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)[1];
is(policy, `default-src 'none'; script-src ${scripts.map(sum).join(" ")}; style-src ${styles.map(sum).join(" ")}; base-uri 'none'; form-action 'none'`,
	"the policy allows the page's own scripts and style, and nothing else");
is([...html.matchAll(/\b(?:src|srcset|href|action|data)\s*=\s*"([^"]*)"/g)].map(found => found[1]).join(), "decode.md", "the page refers to nothing but decode.md");
ok(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bstyle=|\bon\w+=/.test(html), "no text becomes HTML, a script or a style");

/* Published values, in both directions */

function check(layoutName, text, time, values) {
	const layout = page.parseLayout(layoutName);
	const { id } = page.readId(layout, text);
	const decoded = page.decode(layout, id);
	const [lowest, highest] = page.idsOfTick(layout, decoded.instant);
	const next = highest === page.BIGINT_MAX ? highest : highest + 1n;		// no bigint is above the greatest one
	const parts = Object.keys(values).map(key => `${key} ${decoded.values[key]}`).join();

	is(page.formatInstant(decoded.instant), time, `${layoutName} ${text}: its time`);
	is(parts, Object.entries(values).map(part => part.join(" ")).join(), `${layoutName} ${text}: its fields`);
	is(page.encode(layout, page.parseInstant(time, true), values), id, `${layoutName} ${text}: encoded again`);
	ok(lowest <= id && id <= highest && page.boundary(layout, decoded.instant) === lowest && page.boundary(layout, decoded.instant + 1n) === next,
		`${layoutName} ${text}: in the range of its tick`, `${lowest} to ${highest}`);
}

const known = table("known_ids.csv");
const sonyflake = table("sonyflake.csv");
is(known.length + sonyflake.length, 5 + 41, "all IDs of known_ids.csv and sonyflake.csv");
for (const row of known) check(row.system, row.id, row.time_rfc3339_ms_utc, { machine: row.machine10_or_shard13, sequence: row.sequence });
for (const row of sonyflake) check("sonyflake", row.decimal_u64, row.time_rfc3339_ms_utc, { machine: row.machine_id, sequence: row.sequence });

const wrong = [];
const codec = table("sno_codec.csv");
for (const row of codec) {
	const id = page.readId(page.SNO, row.text).id;
	const { values, instant } = page.decode(page.SNO, id);
	const fields = { tick_tock: row.tick, metabyte: row.meta, partition: row.partition, sequence: row.sequence };
	const again = [page.toHex(id, 20), page.formatInstant(instant), ...Object.keys(fields).map(key => values[key]), page.readId(page.SNO, row.bin_hex).id,
		page.encode(page.SNO, page.parseInstant(row.time_rfc3339_ms_utc), fields), page.toSno(id)];
	const wanted = [row.bin_hex, row.time_rfc3339_ms_utc, ...Object.values(fields), id, id, row.text];

	if (String(again) !== String(wanted)) wrong.push(`${again} and not ${wanted}`);
}
is(codec.length, 160, "all IDs of sno_codec.csv");
is(wrong.join("\n"), "", "sno: text, bytes, time and fields, read and encoded");

const texts = table("sno_text_accepts.csv").map(row => [Buffer.from(row.input_hex, "hex").toString("latin1"), row.valid === "1" ? BigInt(`0x${row.binary_hex}`) : null]);
is(texts.length, 80, "all inputs of sno_text_accepts.csv");
is(texts.filter(([text, id]) => page.fromSno(text) !== id).join("\n"), "", "texts that are a sno, and texts that are none");

/* Forms, and errors */

const twitter = page.parseLayout("twitter");
is(page.toBase32(2124435266734157824n), "1tyw2kt700w00", "base 32");
for (const text of ["2124435266734157824", "1tyw2kt700w00", "1TYW2KT7OOWOO", `0x${2124435266734157824n.toString(16)}`])
	is(page.readId(twitter, page.cleanId(` "${text}", `)).id, 2124435266734157824n, `${text} is read`);
is(page.readId(page.SNO, "39713777-7265-6a63-3232-323267323232").id, page.fromSno("9q7wrejc2222g222"), "the uuid of sno_to_uuid() is read");
is(page.readId(twitter, "1234567890123").others.map(other => other.form), "base 32", "13 digits can be base 32 as well");
is(page.readId(twitter, "1234567890123", "base 32").id, page.fromBase32("1234567890123"), "and are read so if asked for");
ok(page.looksRounded(String(Number("2124435266734157824"))) && !page.looksRounded("2124435266734157824"), "a number that JavaScript has rounded is noticed");

for (const [layout, text, message] of [
	[twitter, "-5", /^-5 is not a Snowflake ID: no ID is negative\.$/],
	[twitter, "9223372036854775808", /greater than the greatest bigint, 9223372036854775807/],
	[twitter, "0xffffffffffffffff", /greater than the greatest bigint/],
	[twitter, "2.12444E+18", /was rounded/],
	[twitter, "1tyw2kt700wu0", /not base 32\. At character 12, there is no digit/],
	[twitter, "8tyw2kt700w00", /the first digit is above 7/],
	[twitter, "abc", /^This is not an ID\./],
	[twitter, "9q7wrejc2222g222", /^This is of the type sno/],
	[page.SNO, "2124435266734157824", /^This is a bigint/],
	[page.SNO, "9q7wrejc2222g22z", /must have 16 characters/],
	[page.parseLayout("javascript"), "9007199254740992", /The greatest ID of the layout is 9007199254740991\./],
]) {
	const answer = attempt(() => page.readId(layout, text).id);
	ok(message.test(answer), `${text} is refused in the layout ${layout.name}`, answer);
}
ok(/^Machine ID 1024 is out of range\. The layout has 10 bits for it: 0 to 1023\.$/.test(attempt(() => page.encode(twitter, twitter.epoch, { machine: 1024 }))), "a machine ID that is too large");
ok(/first tick begins at 2010-11-04T01:42:54\.657Z, its last at 2080-07-10T17:30:30\.208Z/.test(attempt(() => page.encode(twitter, twitter.epoch - 1n, {}))), "a time before the epoch");

for (const [text, instant] of [["2026-11-22", "2026-11-22T00:00:00.000Z"], ["2026-11-22 10:30+01", "2026-11-22T09:30:00.000Z"], ["2026-11-22 09:30:12.345678-0330", "2026-11-22T13:00:12.345678Z"],
	["2024-02-29T23:59:59Z", "2024-02-29T23:59:59.000Z"], ["2023-02-29", null], ["1795339812345ms", "2026-11-22T09:30:12.345Z"], ["2026-11-22T24:00:00Z", null], ["yesterday", null]]) {
	const read = page.parseInstant(text, true);
	is(read === null ? null : page.formatInstant(read), instant, `the time ${text}`);
}

for (const [time, unix] of [["2026-11-22T09:30:12.345678Z", "1795339812345.678"], ["1969-12-31T23:59:59.999999Z", "-0.001"], ["0001-01-01", "-62135596800000"]])
	is(page.unixTime(page.parseInstant(time)), unix, `the Unix time of ${time}`);

/* If the layout is not known */

const now = page.parseInstant("2026-11-22T10:00:00Z");
const guess = text => page.guesses(text, now).filter(row => row.plausible).map(row => row.layout.name).join();
const plausible = guess("1541815603606036480").split(",");
is(plausible.slice(0, 3).join(), "twitter,discord,instagram", "layouts that an ID of Twitter can be of");
ok(!["sonyflake", "mastodon", "pgedge", "javascript"].some(name => plausible.includes(name)), "and layouts that it cannot be of", plausible.join());
is(guess("9q7wrejc2222g222"), "sno", "a sno");
is(page.guesses("1541815603606036480", now).length, page.PRESETS.length, "others follow, with the reason");
done();
