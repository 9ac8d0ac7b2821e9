import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { HOLDERS_PER_LOCK_MAX, WAITERS_PER_LOCK_MAX } from "../../../src/areas/locks/domain.ts";
import { GRANTS_PER_UNIT_MAX } from "../../../src/areas/locks/service.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { eventually } from "../../support/eventually.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { acquire, lockFrom, queue, release, startAcquire, waitForDepth } from "./support.ts";

const SHARED = { mode: "shared", ttl: 60_000, timeout: 60_000 };
const WRITER = { ttl: 60_000, timeout: 60_000 };

let server: TestServer;
let account: Client;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
});
afterAll(() => server.stop());

const state = async (key: string) => (await account.get(`/v1/latch/${key}`)).body;

describe("timeout 0", () => {
  test("grants a free lock, rejects a held one with 408 without queueing, and refreshes the own one", async () => {
    const held = await acquire(account, "try", { timeout: 0 });
    expectError(await account.post("/v1/latch/try/acquire", { timeout: 0 }), "timeout");
    expect(await state("try")).toMatchObject({ locked: true, queue_depth: 0 });
    const again = await acquire(account, "try", { timeout: "0s", token: held.token });
    expect(again).toMatchObject({ fencingToken: held.fencingToken, reentrant: true });
  });

  test("with a waiter in front it is 408, for a shared lock as well", async () => {
    const reader = await acquire(account, "front", SHARED);
    const writer = await queue(account, "front", WRITER);
    expectError(await account.post("/v1/latch/front/acquire", { ...SHARED, timeout: 0 }), "timeout");
    expectError(await account.post("/v1/latch/front/acquire", { timeout: 0 }), "timeout");
    await release(account, "front", reader.token);
    expect((await writer.response).status).toBe(200);
  });

  test("between 0 and a second is no timeout", async () => {
    for (const timeout of [1, 999, -1, 900_001, "0.5s"]) {
      const { fields } = expectError(
        await account.post("/v1/latch/v/acquire", { timeout }),
        "validation_error",
      );
      expect(Object.keys(fields ?? {})).toEqual(["timeout"]);
    }
  });
});

describe("POST /v1/latch/{key}/extend", () => {
  test("200: the time counts from now, longer and shorter; the fencing token stays", async () => {
    const { token, fencingToken } = await acquire(account, "long", { ttl: 10_000 });
    await server.clock.advance(4_000);
    for (const ttl of [900_000, 1_000]) {
      const { status, body } = await account.post("/v1/latch/long/extend", { token, ttl });
      const expires_at = server.clock.now() + ttl;
      expect({ status, body }).toEqual({
        status: 200,
        body: { status: "extended", fencing_token: fencingToken, expires_at },
      });
      expect(await state("long")).toMatchObject({ ttl_remaining: ttl });
    }
    await server.clock.advance(1_000);
    expectError(await account.post("/v1/latch/long/extend", { token, ttl: 5_000 }), "not_found");
    expect(await state("long")).toMatchObject({ locked: false });
  });

  test("400, 401, 403 with another token, 404 of another account", async () => {
    const { token } = await acquire(account, "mine", { ttl: 60_000 });
    const path = "/v1/latch/mine/extend";
    for (const body of [{}, { token }, { ttl: 5_000 }, { token, ttl: 999 }, { token, ttl: 900_001 }]) {
      expectError(await account.post(path, body), "validation_error");
    }
    expectError(await server.client(null).post(path, { token, ttl: 5_000 }), "unauthorized");
    expectError(await account.post(path, { token: `${token}x`, ttl: 5_000 }), "forbidden");
    expectError(await (await server.account()).post(path, { token, ttl: 5_000 }), "not_found");
  });
});

