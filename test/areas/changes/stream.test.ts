import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  add,
  type Changed,
  COALESCED_MS,
  HEARTBEAT_MS,
  IDS_PER_AREA_MAX,
  message,
  STREAMS_MAX,
  STREAMS_PER_CREDENTIAL_MAX,
} from "../../../src/areas/changes/domain.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { EventReader } from "../../support/event-reader.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { switchFlag } from "../audit/support.ts";
import { loggedIn, OWN_PAGE } from "../session/support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** The stream of changes, read as it comes. */
class Listener extends EventReader {
  /** Opens it with a client's key. */
  async open(client: Client, headers: Record<string, string> = {}): Promise<this> {
    const key: Record<string, string> = client.key === null ? {} : { authorization: `Bearer ${client.key}` };
    await this.read(`${client.url}/v1/changes`, { ...key, ...headers });
    await this.until((text) => text.includes("retry: 2000\n\n"));
    return this;
  }

  /** What came as messages so far. */
  get messages(): { at: number; areas: Record<string, true | string[]> }[] {
    return [...this.text.matchAll(/^event: changes\ndata: (.*)\n\n/gm)].map(([, data = ""]) =>
      JSON.parse(data),
    );
  }
}

async function keyWith(account: Client, scopes: readonly string[]): Promise<Client> {
  const { body } = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes });
  return server.client(String(body.secret));
}

describe("GET /v1/changes", () => {
  test("tells within half a second what another key has changed, all of it in one message", async () => {
    const account = await server.account();
    const other = await keyWith(account, ["gate:write", "meter:write"]);
    const listener = await new Listener().open(account);
    await switchFlag(other, "one", true);
    await switchFlag(other, "two", true);
    await other.post("/v1/meter/customer/refill", { amount: 1 });
    expect(listener.messages).toEqual([]);
    await server.clock.advance(COALESCED_MS);
    await listener.until(() => listener.messages.length === 1);
    expect(listener.messages).toEqual([
      { at: TEST_START_MS + COALESCED_MS, areas: { audit: true, gate: ["one", "two"], meter: true } },
    ]);
    // Nothing has changed since.
    await account.get("/v1/gate");
    await server.clock.advance(COALESCED_MS);
    const project = await account.post("/v1/projects", { name: "Shop" });
    await server.clock.advance(COALESCED_MS);
    await listener.until(() => listener.messages.length === 2);
    expect(listener.messages[1]?.areas).toEqual({ audit: true, projects: [String(project.body.id)] });
    listener.close();
  });

  test("tells what the server does by itself", async () => {
    const account = await server.account();
    const listener = await new Listener().open(account);
    await account.post("/v1/latch/job/acquire", { ttl: 1_000 });
    await server.clock.advance(COALESCED_MS);
    await listener.until(() => listener.messages.length === 1);
    await server.clock.advance(1_000);
    await server.clock.advance(COALESCED_MS);
    await listener.until(() => listener.messages.length === 2);
    expect(listener.messages[1]?.areas).toEqual({ latch: ["job"] });
    listener.close();
  });

  test("tells of areas that the key may read, and of nobody else's projects", async () => {
    const account = await server.account();
    const reader = await keyWith(account, ["gate:read"]);
    const project = await account.post("/v1/projects", { name: "Shop" });
    const all = await new Listener().open(account);
    const some = await new Listener().open(reader);
    const shop = await loggedIn(server, account.key);
    const headers = { ...OWN_PAGE, cookie: shop.cookie, "x-ninefold-project": String(project.body.id) };
    const inShop = await new Listener().open(server.client(null), headers);
    const stranger = await new Listener().open(await server.account());
    await account.post("/v1/meter/customer/refill", { amount: 1 });
    await switchFlag(account, "one", true);
    await server.clock.advance(COALESCED_MS);
    await all.until(() => all.messages.length === 1);
    await some.until(() => some.messages.length === 1);
    await inShop.until(() => inShop.messages.length === 1);
    expect(all.messages[0]?.areas).toEqual({ meter: true, audit: true, gate: ["one"] });
    expect(some.messages[0]?.areas).toEqual({ gate: ["one"] });
    expect(inShop.messages[0]?.areas).toEqual({ audit: true });
    expect(stranger.messages).toEqual([]);
    for (const one of [all, some, inShop, stranger]) one.close();
  });

  test("a refused change is told to nobody", async () => {
    const account = await server.account();
    const listener = await new Listener().open(account);
    expectError(await account.delete("/v1/gate/none"), "flag_not_found");
    expectError(await account.post("/v1/meter/m/deduct", { amount: 1 }), "insufficient_balance");
    await server.clock.advance(COALESCED_MS);
    await switchFlag(account, "one", true);
    await server.clock.advance(COALESCED_MS);
    await listener.until(() => listener.messages.length === 1);
    expect(Object.keys(listener.messages[0]?.areas ?? {}).sort()).toEqual(["audit", "gate"]);
    listener.close();
  });

  test("a comment keeps it open, and it ends when the key does", async () => {
    const account = await server.account();
    const client = await keyWith(account, ["gate:read"]);
    const listener = await new Listener().open(client);
    await server.clock.advance(HEARTBEAT_MS);
    await listener.until((text) => text.endsWith(": still here\n\n"));
    const keys = (await account.get("/v1/keys")).body.keys as { id: string }[];
    await account.delete(`/v1/keys/${keys[0]?.id}`);
    expect(listener.hasEnded).toBe(false);
    await server.clock.advance(HEARTBEAT_MS);
    await listener.until((_text, hasEnded) => hasEnded);
  });

  test(`429 for more than ${STREAMS_PER_CREDENTIAL_MAX} of one key, until one is closed; HEAD takes no place`, async () => {
    const account = await server.account();
    const open: Listener[] = [];
    for (let index = 0; index < STREAMS_PER_CREDENTIAL_MAX; index += 1) {
      expect((await account.send("HEAD", "/v1/changes")).status).toBe(200);
      open.push(await new Listener().open(account));
    }
    expectError(await account.get("/v1/changes"), "rate_limit_exceeded");
    open.pop()?.close();
    let again: Listener | null = null;
    for (let tries = 0; again === null && tries < 500; tries += 1) {
      await Bun.sleep(10);
      again = await new Listener().open(account).catch(() => null);
    }
    expect(again).not.toBeNull();
    for (const one of [...open, again]) one?.close();
  });

  test("401 without a key", async () => {
    expectError(await server.client(null).get("/v1/changes"), "unauthorized");
  });
});

