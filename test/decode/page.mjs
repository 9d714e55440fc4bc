// The page docs/decode.html as the tests see it: its scripts, and their sums; and lines of TAP.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import vm from "node:vm";

export const top = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const file = join(top, "docs/decode.html");
export const html = readFileSync(file, "utf8");

const contents = tag => [...html.matchAll(new RegExp(`<${tag}[^>]*>(.*?)</${tag}>`, "gs"))].map(found => found[1]);
export const scripts = contents("script");
export const styles = contents("style");

// As a Content-Security-Policy names a script.
export const sum = text => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

// The definitions of the first script.
export const arithmetic = () => vm.runInNewContext(`${scripts[0]}; Snowflake`, {});

// The rows of a table of published values.
export function table(name) {
	const [heads, ...lines] = readFileSync(join(top, "test/vectors", name), "utf8").trim().split(/\r?\n/).map(line => line.split(","));

	return lines.map(line => Object.fromEntries(heads.map((head, i) => [head, line[i]])));
}

let number = 0;
let failed = 0;

export function ok(good, name, ...diagnostics) {
	number++;
	failed += good ? 0 : 1;
	console.log(`${good ? "ok" : "not ok"} ${number} - ${name}`);
	for (const line of good ? [] : diagnostics.join("\n").split("\n")) console.log(`#   ${line}`);
}

export const is = (got, wanted, name) => ok(String(got) === String(wanted), name, `got:    ${got}`, `wanted: ${wanted}`);

export function done() {
	console.log(`1..${number}`);
	process.exitCode = failed ? 1 : 0;
}
