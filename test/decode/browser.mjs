// Tests docs/decode.html in Chromium, without a window, by playwright-core: the display of the page for
// published values, in both directions, links, errors, and that it loads nothing.  Prints TAP.
//
//   CHROMIUM=chromium MODULES=DIRECTORY [SCREENSHOTS=DIRECTORY] node test/decode/browser.mjs
//
// playwright-core is installed in the directory MODULES (test/decode/run).
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { done, file, is, ok, table, top } from "./page.mjs";

const { chromium } = createRequire(join(process.env.MODULES, "/"))("playwright-core");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM });
const page = await browser.newPage({ timezoneId: "Australia/Adelaide" });
const url = String(pathToFileURL(file));
const requests = [];
const messages = [];

page.on("request", request => requests.push(request.url().replace(/#.*/, "")));
page.on("pageerror", error => messages.push(String(error)));
page.on("console", message => messages.push(message.text()));

/* A user's actions, and the display */

async function open(fragment = "") {
	await page.goto("about:blank");
	await page.goto(url + fragment);
}

const element = id => page.locator(`#${id}`);
const type = (id, text) => id === "layout" ? element(id).selectOption(text) : element(id).fill(text);
const click = selector => page.click(selector);
const shown = async key => (await page.locator(`[data-key=${key}]`).allTextContents()).join();
const text = id => element(id).textContent();
const value = id => element(id).inputValue();
const evaluate = expression => page.evaluate(expression);

// The fragment of the address, once it contains a text.
const address = async part => (await page.waitForFunction(part => location.hash.includes(part) && location.hash.slice(1), part)).jsonValue();

/*
 * Compares the page with a table of published values, in both directions.  Runs in the page:
 * returns the differences.
 */
function readAndEncode(rows) {
	const wrong = [];
	const element = id => document.getElementById(id);
	const enter = (id, value) => { element(id).value = value; element(id).dispatchEvent(new Event("input", { bubbles: true })); };
	const shown = key => document.querySelector(`[data-key=${key}]`)?.textContent;

	for (const { id, time, fields } of rows) {
		enter("id", id);
		for (const [key, wanted] of Object.entries({ time, ...fields })) if (shown(key) !== wanted) wrong.push(`${id} has ${key} ${shown(key)}, and not ${wanted}`);
		enter("id", "");
		enter("time", time);
		for (const [key, value] of Object.entries(fields)) {
			if (key !== "tick_tock") enter(`field-${key}`, value);
			else if (element("field-tick_tock").checked !== (value === "true")) element("field-tick_tock").click();
		}
		if (shown("encoded") !== id) wrong.push(`the fields of ${id} are those of ${shown("encoded")}`);
		enter("time", "");
	}
	return wrong;
}

async function testPublished(layout, rows) {
	await open();
	await type("layout", layout);
	const wrong = await page.evaluate(readAndEncode, rows);
	ok(rows.length > 0 && !wrong.length, `${layout}: ${rows.length} published IDs, read and encoded`, ...wrong);
}

async function testLinks() {
	await open("#id=2124435266734157824&layout=discord&time=2026-11-22T09:30:12.345Z&machine=7&sequence=9");
	is(await shown("time"), "2031-01-19T07:47:17.688Z", "a link is opened with its ID and layout");
	is(await shown("encoded"), "1573993997276311561", "and with its time and fields");
	await type("layout", "twitter");
	is(await shown("time"), "2026-11-22T09:30:12.345Z", "another layout is chosen");
	is(await shown("local"), "2026-11-22 20:00:12.345 +10:30 (Australia/Adelaide)", "the local time");
	is(await shown("machine"), "7", "the machine ID");
	is(await address("layout=twitter"), "id=2124435266734157824&time=2026-11-22T09%3A30%3A12.345Z&machine=7&sequence=9&layout=twitter", "the address follows the inputs");
	await type("layout", "custom");
	await type("custom", "epoch=2024-01-01 tick=10us timestamp=47 machine=8 sequence=8");
	await type("id", "1tyw2kt700w00");
	const time = await shown("time");
	await open(`#${await address("id=1tyw2kt700w00")}`);
	is([await shown("time"), await value("custom")], [time, "epoch=2024-01-01 tick=10us timestamp=47 machine=8 sequence=8"], "a link with a definition");
	is(time, "2034-04-09T21:18:16.120320Z", "whose ticks are shorter than a millisecond");
}

// The links that docs/decode.md shows, and one that is opened in a page that is open.
async function testLinksOfDocs() {
	const links = [...readFileSync(join(top, "docs/decode.md"), "utf8").matchAll(/^decode\.html(#\S+)$/gm)].map(found => found[1]);

	for (const link of links) {
		await open(link);
		ok(await evaluate(`[...document.querySelectorAll(".error")].every(one => !one.textContent) && document.querySelectorAll("dl").length > 0`), `${link} of docs/decode.md`);
	}
	ok(links.length >= 3, "docs/decode.md has links");
	await evaluate(`new Promise(resolve => { addEventListener("hashchange", resolve); location.hash = "#id=175928847299117063&layout=discord"; })`);
	is(await shown("time"), "2016-04-30T11:18:25.796Z", "a link is opened in the same page");
	await type("id", "1234567890123");
	is(await shown("decimal"), "1234567890123", "13 digits are a decimal number");
	await click("#id-note button");
	is(await shown("base32"), "1234567890123", "and base 32 if asked for");
}

async function testErrors() {
	await open("#layout=javascript");
	for (const [value, error] of [["abc", /^This is not an ID/], ["-7", /no ID is negative/], ["99999999999999999999999", /greatest bigint/],
		["9007199254740992", /greatest ID of the layout is 9007199254740991/], ["2.1E+18", /was rounded/], ["<img src=x onerror=alert(1)>", /^This is not an ID/]]) {
		await type("id", value);
		ok(error.test(await text("id-error")) && await text("id-result") === "", `${value} is refused`, await text("id-error"));
	}
	is(await element("id").getAttribute("aria-invalid"), "true", "the input is marked");
	is(await evaluate("document.images.length"), 0, "text is never HTML");
	await type("time", "tomorrow");
	ok(/is not a time/.test(await text("time-error")), "a time that is none", await text("time-error"));
	await type("time", "2019-12-31");
	ok(/first tick begins at 2020-01-01/.test(await text("time-error")), "a time before the epoch", await text("time-error"));
	is(await shown("boundary"), "0", "it has a boundary");
	await type("time", "2026-01-01");
	await type("field-machine", "32");
	is(await text("time-error"), "Machine ID 32 is out of range. The layout has 5 bits for it: 0 to 31.", "a machine ID that is too large");
	await type("layout", "custom");
	await type("custom", "epoch=2024-01-01 tick=1ms timestamp=41 machine=99");
	is(await text("layout-error"), 'At character 48, field "machine" has more than 63 bits.', "a definition that is none");
	await type("layout", "twitter");
	await type("id", "9q7wrejc2222g222");
	is([await shown("time"), await text("id-error"), await value("layout")], ["2026-11-21T16:54:27.668Z", "", "twitter"], "a sno is decoded in any layout");
	await type("layout", "sno");
	await type("id", "2124435266734157824");
	await click("#id-note button");
	is(await value("layout"), "unknown", "a bigint in the layout sno: the page offers the other layouts");
}

async function testRanges() {
	await open("#layout=twitter&time=2026-11-20&until=2026-11-21");
	is(await shown("between"), "id >= 2123566994027446272 AND id < 2123929381893046272", "the IDs of a day, as README.md has them");
	await type("layout", "sno");
	await type("until", "2099-01-01");
	is(await shown("between"), `id >= '${await shown("boundary")}'`, "a range that ends after the layout");
	await type("time", "2026-11-21 17:54:27.669+01:00");
	is([await shown("lowest"), await shown("highest")], ["9q7wrejc22222222", "9q7wrejdxxxxxxxx"], "the lowest and the highest sno of a tick");
}

async function testUnknown() {
	const order = () => evaluate(`[...document.querySelectorAll("#id-result tbody tr")].map(row => row.dataset.layout + (row.className ? "?" : "")).join()`);

	await open("#layout=unknown&id=1541815603606036480&time=2022-01-01");
	is((await order()).split(",").filter(name => !name.endsWith("?")).slice(0, 2), "twitter,discord", "not known: plausible layouts first");
	is((await order()).split(",").length, 7, "and all others");
	is(await evaluate("document.querySelectorAll('#time-result tbody tr').length"), 8, "the boundary of a time in all layouts");
	await click("#id-result tbody button");
	is(await shown("time"), "2022-06-28T16:07:40.105Z", "a layout is chosen from the table");
	await click("#id-result button");
	is([await value("layout"), (await order()).split(",").length], ["unknown", 7], "beside a result, the page offers to show all layouts");
}

// Contrast of text and background, as WCAG 2 defines it, where it is least.
const leastContrast = `(() => {
	const light = color => { const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map(Number).map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = element => { for (; element; element = element.parentElement) { const color = getComputedStyle(element).backgroundColor; if (!/, 0\\)$/.test(color)) return color; } };
	return Math.min(...[...document.querySelectorAll("main *")].filter(one => one.offsetParent && [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim())).map(one => {
		const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); }));
})()`;

async function testLooks() {
	for (const scheme of ["light", "dark"]) {
		await page.emulateMedia({ colorScheme: scheme });
		for (const [name, width, fragment] of [["sno", 1000, "#layout=sno&id=9q7wrejc2222g222&time=2026-11-21&partition=7"], ["unknown", 1000, "#layout=unknown&id=1541815603606036480"],
			["narrow", 320, "#layout=sonyflake&id=2124435266734157824&time=2026-11-22T09:30Z&until=2026-11-23&machine=7"], ["wide", 1000, "#layout=javascript&id=13&time=soon&layout=twitter"],
			["errors", 600, "#layout=javascript&id=2124435266734157824&time=1999-01-01"], ["narrow-unknown", 320, "#layout=unknown&id=1541815603606036480"],
			["twitter", 1000, "#layout=twitter&id=2124435266734157824&time=2026-11-22T09:30:12.345Z&until=2026-11-23&machine=7"]]) {
			await page.setViewportSize({ width, height: 700 });
			await open(fragment);
			const [scroll, contrast, unlabelled] = [await evaluate("document.documentElement.scrollWidth"), await evaluate(leastContrast),
				await evaluate("[...document.querySelectorAll('input, select')].filter(one => !one.labels.length).length")];
			ok(scroll <= width && contrast >= 4.5 && unlabelled === 0, `${name}, ${scheme}: fits ${width} pixels, contrast is sufficient, inputs have labels`,
				`width ${scroll}, contrast ${contrast}, without a label ${unlabelled}`);
			if (process.env.SCREENSHOTS) await page.screenshot({ fullPage: true, path: join(process.env.SCREENSHOTS, `${name}-${scheme}.png`) });
		}
	}
}

async function testNetwork() {
	await open();
	is(messages.join("\n"), "", "no error and no message of the page");
	is([...new Set(requests)].filter(url => url !== "about:blank").join(), url, "the page loads nothing but itself");
	is(await evaluate(`new Promise(resolve => { addEventListener("securitypolicyviolation", event => resolve(event.effectiveDirective)); fetch("http://127.0.0.1:9/").catch(() => {}); })`),
		"connect-src", "and its policy refuses to");
}

async function main() {
	const known = table("known_ids.csv").map(row => ({ ...row, time: row.time_rfc3339_ms_utc, fields: { machine: row.machine10_or_shard13, sequence: row.sequence } }));
	for (const system of ["twitter", "discord", "instagram"]) await testPublished(system, known.filter(row => row.system === system));
	await testPublished("sonyflake", table("sonyflake.csv").map(row => ({ id: row.decimal_u64, time: row.time_rfc3339_ms_utc, fields: { machine: row.machine_id, sequence: row.sequence } })));
	await testPublished("sno", table("sno_codec.csv").map(row => ({ id: row.text, time: row.time_rfc3339_ms_utc,
		fields: { tick_tock: String(row.tick === "1"), metabyte: row.meta, partition: row.partition, sequence: row.sequence } })));
	await testLinks();
	await testLinksOfDocs();
	await testRanges();
	await testErrors();
	await testUnknown();
	await testLooks();
	await testNetwork();
}

try {
	await main();
} catch (error) {
	ok(false, "the tests ran to their end", error.stack);
}
await browser.close();
done();