test(`the server has ${STREAMS_MAX} streams at most, and ends them all when it stops`, async () => {
  const own = await startTestServer();
  const listeners: Listener[] = [];
  try {
    for (let made = 0; made < STREAMS_MAX; made += STREAMS_PER_CREDENTIAL_MAX) {
      const { body } = await own.operator.post("/v1/keys", {
        prefix: "sm",
        name: "k",
        scopes: ["gate:read"],
      });
      const client = own.client(String(body.secret));
      const some = Array.from({ length: STREAMS_PER_CREDENTIAL_MAX }, () => new Listener().open(client));
      listeners.push(...(await Promise.all(some)));
    }
    expectError(await own.operator.get("/v1/changes"), "rate_limit_exceeded");
  } finally {
    const begun = performance.now();
    await own.stop();
    expect(performance.now() - begun).toBeLessThan(5_000);
  }
  await Promise.all(listeners.map((one) => one.until((_text, hasEnded) => hasEnded)));
}, 60_000);

test(`a message names ${IDS_PER_AREA_MAX} ids of an area at most`, () => {
  const changed: Changed = new Map();
  for (let id = 1; id <= IDS_PER_AREA_MAX; id += 1) add(changed, "gate", `flag-${id}`);
  add(changed, "gate", "flag-1");
  expect(JSON.parse(message(0, changed).split("data: ")[1] ?? "").areas.gate).toHaveLength(IDS_PER_AREA_MAX);
  add(changed, "gate", "flag-0");
  add(changed, "meter", "m");
  add(changed, "meter", null);
  add(changed, "meter", "n");
  expect(message(1, changed)).toBe('event: changes\ndata: {"at":1,"areas":{"gate":true,"meter":true}}\n\n');
});
