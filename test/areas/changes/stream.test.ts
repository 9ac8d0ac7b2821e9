import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  addChange,
  type Changed,
  COALESCED_MS,
  changesMessage,
  HEARTBEAT_MS,
  IDS_PER_AREA_MAX,
  STREAMS_MAX,
  STREAMS_PER_CREDENTIAL_MAX,
} from "../../../src/areas/changes/domain.ts";
import { ACCOUNT_PART } from "../../../src/kernel/http/access/connection-slots.ts";
import type { Answer, Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { EventReader } from "../../support/event-reader.ts";
import { eventually } from "../../support/eventually.ts";
import { type AccountClient, startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { switchFlag } from "../audit/support.ts";
import { loggedIn, OWN_PAGE } from "../session/support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--trust-proxy", "127.0.0.1"] });
});
afterAll(() => server.stop());

/** Reads the stream of changes. */
class Listener extends EventReader {
  /** Opens the stream with a client's key. */
  async open(client: Client, headers: Record<string, string> = {}): Promise<this> {
    const key: Record<string, string> = client.key === null ? {} : { authorization: `Bearer ${client.key}` };
    await this.read(`${client.url}/v1/changes`, { ...key, ...headers });
    await this.until((text) => text.includes("retry: 2000\n\n"));
    return this;
  }

  private forgotten = 0;

  /** Omits the messages until now from {@link areas}. */
  forget(): void {
    this.forgotten = this.messages.length;
  }

  /** The changes of all messages together. */
  get areas(): Record<string, true | string[]> {
    const areas: Record<string, true | string[]> = {};
    for (const message of this.messages.slice(this.forgotten)) {
      for (const [area, ids] of Object.entries(message.areas)) {
        const known = areas[area];
        areas[area] = known === true || ids === true ? true : [...new Set([...(known ?? []), ...ids])];
      }
    }
    return areas;
  }

  /** Waits until these areas have changed, and expects exactly these changes. */
  async expectChanges(areas: Record<string, unknown>): Promise<void> {
    await this.until(
      () => Bun.deepEquals(this.areas, areas) || Object.keys(this.areas).some((area) => !(area in areas)),
    );
    expect(this.areas).toEqual(areas as Record<string, true | string[]>);
  }

  /** The messages received so far. */
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
  test("sends the changes of another key within half a second, in one message", async () => {
    const account = await server.account();
    const other = await keyWith(account, ["gate:write", "meter:write"]);
    const listener = await new Listener().open(account);
    await switchFlag(other, "one", true);
    await switchFlag(other, "two", true);
    await other.post("/v1/meter/customer/refill", { amount: 1 });
    expect(listener.messages).toEqual([]);
    await listener.expectChanges({ audit: true, gate: ["one", "two"], meter: true });
    expect(listener.messages[0]?.at).toBe(TEST_START_MS);
    listener.forget();
    // A read is no change.
    await account.get("/v1/gate");
    const project = await account.post("/v1/projects", { name: "Shop" });
    await listener.expectChanges({ audit: true, projects: [String(project.body.id)] });
    listener.close();
  });

  test("sends changes that the server causes", async () => {
    const account = await server.account();
    const listener = await new Listener().open(account);
    await account.post("/v1/latch/job/acquire", { ttl: 1_000 });
    await listener.until(() => "latch" in listener.areas);
    listener.forget();
    await server.clock.advance(1_000);
    await listener.expectChanges({ latch: ["job"] });
    listener.close();
  });

  test("sends changes of areas that the key can read, and of no other account's projects", async () => {
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
    await all.expectChanges({ meter: true, audit: true, gate: ["one"] });
    await some.expectChanges({ gate: ["one"] });
    await inShop.expectChanges({ audit: true });
    expect(stranger.messages).toEqual([]);
    for (const item of [all, some, inShop, stranger]) item.close();
  });

  test("sends nothing for a rejected change", async () => {
    const account = await server.account();
    const listener = await new Listener().open(account);
    expectError(await account.delete("/v1/gate/none"), "flag_not_found");
    expectError(await account.post("/v1/meter/m/deduct", { amount: 1 }), "insufficient_balance");
    await switchFlag(account, "one", true);
    await listener.expectChanges({ audit: true, gate: ["one"] });
    listener.close();
  });

  test("sends a key of one project no change outside its project", async () => {
    const account = await server.account();
    const [shop, other] = [
      await account.post("/v1/projects", { name: "Shop" }),
      await account.post("/v1/projects", { name: "Other" }),
    ];
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const keyOf = async ({ body }: { body: Record<string, unknown> }) =>
      (await account.post(`/v1/projects/${body.id}/keys`, terms)).body;
    const bound = await new Listener().open(server.client(String((await keyOf(shop)).secret)));
    const whole = await new Listener().open(account);
    // Outside: a key and a flag of another project, a key of the account, a login, the other project.
    const created = await keyOf(other);
    await switchFlag(server.client(String(created.secret)), "elsewhere", true);
    const ofAccount = await keyWith(account, ["gate:*"]);
    await switchFlag(ofAccount, "in-default", true);
    await account.patch(`/v1/projects/${other.body.id}`, { name: "Others" });
    await loggedIn(server, account.key);
    await whole.until(() => JSON.stringify(whole.areas).includes(String(created.key_id)));
    await whole.until(() => JSON.stringify(whole.areas).includes(String(other.body.id)));
    // Inside.
    const own = await keyOf(shop);
    await account.patch(`/v1/projects/${shop.body.id}`, { name: "Shops" });
    await bound.expectChanges({ audit: true, keys: [own.key_id], projects: [shop.body.id] });
    expect(bound.messages.length).toBeLessThanOrEqual(3);
    for (const item of [bound, whole]) item.close();
  });

