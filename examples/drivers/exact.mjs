// For the other examples: IDs that show whether a tool rounds, and a parser of JSON that does not.
import assert from "node:assert/strict";

// The largest ID of the layout "javascript", one that begins a tick, and the largest of the other layouts.  A number
// holds the first two, but prints the second one as 2116681624581046300.
export const ids = ["9007199254740991", "2116681624581046272", "9223372036854775807"];

// Whether these are the IDs, equal as text.
export const assertExact = (found) => assert.deepEqual(found.map(String).sort(), [...ids].sort());
export const assertRounded = (found) => assert.throws(() => assertExact(found), assert.AssertionError);

// JSON.parse(), except that integers of more than 15 digits become strings.
const tokens = /"(?:[^"\\]+|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
export const parseExactly = (json) => JSON.parse(json.replace(tokens, (token) => (/^-?\d{16,}$/.test(token) ? `"${token}"` : token)));

assert.deepEqual(parseExactly('{"9007199254740993": [9007199254740993, -9223372036854775808, 1.2345678901234567, 1e300, "\\"9007199254740993", 42]}'),
  { "9007199254740993": ["9007199254740993", "-9223372036854775808", 1.2345678901234567, 1e300, '"9007199254740993', 42] });
