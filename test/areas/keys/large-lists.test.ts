import { afterAll, beforeAll, expect, test } from "bun:test";
import { REVOKED_PER_UNIT } from "../../../src/areas/keys/service.ts";
import type { Client } from "../../support/client.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { newestOf } from "../audit/support.ts";

const KEYS = 1_050;
/** The largest metadata of a key. */
const METADATA = Object.fromEntries(Array.from({ length: 31 }, (_, at) => [`tag-${at}`, "x".repeat(500)]));

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ tier: "unlimited" });
  await makeKeys(account, KEYS, "acme");
}, 60_000);
afterAll(() => server.stop());

async function makeKeys(client: Client, count: number, owner_id: string): Promise<void> {
  const terms = {
    prefix: "acme",
    name: "k",
    scopes: ["x"],
    environment: "live",
    owner_id,
    metadata: METADATA,
  };
  for (let start = 0; start < count; start += 50) {
    const some = Array.from({ length: Math.min(50, count - start) }, () => client.post("/v1/keys", terms));
    for (const { status, text } of await Promise.all(some)) expect(status, text).toBe(201);
  }
}

const leastTurnMs = (work: () => Promise<unknown>): Promise<number> =>
  leastMs(TURN_MS_MAX, () => longestTurnMs(work));

test("listing an environment that none of 1,050 large keys is in does not delay other requests", async () => {
  const [path, owned] = ["/v1/keys?environment=nobody", "/v1/keys?environment=nobody&owner_id=acme"];
  for (const item of [path, owned]) {
    const { body } = await account.get(item);
    expect(body).toMatchObject({ keys: [], has_more: true });
    const rest = await account.get(`${item}&cursor=${body.next_cursor}`);
    expect(rest.body).toEqual({ keys: [], has_more: false, next_cursor: null });
    expect(await leastTurnMs(() => account.get(item))).toBeLessThanOrEqual(TURN_MS_MAX);
  }
});

test("the list of an owner does not read the keys of other owners", async () => {
  await makeKeys(account, 1, "other");
  const { body } = await account.get("/v1/keys?owner_id=other&environment=live");
  expect(body).toMatchObject({ keys: [{ owner_id: "other" }], has_more: false });
  expect(await leastTurnMs(() => account.get("/v1/keys?owner_id=other"))).toBeLessThanOrEqual(TURN_MS_MAX);
});

test("a page of large keys ends early, and no key is omitted", async () => {
  const seen = new Set<string>();
  let pages = 0;
  for (let cursor = ""; ; pages += 1) {
    const { body } = await account.get(`/v1/keys?limit=100&environment=live${cursor}`);
    for (const { id } of body.keys as { id: string }[]) seen.add(id);
    if (body.has_more !== true) break;
    cursor = `&cursor=${body.next_cursor}`;
  }
  expect(seen.size).toBe(KEYS + 1);
  expect(pages).toBeGreaterThan(KEYS / 100);
  expect(await leastTurnMs(() => account.get("/v1/keys?limit=100"))).toBeLessThanOrEqual(TURN_MS_MAX);
});

test("the keys of an owner are revoked in several units of work", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const count = 5 * REVOKED_PER_UNIT + 1;
  await makeKeys(owner, count, "acme");
  let answer = { status: 0, body: {} as Record<string, unknown> };
  const longest = await longestTurnMs(async () => {
    answer = await owner.post("/v1/keys/revoke", { owner_id: "acme" });
  });
  expect(answer).toMatchObject({ status: 200, body: { revoked: count, more: false } });
  expect(longest).toBeLessThanOrEqual(TURN_MS_MAX);
  expect((await newestOf(owner)).after).toEqual({ revoked: count });
  expect((await owner.post("/v1/keys/revoke", { owner_id: "acme" })).body).toEqual({
    revoked: 0,
    more: false,
  });
  let active = 0;
  for (let cursor = "?limit=100"; cursor !== ""; ) {
    const { body } = await owner.get(`/v1/keys${cursor}`);
    active += (body.keys as { revoked_at: string | null }[]).filter(
      ({ revoked_at }) => revoked_at === null,
    ).length;
    cursor = body.has_more === true ? `?limit=100&cursor=${body.next_cursor}` : "";
  }
  expect(active).toBe(0);
}, 60_000);
