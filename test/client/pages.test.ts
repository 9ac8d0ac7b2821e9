import { afterAll, beforeAll, expect, test } from "bun:test";
import { Ninefold } from "../../src/client/index.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { createRecorder, type Recorder } from "./support.ts";

const METERS = 230;

let server: TestServer;
let recorder: Recorder;
let nf: Ninefold;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  recorder = createRecorder();
  const { key } = await server.account({ tier: "unlimited" });
  nf = new Ninefold({ url: server.url, apiKey: key, fetch: recorder.fetch });
  await Promise.all(Array.from({ length: METERS }, () => nf.meter("m").refill(1)));
});
afterAll(() => server.stop());

function paths(): string[] {
  return recorder.requests.splice(0).map(({ path }) => path.replace(/cursor=[^&]+/, "cursor=…"));
}

test("a list is loaded by page with as few requests as possible", async () => {
  paths();
  const balances: number[] = [];
  for await (const entry of nf.meter("m").history()) balances.push(entry.balance_after);
  expect(balances).toEqual(Array.from({ length: METERS }, (_, at) => METERS - at));
  expect(paths()).toEqual(
    [
      "/v1/meter/m/history?limit=100",
      "/v1/meter/m/history?limit=100&cursor=…",
      "/v1/meter/m/history?limit=100&cursor=…",
    ].map((path) => path.replace("limit=100&cursor=…", "cursor=…&limit=100")),
  );
});

test("loads only the pages that are read", async () => {
  paths();
  for await (const entry of nf.meter("m").history({ limit: 10 })) {
    if (entry.sequence > 0) break;
  }
  expect(paths()).toEqual(["/v1/meter/m/history?limit=10"]);
  nf.meter("m").history();
  expect(paths()).toEqual([]);
});

test("page() returns the API's page with its cursor", async () => {
  paths();
  const first = await nf.meter("m").history().page();
  expect(first.entries).toHaveLength(50);
  const second = await nf.meter("m").history({ limit: 20, cursor: first.cursor }).page();
  expect(second.entries.map((entry) => entry.balance_after)).toEqual(
    Array.from({ length: 20 }, (_, at) => 180 - at),
  );
  const rest = await nf.meter("m").history({ cursor: second.cursor }).toArray();
  expect(rest.map((entry) => entry.balance_after)).toEqual(Array.from({ length: 160 }, (_, at) => 160 - at));
  const sizes: number[] = [];
  for await (const page of nf.meter("m").history({ limit: 100 }).pages()) sizes.push(page.entries.length);
  expect(sizes).toEqual([100, 100, 30]);
});

test("lists keys, whose cursor has another name", async () => {
  for (const name of ["a", "b", "c"]) await nf.keys.create({ prefix: "acme", name, scopes: ["x"] });
  const names: string[] = [];
  for await (const key of nf.keys.list({ limit: 2 })) names.push(key.name);
  expect(names).toEqual(["c", "b", "a"]);
});

test("a signal cancels the iteration between two pages", async () => {
  const controller = new AbortController();
  const walk = async (): Promise<number> => {
    let seen = 0;
    for await (const _ of nf.meter("m").history({ limit: 10 }, { signal: controller.signal })) {
      seen += 1;
      if (seen === 10) controller.abort("enough");
    }
    return seen;
  };
  expect(await walk().catch((reason) => reason)).toBe("enough");
});
