import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import { endpoint } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { newestOf } from "../audit/support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

describe("GET /v1/latch", () => {
  endpoint(() => server, "GET /v1/latch", [
    { name: "without held locks", status: 200, request: ["GET", "/v1/latch"], body: { locks: [] } },
    {
      name: "a limit too high",
      status: 400,
      code: "validation_error",
      request: ["GET", "/v1/latch?limit=101"],
    },
    { name: "no key", status: 401, code: "unauthorized", request: ["GET", "/v1/latch"], as: "nobody" },
  ]);

  test("returns the held locks by key, page by page", async () => {
    const account = await server.account();
    for (const key of ["c", "a", "b"]) await account.post(`/v1/latch/${key}/acquire`, { ttl: 60_000 });
    const released = await account.post("/v1/latch/d/acquire");
    await account.post("/v1/latch/d/release", { token: released.body.token });
    const now = server.clock.now();
    const first = await account.get("/v1/latch?limit=2");
    expect(first.body.locks).toEqual([
      {
        key: "a",
        fencing_token: expect.any(Number) as never,
        acquired_at: now,
        expires_at: now + 60_000,
        queue_depth: 0,
        mode: "exclusive",
      },
      expect.objectContaining({ key: "b" }) as never,
    ]);
    const second = await account.get(`/v1/latch?limit=2&cursor=${first.body.cursor}`);
    expect(second.body).toEqual({ locks: [expect.objectContaining({ key: "c" }) as never] });
    expect((await (await server.account()).get("/v1/latch")).body).toEqual({ locks: [] });
  });
});

describe("POST /v1/latch/{key}/force-release", () => {
  const path = "/v1/latch/job/force-release";
  test("200: the lock passes to the next waiter; the old holder gets 403, and 404 when the lock is free", async () => {
    const account = await server.account();
    const held = await account.post("/v1/latch/job/acquire", { ttl: 60_000 });
    const waiting = account.post("/v1/latch/job/acquire", { ttl: 60_000, timeout: 60_000 });
    while ((await account.get("/v1/latch/job")).body.queue_depth === 0);
    const { fencing_token, token } = held.body;
    expect((await account.post(path, { fencing_token })).body).toEqual({ status: "released" });
    const next = await waiting;
    expect(next.status).toBe(200);
    expectError(await account.post("/v1/latch/job/release", { token }), "forbidden");
    expect(await newestOf(account)).toMatchObject({
      action: "latch.force",
      target: { type: "lock", id: "job" },
      before: { fencing_token: fencing_token as number },
      after: null,
    });
    // The first fencing token is no longer valid.
    expectError(await account.post(path, { fencing_token }), "conflict");
    const again = await account.post(path, { fencing_token: next.body.fencing_token });
    expect(again.status).toBe(200);
    expectError(await account.post("/v1/latch/job/release", { token: next.body.token }), "not_found");
    expectError(await account.post(path, { fencing_token: next.body.fencing_token }), "not_found");
  });

  test("400 without a fencing token, 401 without a key, 404 for another account's lock", async () => {
    const account = await server.account();
    const { body } = await account.post("/v1/latch/job/acquire", { ttl: 60_000 });
    expectError(await account.post(path, {}), "validation_error");
    expectError(await server.client(null).post(path, { fencing_token: 1 }), "unauthorized");
    const stranger = await server.account();
    expectError(await stranger.post(path, { fencing_token: body.fencing_token }), "not_found");
    expect((await account.get("/v1/latch/job")).body.locked).toBe(true);
  });
});
