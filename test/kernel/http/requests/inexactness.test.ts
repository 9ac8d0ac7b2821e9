import { expect, test } from "bun:test";
import { findInexactness } from "../../../../src/json-text.ts";
import { findInexactnessInSlices } from "../../../../src/kernel/http/requests/inexactness.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";

const large = `{"a":[${"1.50,".repeat(40_000)}1],"b":"${"x".repeat(400_000)}"`;

test.each([
  ["a body as it is written", '{"a":1.5,"b":2}'],
  ["another form", '{ "a": 1.50 }'],
  ["a number that a double cannot hold", '{"a":12345678901234567890}'],
  ["the same in another member", '{"a":1,"b":12345678901234567890}'],
  ["a name that occurs twice", '{"a":{"x":1,"x":2}}'],
  ["a large body", `${large}}`],
  [
    "a large body with a number that a double cannot hold",
    `${large.replace("1]", "12345678901234567890]")}}`,
  ],
])("finds the same as in one step: %s", async (_, text) => {
  const body: unknown = JSON.parse(text);
  expect(await findInexactnessInSlices(text, body, "a")).toEqual(findInexactness(text, body, "a"));
});

test("large bodies at the same time hold up no other request", async () => {
  const members = Array.from({ length: 49_000 }, (_, at) => `"number-${at}":1.50`);
  const text = `{"a":{${members.join(",")}}}`;
  const body: unknown = JSON.parse(text);
  const scanning = () =>
    longestTurnMs(async () => {
      const scans = Array.from({ length: 6 }, () => findInexactnessInSlices(text, body, "a"));
      expect(await Promise.all(scans)).toEqual(Array.from({ length: 6 }, () => null));
    });
  expect(await leastMs(TURN_MS_MAX, scanning)).toBeLessThanOrEqual(TURN_MS_MAX);
});
