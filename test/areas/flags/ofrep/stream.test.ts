import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { STREAMS_PER_KEY_MAX } from "../../../../src/areas/flags/ofrep/domain.ts";
import { EventSocket, openEventSockets } from "../../../harness/processes/event-socket.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { EventReader } from "../../../support/event-reader.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../../support/server.ts";
import { loggedIn, OWN_PAGE } from "../../session/support.ts";

let server: TestServer;
beforeAll(async () => {
  // With a manual clock, streams use real time.
  server = await startTestServer({ manualClock: true, args: ["--trust-proxy", "127.0.0.1"] });
});
afterAll(() => server.stop());

interface Event {
  readonly id: number;
  readonly data: unknown;
}

/** A stream of flags. */
class Listener extends EventReader {
  async open(client: Client, headers: Record<string, string> = {}, query = ""): Promise<this> {
    await this.read(client.url + (await streamOf(client)) + query, headers);
    await this.until((text) => text.includes(": ok\n\n"));
    return this;
  }

  get events(): Event[] {
    return [...this.text.matchAll(/^id: (\d+)\nevent: message\ndata: (.*)\n\n/gm)].map(([, id, data]) => ({
      id: Number(id),
      data: JSON.parse(data ?? ""),
    }));
  }

  /** Waits for this number of events. */
  async eventCount(count: number): Promise<void> {
    await this.until(() => this.events.length >= count);
  }
}

/** Path of a client's stream. */
async function streamOf(client: Client): Promise<string> {
  const { body, text } = await client.post("/ofrep/v1/evaluate/flags", {});
  const [stream] = (body.eventStreams ?? []) as { endpoint: { requestUri: string } }[];
  if (stream === undefined) throw new Error(`no stream: ${text}`);
  return stream.endpoint.requestUri;
}

const from = (address: string) => ({ headers: { "x-forwarded-for": address } });

async function newKey(owner: Client, scopes: readonly string[] = ["ofrep:read"], project?: string) {
  const path = project === undefined ? "/v1/keys" : `/v1/projects/${project}/keys`;
  const { body } = await owner.post(path, { prefix: "sm", name: "k", scopes });
  return { client: server.client(String(body.secret)), id: String(body.key_id) };
}

function saveFlag(owner: Client, key: string, more: object = {}) {
  return owner.post("/v1/gate", { flag_key: key, enabled: true, ...more });
}

/** Longer than the delay of an event. */
const SOON_MS = 400;

