import { afterAll, beforeAll, expect, test } from "bun:test";
import { REDUCED_SIDE } from "../../../src/kernel/audit/redaction.ts";
import { DEFAULT_TIERS } from "../../../src/kernel/limits/tiers.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { entriesOf, newestOf, switchFlag } from "./support.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Writes a few large entries. */
const BUDGET = 20_000;

let server: TestServer;
beforeAll(async () => {
  const free = { ...DEFAULT_TIERS.free, auditBytesPerDay: BUDGET };
  server = await startTestServer({ manualClock: true, config: { tiers: { ...DEFAULT_TIERS, free } } });
});
afterAll(() => server.stop());

const LARGE = { type: "string", variants: { a: "x".repeat(3_500) }, default: { variant: "a" } };

test("above the daily budget of an account, entries are shortened, and none is dropped", async () => {
  const client = await server.account({ tier: "free" });
  const other = await server.account({ tier: "free" });
  const agent = { headers: { "user-agent": "a".repeat(300) } };
  for (let at = 0; at < 10; at += 1) {
    const saved = await client.post("/v1/gate", { flag_key: `f${at}`, enabled: true, ...LARGE }, agent);
    expect(saved.status).toBe(201);
  }
  const entries = (await entriesOf(client)).toReversed();
  expect(entries).toHaveLength(10);
  expect(entries[0]).toMatchObject({ after: LARGE, user_agent: "a".repeat(300) });
  expect(entries[0]?.truncated).toBeUndefined();
  const shortened = entries.filter(({ truncated }) => truncated === true);
  expect(shortened).toHaveLength(5);
  for (const { after, user_agent } of shortened) {
    expect(JSON.stringify(after).length).toBeLessThanOrEqual(REDUCED_SIDE.bytesMax);
    expect(after).toMatchObject({ enabled: true, type: "string" });
    expect(user_agent).toBe("a".repeat(64));
  }
  // The entry of a switch fits, and other accounts have separate budgets.
  await switchFlag(client, "f0", false);
  expect(await newestOf(client)).toMatchObject({ before: { enabled: true }, after: { enabled: false } });
  expect((await newestOf(client)).truncated).toBeUndefined();
  await other.post("/v1/gate", { flag_key: "f", enabled: true, ...LARGE });
  expect(await newestOf(other)).toMatchObject({ after: LARGE });
});

test("the budget is counted across a restart and starts again at 00:00 UTC", async () => {
  const client = await server.account({ tier: "free" });
  const save = (flag_key: string) => client.post("/v1/gate", { flag_key, enabled: true, ...LARGE });
  for (let at = 0; at < 7; at += 1) await save(`f${at}`);
  expect((await newestOf(client)).truncated).toBe(true);
  await server.restart();
  await server.client(client.key).post("/v1/gate", { flag_key: "again", enabled: true, ...LARGE });
  expect((await newestOf(server.client(client.key))).truncated).toBe(true);
  await server.clock.advance(DAY_MS);
  await server.client(client.key).post("/v1/gate", { flag_key: "later", enabled: true, ...LARGE });
  expect((await newestOf(server.client(client.key))).truncated).toBeUndefined();
});