describe("shared locks", () => {
  test("several hold it, each with its own fencing token; the list has a row for each", async () => {
    const first = await acquire(account, "s", SHARED);
    await server.clock.advance(1_000);
    const second = await acquire(account, "s", SHARED);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(await state("s")).toEqual({
      locked: true,
      queue_depth: 0,
      ttl_remaining: 60_000,
      mode: "shared",
      holders: 2,
    });
    const rows = (await account.get("/v1/latch?limit=100")).body["locks"] as { key: string }[];
    expect(rows.filter(({ key }) => key === "s")).toMatchObject([
      { fencing_token: first.fencingToken, mode: "shared" },
      { fencing_token: second.fencingToken, mode: "shared" },
    ]);
    expectError(await release(account, "s", "another"), "forbidden");
    expect((await release(account, "s", second.token)).status).toBe(200);
    expect(await state("s")).toMatchObject({ holders: 1, ttl_remaining: 59_000 });
    expect((await release(account, "s", first.token)).status).toBe(200);
    expect(await state("s")).toEqual({ locked: false, queue_depth: 0, ttl_remaining: null });
  });

  test("pages of the list split the holders of one lock", async () => {
    const reader = await server.account();
    const tokens: number[] = [];
    for (const key of ["a", "b", "b", "b", "c"]) {
      tokens.push((await acquire(reader, key, SHARED)).fencingToken);
    }
    const listed: unknown[] = [];
    let cursor = "";
    do {
      const { body } = await reader.get(`/v1/latch?limit=2${cursor}`);
      listed.push(...(body["locks"] as { fencing_token: number }[]).map((row) => row.fencing_token));
      cursor = body["cursor"] === undefined ? "" : `&cursor=${body["cursor"]}`;
    } while (cursor !== "");
    expect(listed).toEqual(tokens);
  });

  test("a waiting writer holds back later readers; they follow it together", async () => {
    const reader = await acquire(account, "fair", SHARED);
    const writer = await queue(account, "fair", WRITER);
    const later = [await queue(account, "fair", SHARED), await queue(account, "fair", SHARED)];
    const last = await queue(account, "fair", WRITER);
    await release(account, "fair", reader.token);
    const written = lockFrom(await writer.response);
    expect(later.map((one) => one.settled())).toEqual([null, null]);
    await release(account, "fair", written.token);
    const readers = [];
    for (const one of later) readers.push(lockFrom(await one.response));
    expect(await state("fair")).toMatchObject({ mode: "shared", holders: 2, queue_depth: 1 });
    for (const { token } of readers) await release(account, "fair", token);
    expect((await last.response).status).toBe(200);
  });

  test("readers are granted when the writer before them times out or disconnects", async () => {
    await acquire(account, "left", SHARED);
    const impatient = await queue(account, "left", { timeout: 1_000 });
    const second = await queue(account, "left", SHARED);
    await server.clock.advance(1_000);
    expectError(await impatient.response, "timeout");
    expect((await second.response).status).toBe(200);
    const gone = await queue(account, "left", WRITER);
    const third = await queue(account, "left", SHARED);
    gone.disconnect();
    expect((await third.response).status).toBe(200);
    expect(await state("left")).toMatchObject({ holders: 3, queue_depth: 0 });
  });

  test("409 with a token of the other mode: there is no upgrade", async () => {
    const reader = await acquire(account, "up", SHARED);
    const { token } = reader;
    expectError(await account.post("/v1/latch/up/acquire", { token, timeout: 0 }), "conflict");
    const again = await acquire(account, "up", { ...SHARED, token });
    expect(again).toMatchObject({ fencingToken: reader.fencingToken, reentrant: true });
    const writer = await acquire(account, "down", WRITER);
    const path = "/v1/latch/down/acquire";
    expectError(await account.post(path, { ...SHARED, token: writer.token }), "conflict");
    // Both wait with one token: the first gets the lock, the other one is rejected.
    const mine = crypto.randomUUID();
    const first = await queue(account, "down", { ...SHARED, token: mine });
    const second = await queue(account, "down", { ...WRITER, token: mine });
    await release(account, "down", writer.token);
    expect(lockFrom(await first.response)).toMatchObject({ token: mine, reentrant: false });
    expectError(await second.response, "conflict");
  });

  test("each hold expires on its own; force-release ends the named one", async () => {
    const short = await acquire(account, "each", { ...SHARED, ttl: 1_000 });
    const middle = await acquire(account, "each", SHARED);
    const long = await acquire(account, "each", SHARED);
    await server.clock.advance(1_000);
    expect(await state("each")).toMatchObject({ holders: 2 });
    expectError(await release(account, "each", short.token), "forbidden");
    const path = "/v1/latch/each/force-release";
    expectError(await account.post(path, { fencing_token: short.fencingToken }), "conflict");
    expect((await account.post(path, { fencing_token: middle.fencingToken })).status).toBe(200);
    expectError(await release(account, "each", middle.token), "forbidden");
    expect((await release(account, "each", long.token)).status).toBe(200);
  });

  test("readers that follow a writer get the lock in several units of work", async () => {
    const { operator } = server;
    const writer = await acquire(operator, "crowd", WRITER);
    // Fewer than the connections that fetch opens together.
    const size = 2 * GRANTS_PER_UNIT_MAX + 20;
    const readers = Array.from({ length: size }, () => startAcquire(operator, "crowd", SHARED));
    await waitForDepth(operator, "crowd", size);
    await release(operator, "crowd", writer.token);
    const granted = await Promise.all(readers.map(({ response }) => response));
    expect(granted.filter(({ status }) => status !== 200)).toEqual([]);
    expect(new Set(granted.map(({ body }) => body["fencing_token"])).size).toBe(size);
  });

  test.each([1, 2])(
    "a thousand readers, %d with each token, that follow a writer hold up no other request",
    async (repeats) => {
      const { key: apiKey } = server.operator;
      /** Without a socket, so that nothing of a client's work counts. */
      const sent = async (path: string, body: object): Promise<Response> => {
        const headers = { authorization: `Bearer ${apiKey}` };
        const request = { method: "POST", headers, body: JSON.stringify(body) };
        return server.server.app.http.handle(new Request(`${server.url}/v1/latch/${path}`, request));
      };
      let run = 0;
      const least = await leastMs(TURN_MS_MAX, async () => {
        run += 1;
        const key = `readers-${repeats}-${run}`;
        const { token } = (await (await sent(`${key}/acquire`, WRITER)).json()) as { token: string };
        const tokens = Array.from({ length: WAITERS_PER_LOCK_MAX / repeats }, () => crypto.randomUUID());
        const readers = Array.from({ length: WAITERS_PER_LOCK_MAX }, (_, index) =>
          sent(`${key}/acquire`, { ...SHARED, token: tokens[index % tokens.length] }),
        );
        await waitForDepth(server.operator, key, WAITERS_PER_LOCK_MAX);
        return longestTurnMs(async () => {
          await sent(`${key}/release`, { token });
          for (const { status } of await Promise.all(readers)) expect(status).toBe(200);
        });
      });
      expect(least).toBeLessThan(TURN_MS_MAX);
    },
    60_000,
  );

  test("at most a thousand hold it; the next one waits", async () => {
    const { operator } = server;
    let last = await acquire(operator, "full", SHARED);
    expect(HOLDERS_PER_LOCK_MAX).toBe(1_000);
    for (let holders = 1; holders < HOLDERS_PER_LOCK_MAX; holders += 1) {
      last = await acquire(operator, "full", SHARED);
    }
    expectError(await operator.post("/v1/latch/full/acquire", { ...SHARED, timeout: 0 }), "timeout");
    const next = await queue(operator, "full", SHARED);
    await release(operator, "full", last.token);
    expect((await next.response).status).toBe(200);
    await server.clock.advance(60_000);
    await eventually(async () =>
      expect((await operator.get("/v1/latch/full")).body).toMatchObject({ locked: false }),
    );
  }, 60_000);
});