describe("GET /ofrep/v1/events", () => {
  test("combines concurrent changes into one event with the project's version", async () => {
    const account = await server.account();
    const { client } = await newKey(account);
    const listener = await new Listener().open(client);
    expect(listener.text).toMatch(/^retry: \d{4}\nid: 0\n: ok\n\n$/);
    await saveFlag(account, "one");
    await saveFlag(account, "two");
    await account.delete("/v1/gate/one");
    await listener.eventCount(1);
    const data = { type: "refetchEvaluation", lastModified: TEST_START_MS / 1000 };
    expect(listener.events).toEqual([{ id: 3, data }]);
    // No event for a save without changes, and for changes in other projects and areas.
    await saveFlag(account, "two");
    await account.post("/v1/meter/m/refill", { amount: 1 });
    await saveFlag(await server.account(), "other");
    await Bun.sleep(SOON_MS);
    expect(listener.events).toHaveLength(1);
    await saveFlag(account, "two", { enabled: false });
    await listener.eventCount(2);
    expect(listener.events[1]?.id).toBe(4);
    listener.close();
  });

  test("a token works only from the allowed addresses of its key", async () => {
    const account = await server.account();
    const bound = { prefix: "sm", name: "k", scopes: ["ofrep:read"], allowed_ips: ["203.0.113.0/24"] };
    const { secret, key_id } = (await account.post("/v1/keys", bound)).body;
    const client = server.client(String(secret));
    const { body } = await client.post("/ofrep/v1/evaluate/flags", {}, from("203.0.113.5"));
    const [stream] = body.eventStreams as { endpoint: { requestUri: string } }[];
    const path = String(stream?.endpoint.requestUri);
    const nobody = server.client(null);
    expectError(await nobody.get(path, from("198.51.100.1")), "forbidden");
    const listener = new Listener();
    await listener.read(server.url + path, from("203.0.113.5").headers);
    await listener.until((text) => text.includes(": ok\n\n"));
    // An open stream ends when its address is no longer allowed.
    await account.patch(`/v1/keys/${key_id}`, { allowed_ips: ["198.51.100.1"] });
    await saveFlag(account, "one");
    await listener.until((_, hasEnded) => hasEnded);
    expect(listener.events).toEqual([]);
  });

  test("only keys with access to server-only flags are notified of them", async () => {
    const account = await server.account();
    const listener = await new Listener().open((await newKey(account)).client);
    const reader = await new Listener().open((await newKey(account, ["ofrep:read", "gate:read"])).client);
    await saveFlag(account, "secret", { server_only: true });
    await reader.eventCount(1);
    expect(listener.events).toEqual([]);
    // The flag becomes visible to the others, and then hidden.
    await saveFlag(account, "secret", { server_only: false });
    await listener.eventCount(1);
    await saveFlag(account, "secret", { server_only: true });
    await listener.eventCount(2);
    await reader.eventCount(3);
    expect(listener.events.map(({ id }) => id)).toEqual([2, 3]);
    for (const item of [listener, reader]) item.close();
  });

  test("a client that reconnects is notified immediately of missed changes, and of nothing else", async () => {
    const account = await server.account();
    const { client } = await newKey(account);
    for (const key of ["one", "two"]) await saveFlag(account, key);
    const noMatch = await new Listener().open(client, { "last-event-id": "1" });
    await noMatch.eventCount(1);
    const byQuery = await new Listener().open(client, {}, "&lastEventId=1");
    await byQuery.eventCount(1);
    // After a restore, the version is lower.
    const ahead = await new Listener().open(client, { "last-event-id": "9" });
    await ahead.eventCount(1);
    const others = [
      { "last-event-id": "2" },
      {},
      { "last-event-id": "x" },
      { "last-event-id": "9".repeat(99) },
    ];
    const quiet = await Promise.all(
      others.map((headers) => new Listener().open(client, headers as Record<string, string>)),
    );
    const both = await new Listener().open(client, { "last-event-id": "2" }, "&lastEventId=1");
    await Bun.sleep(SOON_MS);
    for (const item of [noMatch, byQuery, ahead]) expect(item.events.map(({ id }) => id)).toEqual([2]);
    for (const item of [...quiet, both]) expect(item.events).toEqual([]);
    for (const item of [noMatch, byQuery, ahead, both, ...quiet]) item.close();
  });

  test("a change between an evaluation and its stream is notified", async () => {
    const account = await server.account();
    const { client } = await newKey(account);
    const path = await streamOf(client);
    await saveFlag(account, "one");
    // Another client that knows the change.
    const other = await new Listener().open((await newKey(account)).client);
    const late = new Listener();
    await late.read(server.url + path);
    await late.eventCount(1);
    expect(late.events[0]?.id).toBe(1);
    for (const item of [late, other]) item.close();
  });

  test("a platform key has a stream as well; a browser session has the console's", async () => {
    const account = await server.account();
    const listener = await new Listener().open(account);
    await saveFlag(account, "one");
    await listener.eventCount(1);
    listener.close();
    const headers = { ...OWN_PAGE, cookie: (await loggedIn(server, account.key)).cookie };
    const response = await server.client(null).post("/ofrep/v1/evaluate/flags", {}, { headers });
    expect(response.body).toEqual({ flags: [expect.objectContaining({ key: "one" })] });
  });

  test("HEAD does not count as a stream", async () => {
    const { client } = await newKey(await server.account());
    const response = await server.client(null).send("HEAD", await streamOf(client));
    expect(response.status).toBe(200);
  });
});