  test("sends a key of the account without * only the audit entries of its project", async () => {
    const account = await server.account();
    const reader = await keyWith(account, ["gate:read", "audit:read"]);
    const listener = await new Listener().open(reader);
    await account.post("/v1/projects", { name: "Shop" });
    await keyWith(account, ["gate:*"]);
    await Bun.sleep(2 * COALESCED_MS);
    expect(listener.messages).toEqual([]);
    await switchFlag(account, "one", true);
    await listener.expectChanges({ audit: true, gate: ["one"] });
    listener.close();
  });

  const ENDINGS: Readonly<Record<string, (account: AccountClient, keyId: string) => Promise<Answer>>> = {
    "its key is revoked": (account, id) => account.delete(`/v1/keys/${id}`),
    "its key is paused": (account, id) => account.patch(`/v1/keys/${id}`, { enabled: false }),
    "its owner's keys are revoked": (account) => account.post("/v1/keys/revoke", { owner_id: "owner" }),
    "its account is suspended": ({ userId }) =>
      server.operator.patch(`/v1/admin/accounts/${userId}`, { suspended: true }),
  };

  test.each(Object.entries(ENDINGS))("ends immediately when %s, also for a session", async (_, end) => {
    const account = await server.account();
    const terms = { prefix: "sm", name: "k", scopes: ["gate:read"], owner_id: "owner" };
    const { body } = await account.post("/v1/keys", terms);
    const client = server.client(String(body.secret));
    const { cookie } = await loggedIn(server, String(body.secret));
    const both = [
      await new Listener().open(client),
      await new Listener().open(server.client(null), { ...OWN_PAGE, cookie }),
    ];
    // Earlier changes are not sent any more.
    await switchFlag(account, "one", true);
    expect((await end(account, String(body.key_id))).status).toBe(200);
    const begun = performance.now();
    await Promise.all(both.map((item) => item.until((_text, hasEnded) => hasEnded)));
    // Otherwise the next heartbeat would notice it.
    expect(performance.now() - begun).toBeLessThan(HEARTBEAT_MS / 2);
  });

  test("ends immediately when the platform key is replaced, and when the session ends", async () => {
    const account = await server.account();
    const mine = await loggedIn(server, account.key);
    const session = await new Listener().open(server.client(null), { ...OWN_PAGE, cookie: mine.cookie });
    const key = await new Listener().open(account);
    expect((await mine.delete("/v1/session")).status).toBe(204);
    await session.until((_text, hasEnded) => hasEnded);
    expect(key.hasEnded).toBe(false);
    expect((await account.post("/v1/keys/rotate", { grace_hours: 0 })).status).toBe(200);
    await key.until((_text, hasEnded) => hasEnded);
  });

  test(`429 for more than ${STREAMS_PER_CREDENTIAL_MAX} of one key, until one is closed; HEAD does not count`, async () => {
    const account = await server.account();
    const open: Listener[] = [];
    for (let index = 0; index < STREAMS_PER_CREDENTIAL_MAX; index += 1) {
      expect((await account.send("HEAD", "/v1/changes")).status).toBe(200);
      open.push(await new Listener().open(account));
    }
    expectError(await account.get("/v1/changes"), "rate_limit_exceeded");
    open.pop()?.close();
    await eventually(async () => open.push(await new Listener().open(account)));
    for (const one of open) one.close();
  });

  test("401 without a key", async () => {
    expectError(await server.client(null).get("/v1/changes"), "unauthorized");
  });
});

test(`the server has at most ${STREAMS_MAX} streams and ends them when it stops`, async () => {
  const separateServer = await startTestServer();
  const listeners: Listener[] = [];
  try {
    const perAccount = STREAMS_MAX * ACCOUNT_PART;
    let account: Client = separateServer.operator;
    for (let count = 0; count < STREAMS_MAX; count += STREAMS_PER_CREDENTIAL_MAX) {
      if (count > 0 && count % perAccount === 0) {
        const { error } = expectError(await account.get("/v1/changes"), "rate_limit_exceeded");
        expect(error.message).toContain("of this account");
        account = await separateServer.account();
      }
      const { body } = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["gate:read"] });
      const client = separateServer.client(String(body.secret));
      const some = Array.from({ length: STREAMS_PER_CREDENTIAL_MAX }, () => new Listener().open(client));
      listeners.push(...(await Promise.all(some)));
    }
    const { error } = expectError(
      await (await separateServer.account()).get("/v1/changes"),
      "rate_limit_exceeded",
    );
    expect(error.message).toContain("of this server");
  } finally {
    await separateServer.stop();
  }
  await Promise.all(listeners.map((listener) => listener.until((_text, hasEnded) => hasEnded)));
  expect(listeners.filter(({ isComplete }) => !isComplete)).toEqual([]);
}, 60_000);

test(`a message contains at most ${IDS_PER_AREA_MAX} ids of an area`, () => {
  const changed: Changed = new Map();
  for (let id = 1; id <= IDS_PER_AREA_MAX; id += 1) addChange(changed, "gate", `flag-${id}`);
  addChange(changed, "gate", "flag-1");
  expect(JSON.parse(changesMessage(0, changed).split("data: ")[1] ?? "").areas.gate).toHaveLength(
    IDS_PER_AREA_MAX,
  );
  addChange(changed, "gate", "flag-0");
  addChange(changed, "meter", "m");
  addChange(changed, "meter", null);
  addChange(changed, "meter", "n");
  expect(changesMessage(1, changed)).toBe(
    'event: changes\ndata: {"at":1,"areas":{"gate":true,"meter":true}}\n\n',
  );
});
