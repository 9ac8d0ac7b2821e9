import { expect, test } from "bun:test";
import { Ninefold } from "../../src/client/index.ts";
import { WARNINGS_REPORTED_MAX } from "../../src/client/transport.ts";

function clientWith(bodies: readonly object[], onWarning?: (warning: string) => void) {
  let at = 0;
  const fetch = () => Promise.resolve(Response.json(bodies[at++ % bodies.length]));
  return new Ninefold({ url: "http://127.0.0.1:1", apiKey: null, fetch, onWarning });
}

test("each distinct warning of the server is reported once", async () => {
  const reported: string[] = [];
  const bodies = [{ pong: true, warnings: ["a", "b"] }, { pong: true, warnings: ["b", "c"] }, { pong: true }];
  const nf = clientWith(bodies, (warning) => reported.push(warning));
  for (let round = 0; round < 6; round += 1) await nf.ping();
  expect(reported).toEqual(["a", "b", "c"]);
});

test(`at most ${WARNINGS_REPORTED_MAX} are reported`, async () => {
  let count = 0;
  const bodies = Array.from({ length: WARNINGS_REPORTED_MAX + 1 }, (_, at) => ({ warnings: [`w${at}`] }));
  const nf = clientWith(bodies, () => {
    count += 1;
  });
  for (const _ of bodies) await nf.ping();
  expect(count).toBe(WARNINGS_REPORTED_MAX);
});

test.each([
  ["development", 1],
  ["production", 0],
])("by default they are printed, unless NODE_ENV is production: %s", async (mode, printed) => {
  const { warn } = console;
  const { NODE_ENV } = process.env;
  const lines: unknown[] = [];
  console.warn = (line: unknown) => lines.push(line);
  process.env["NODE_ENV"] = mode;
  try {
    await clientWith([{ warnings: ["Unknown field `x`."] }]).ping();
  } finally {
    console.warn = warn;
    if (NODE_ENV !== undefined) process.env["NODE_ENV"] = NODE_ENV;
  }
  expect(lines).toEqual(Array.from({ length: printed }, () => "Ninefold: Unknown field `x`."));
});