describe("a stream ends", () => {
  test("with its key", async () => {
    const account = await server.account();
    const [first, second] = [await newKey(account), await newKey(account)];
    const ended = await new Listener().open(first.client);
    const other = await new Listener().open(second.client);
    const path = await streamOf(first.client);
    await account.delete(`/v1/keys/${first.id}`);
    await ended.until((_text, hasEnded) => hasEnded);
    expect(other.hasEnded).toBe(false);
    expectError(await server.client(null).get(path), "unauthorized");
    other.close();
  });

  test("with its project", async () => {
    const account = await server.account();
    const { body } = await account.post("/v1/projects", { name: "Shop" });
    const { client } = await newKey(account, ["ofrep:read"], String(body.id));
    const listeners = [await new Listener().open(client), await new Listener().open(client)];
    const path = await streamOf(client);
    await account.delete(`/v1/projects/${body.id}`);
    await Promise.all(listeners.map((listener) => listener.until((_text, hasEnded) => hasEnded)));
    const response = await server.client(null).get(path);
    expect([401, 403]).toContain(response.status);
  });

  test("when its account is suspended", async () => {
    const account = await server.account();
    const { client } = await newKey(account);
    const listener = await new Listener().open(client);
    const path = await streamOf(client);
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true });
    await listener.until((_text, hasEnded) => hasEnded);
    expectError(await server.client(null).get(path), "forbidden");
  });

  test("when its key expires, before the next event", async () => {
    const account = await server.account();
    const expires_at = new Date(TEST_START_MS + 60_000).toISOString();
    const terms = { prefix: "sm", name: "k", scopes: ["ofrep:read"], expires_at };
    const { body } = await account.post("/v1/keys", terms);
    const listener = await new Listener().open(server.client(String(body.secret)));
    await server.clock.advance(60_000);
    await saveFlag(account, "one");
    await listener.until((_text, hasEnded) => hasEnded);
    expect(listener.events).toEqual([]);
  });

  test("before the server waits for requests in flight", async () => {
    const separateServer = await startTestServer();
    const listeners = await Promise.all(
      Array.from({ length: 20 }, () => new Listener().open(separateServer.operator)),
    );
    await separateServer.stop();
    await Promise.all(listeners.map((listener) => listener.until((_text, hasEnded) => hasEnded)));
    expect(listeners.filter(({ isComplete }) => !isComplete)).toEqual([]);
  });
});

describe("rejections", () => {
  test("401 for an invalid token", async () => {
    const { client } = await newKey(await server.account());
    const path = await streamOf(client);
    const other = await streamOf((await newKey(await server.account())).client);
    const [, token = ""] = path.split("token=");
    const [name, proof] = token.split(".");
    const [, foreign = ""] = other.split("token=");
    const wrong = [
      ...["", "x", ".", `${name}.`, `.${proof}`, `${token}x`, token.slice(0, -1), `${name}${proof}`],
      `${foreign.split(".")[0]}.${proof}`,
      `${"A".repeat(22)}.${proof}`,
      "%F0%9F%98%80".repeat(16),
      "A".repeat(5_000),
    ];
    for (const one of wrong) {
      expectError(await server.client(null).get(`/ofrep/v1/events?token=${one}`), "unauthorized");
    }
    expectError(await server.client(null).get("/ofrep/v1/events"), "unauthorized");
    // The same bytes with other unused bits in the last character.
    const last = token.charCodeAt(21) + 1;
    const similar = token.slice(0, 21) + String.fromCharCode(last) + token.slice(22);
    expectError(await server.client(null).get(`/ofrep/v1/events?token=${similar}`), "unauthorized");
    expectError(await server.client(null).get(`${path}&token=x`), "validation_error");
  });

  test(`429 above ${STREAMS_PER_KEY_MAX} streams of one key, until one is closed`, async () => {
    const account = await server.account();
    const { client } = await newKey(account);
    const path = await streamOf(client);
    const open = await openEventSockets(server.url, path, STREAMS_PER_KEY_MAX);
    const rejected = await server.client(null).get(path);
    expectError(rejected, "rate_limit_exceeded");
    expect(rejected.headers.get("retry-after")).toBe("30");
    const another = await new Listener().open((await newKey(account)).client);
    open.pop()?.close();
    let again: EventSocket | null = null;
    while (again === null) {
      await Bun.sleep(10);
      again = await EventSocket.open(server.url, path).catch(() => null);
    }
    await saveFlag(account, "one");
    await Promise.all(open.map((stream) => stream.heard));
    for (const item of [...open, another, again]) item.close();
  }, 60_000);
});
