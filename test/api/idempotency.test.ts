import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { IDEMPOTENCY_RETENTION_MS } from "../../src/kernel/http/operations/idempotency.ts";
import type { Answer, Client } from "../support/client.ts";
import { expectError, UUID_V7 } from "../support/errors.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const HOUR_MS = 60 * 60 * 1000;
const REFILL = "/v1/meter/m/refill";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

function under(key: string): { headers: Record<string, string> } {
  return { headers: { "idempotency-key": key } };
}

async function meter(client: Client, id = "m"): Promise<unknown> {
  return (await client.get(`/v1/meter/${id}/balance`)).body.balance;
}

async function accountBalance(client: Client): Promise<unknown> {
  return (await client.get("/v1/meter/balance")).body.balance;
}

/** Asserts that a response repeats the first one: same status, same bytes, a replay header, and its own request id. */
function expectReplayOf(first: Answer, again: Answer): void {
  expect({ status: again.status, text: again.text }).toEqual({ status: first.status, text: first.text });
  expect(again.headers.get("content-type")).toBe(first.headers.get("content-type"));
  expect(first.headers.get("idempotent-replayed")).toBeNull();
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(again.headers.get("x-request-id")).toMatch(UUID_V7);
  expect(again.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
}

test("an Idempotency-Key has no effect on GET and HEAD", async () => {
  for (const method of ["GET", "HEAD"]) {
    for (const path of ["/v1/admin/accounts", "/v1/keys", "/v1/meter/balance"]) {
      const { status: first } = await server.operator.send(method, path, undefined, under(`read ${method}`));
      const again = await server.operator.send(method, path, undefined, under(`read ${method}`));
      expect([path, first, again.status]).toEqual([path, 200, 200]);
      expect(again.headers.get("idempotent-replayed")).toBeNull();
    }
  }
});

describe("a repeat", () => {
  test("returns the first response byte for byte, is not charged and changes nothing", async () => {
    const account = await server.account({ balance: 10 });
    const first = await account.post(REFILL, { amount: 5 }, under("k"));
    expect(first.body).toEqual({ balance: 5, meter_id: "m" });
    await account.post(REFILL, { amount: 100 });
    expectReplayOf(first, await account.post(REFILL, { amount: 5 }, under("k")));
    expectReplayOf(first, await account.post(REFILL, { amount: 5 }, under("k")));
    expect(await meter(account)).toBe(105);
    expect(await accountBalance(account)).toBe(8);
    const { body } = await account.get("/v1/meter/m/history");
    expect(body.entries).toHaveLength(2);
  });

  test("of a creation by the operator returns the same status, id and key", async () => {
    const body = { email: "once@example.com", tier: "free" };
    const first = await server.operator.post("/v1/admin/accounts", body, under("account"));
    expect(first.status).toBe(201);
    expectReplayOf(first, await server.operator.post("/v1/admin/accounts", body, under("account")));
  });

  test("works on PATCH as well", async () => {
    const account = await server.account({ balance: 10 });
    const path = `/v1/admin/accounts/${account.userId}`;
    const first = await server.operator.patch(path, { balance: 7 }, under("patch"));
    await account.post("/v1/meter/deduct", { amount: 3 });
    expectReplayOf(first, await server.operator.patch(path, { balance: 7 }, under("patch")));
    expect(await accountBalance(account)).toBe(4);
  });

  test("of a request without a body", async () => {
    const account = await server.account({ balance: 10 });
    const first = await account.post("/v1/keys/rotate", undefined, under("rotate"));
    expect(first.status).toBe(200);
    expectReplayOf(first, await account.post("/v1/keys/rotate", undefined, under("rotate")));
    expect(await accountBalance(account)).toBe(9);
  });

  test("takes a rate-limit token", async () => {
    const account = await server.account({ tier: "free" });
    await account.post(REFILL, { amount: 5 }, under("k"));
    for (let count = 0; count < 59; count += 1) {
      expect((await account.post(REFILL, { amount: 5 }, under("k"))).status).toBe(200);
    }
    expectError(await account.post(REFILL, { amount: 5 }, under("k")), "rate_limit_exceeded");
    expect(await meter(await refreshed(account))).toBe(5);
  });

  async function refreshed(account: Client): Promise<Client> {
    await server.clock.advance(60_000);
    return account;
  }

  test("survives a restart", async () => {
    const account = await server.account({ balance: 10 });
    const first = await account.post(REFILL, { amount: 5 }, under("k"));
    await server.restart();
    const client = server.client(account.key);
    expectReplayOf(first, await client.post(REFILL, { amount: 5 }, under("k")));
    expectError(await client.post(REFILL, { amount: 6 }, under("k")), "conflict");
    expect(await meter(client)).toBe(5);
  });

  test("counts as a repeat for 24 hours", async () => {
    expect(IDEMPOTENCY_RETENTION_MS).toBe(24 * HOUR_MS);
    const account = await server.account({ balance: 10 });
    const first = await account.post(REFILL, { amount: 5 }, under("k"));
    await server.clock.advance(IDEMPOTENCY_RETENTION_MS - 1);
    expectReplayOf(first, await account.post(REFILL, { amount: 5 }, under("k")));
    await server.clock.advance(1);
    const second = await account.post(REFILL, { amount: 5 }, under("k"));
    expect(second.body).toEqual({ balance: 10, meter_id: "m" });
    expect(second.headers.get("idempotent-replayed")).toBeNull();
    expectReplayOf(second, await account.post(REFILL, { amount: 5 }, under("k")));
    expect(await accountBalance(account)).toBe(8);
  });

  test("expired responses are removed within an hour", async () => {
    const account = await server.account({ balance: 10 });
    await account.post(REFILL, { amount: 5 }, under("removed"));
    const rows = (): number =>
      server.server.kernel.db.one<{ n: number }, [string]>(
        "SELECT count(*) AS n FROM idempotency WHERE key = ?",
      )("removed")?.n ?? -1;
    await server.clock.advance(IDEMPOTENCY_RETENTION_MS - 1);
    expect(rows()).toBe(1);
    await server.clock.advance(HOUR_MS);
    expect(rows()).toBe(0);
  });
});

describe("409: the same key with another request", () => {
  test.each([
    ["another body", "POST", REFILL, { amount: 6 }],
    ["the same body, written otherwise", "POST", REFILL, '{"amount": 5}'],
    ["no body", "POST", REFILL, undefined],
    ["a broken body", "POST", REFILL, "not JSON"],
    ["another path", "POST", "/v1/meter/n/refill", { amount: 5 }],
    ["another operation", "POST", "/v1/meter/m/deduct", { amount: 5 }],
    ["a query", "POST", `${REFILL}?a=1`, { amount: 5 }],
  ])("%s", async (_, method, path, body) => {
    const account = await server.account({ balance: 10 });
    const first = await account.post(REFILL, { amount: 5 }, under("k"));
    const other = await account.send(method, path, body, under("k"));
    expectError(other, "conflict");
    expect(other.headers.get("idempotent-replayed")).toBeNull();
    expect(await meter(account)).toBe(5);
    expect(await accountBalance(account)).toBe(9);
    expectReplayOf(first, await account.post(REFILL, { amount: 5 }, under("k")));
  });

  test("another method", async () => {
    const path = `/v1/admin/accounts/${(await server.account()).userId}`;
    await server.operator.patch(path, {}, under("method"));
    expectError(await server.operator.post("/v1/admin/accounts", {}, under("method")), "conflict");
  });
});

describe("rejections are stored", () => {
  test("400 for an invalid body, also one that is not JSON", async () => {
    const account = await server.account({ balance: 10 });
    for (const [key, body] of [
      ["shape", { amount: "5" }],
      ["json", "not JSON"],
      ["rule", { amount: 0 }],
    ] as const) {
      const first = await account.post(REFILL, body, under(key));
      expect(first.status).toBe(400);
      expectReplayOf(first, await account.post(REFILL, body, under(key)));
      expectError(await account.post(REFILL, { amount: 5 }, under(key)), "conflict");
    }
    expect(await accountBalance(account)).toBe(10);
  });

  test("402: a later refill does not change it", async () => {
    const account = await server.account({ balance: 10 });
    const first = await account.post("/v1/meter/m/deduct", { amount: 5 }, under("402"));
    expectError(first, "insufficient_balance");
    await account.post(REFILL, { amount: 50 });
    expectReplayOf(first, await account.post("/v1/meter/m/deduct", { amount: 5 }, under("402")));
    expect(await meter(account)).toBe(50);
  });

  test("402 of the charge itself", async () => {
    const account = await server.account({ balance: 0 });
    const first = await account.post(REFILL, { amount: 5 }, under("k"));
    expectError(first, "insufficient_balance");
    await account.post("/v1/meter/refill", { amount: 5 });
    expectReplayOf(first, await account.post(REFILL, { amount: 5 }, under("k")));
    expect(await accountBalance(account)).toBe(5);
  });

  test("403: a later permission does not change it", async () => {
    const account = await server.account();
    const path = `/v1/admin/accounts/${account.userId}`;
    const body = { balance: 1 };
    const first = await account.patch(path, body, under("403"));
    expectError(first, "forbidden");
    await server.operator.patch(path, { tier: "unlimited" });
    expectReplayOf(first, await account.patch(path, body, under("403")));
    expect((await account.patch(path, body)).status).toBe(200);
  });

  test("404 and 409 found by the work", async () => {
    const path = "/v1/admin/accounts/usr_00000000000000000000";
    const missing = await server.operator.patch(path, {}, under("404"));
    expectError(missing, "not_found");
    expectReplayOf(missing, await server.operator.patch(path, {}, under("404")));
    const { email } = await server.account();
    const taken = await server.operator.post("/v1/admin/accounts", { email, tier: "free" }, under("409"));
    expectError(taken, "conflict");
    expectReplayOf(
      taken,
      await server.operator.post("/v1/admin/accounts", { email, tier: "free" }, under("409")),
    );
  });
});

describe("not stored", () => {
  test("401", async () => {
    const account = await server.account();
    const wrong = server.client("sm_wrong");
    expectError(await wrong.post(REFILL, { amount: 5 }, under("k")), "unauthorized");
    expect((await account.post(REFILL, { amount: 5 }, under("k"))).status).toBe(200);
  });

  test("429 of the bucket", async () => {
    const account = await server.account({ tier: "free" });
    await Promise.all(Array.from({ length: 60 }, () => account.get("/v1/meter/balance")));
    expectError(await account.post(REFILL, { amount: 5 }, under("k")), "rate_limit_exceeded");
    await server.clock.advance(1_000);
    const first = await account.post(REFILL, { amount: 5 }, under("k"));
    expect({ status: first.status, replayed: first.headers.get("idempotent-replayed") }).toEqual({
      status: 200,
      replayed: null,
    });
  });

  test("429 found by the work", async () => {
    const account = await server.account();
    const { body } = await account.post("/v1/keys/rotate");
    const newest = server.client(String(body.key));
    expectError(await newest.post("/v1/keys/rotate", undefined, under("k")), "rate_limit_exceeded");
    await server.clock.advance(HOUR_MS);
    expect((await newest.post("/v1/keys/rotate", undefined, under("k"))).status).toBe(200);
  });

  test("503", async () => {
    const account = await server.account();
    const { db } = server.server.kernel;
    db.execute("PRAGMA query_only = ON");
    const refused = await account.post(REFILL, { amount: 5 }, under("k"));
    const malformed = await account.post(REFILL, { amount: "5" }, under("k2"));
    db.execute("PRAGMA query_only = OFF");
    expectError(refused, "read_only");
    expectError(malformed, "read_only");
    expect((await account.post(REFILL, { amount: 5 }, under("k"))).body.balance).toBe(5);
    expectError(await account.post(REFILL, { amount: "5" }, under("k2")), "validation_error");
  });
});

describe("responses with a secret", () => {
  test("are repeated only to the credential that received them", async () => {
    const account = await server.account({ balance: 10 });
    const first = await account.post("/v1/keys/rotate", undefined, under("secret"));
    const newer = server.client(String(first.body.key));
    const refused = await newer.post("/v1/keys/rotate", undefined, under("secret"));
    expectError(refused, "conflict");
    expect(refused.text).not.toContain(String(first.body.key));
    expectReplayOf(first, await account.post("/v1/keys/rotate", undefined, under("secret")));
  });

  test("without a secret are repeated to every credential of the account", async () => {
    const account = await server.account({ balance: 10 });
    const first = await account.post(REFILL, { amount: 5 }, under("shared"));
    const { body } = await account.post("/v1/keys/rotate");
    const newer = server.client(String(body.key));
    expectReplayOf(first, await newer.post(REFILL, { amount: 5 }, under("shared")));
  });

  test("stored responses cannot be read in the files", async () => {
    const account = await server.account({ balance: 10 });
    const rotated = await account.post("/v1/keys/rotate", undefined, under("sealed"));
    await account.post("/v1/meter/marker-in-the-answer/refill", { amount: 77_777_777 }, under("sealed-too"));
    const bytes = ["ninefold.db", "ninefold.db-wal"].map((name) =>
      readFileSync(join(server.folder, name)).toString("latin1"),
    );
    const text = bytes.join("");
    expect(text).toContain("sealed-too");
    expect(text).not.toContain(String(rotated.body.key));
    expect(text).not.toContain('"rotated_at"');
    expect(text).not.toContain('"meter_id"');
  });
});

describe("the key itself", () => {
  test.each([
    ["255 characters", "k".repeat(255)],
    ["1 character", "k"],
    [
      "every printable character",
      Array.from({ length: 93 }, (_, at) => String.fromCharCode(33 + at)).join(""),
    ],
    ["a space inside", "a b"],
  ])("%s: taken", async (_, key) => {
    const account = await server.account();
    const first = await account.post(REFILL, { amount: 5 }, under(key));
    expect(first.status).toBe(200);
    expectReplayOf(first, await account.post(REFILL, { amount: 5 }, under(key)));
  });

  test.each([
    ["empty", ""],
    ["256 characters", "k".repeat(256)],
    ["a tab", "a\tb"],
    ["a letter beyond ASCII", "ü"],
  ])("%s: 400, nothing done", async (_, key) => {
    const account = await server.account({ balance: 10 });
    const { fields } = expectError(await account.post(REFILL, { amount: 5 }, under(key)), "validation_error");
    expect(fields).toEqual({ "Idempotency-Key": ["must have 1 to 255 printable ASCII characters"] });
    expect(await meter(account)).toBe(0);
    expect(await accountBalance(account)).toBe(10);
  });

  test("belongs to the account", async () => {
    const [first, second] = [await server.account(), await server.account()];
    expect((await first.post(REFILL, { amount: 5 }, under("k"))).body.balance).toBe(5);
    const other = await second.post(REFILL, { amount: 9 }, under("k"));
    expect(other.body.balance).toBe(9);
    expect(other.headers.get("idempotent-replayed")).toBeNull();
  });

  test("is ignored by GET and by public endpoints", async () => {
    const account = await server.account();
    expect((await account.get("/v1/meter/balance", under("k".repeat(256)))).status).toBe(200);
    expect((await account.get("/v1/ping", under(""))).status).toBe(200);
    await account.post(REFILL, { amount: 5 }, under("k"));
    const read = await account.get("/v1/meter/m/balance", under("k"));
    expect(read.headers.get("idempotent-replayed")).toBeNull();
    expectError(await account.post("/v1/signup", {}, under("k")), "forbidden");
  });
});

describe("a suspension in between", () => {
  test("a repeat is 403 during the suspension and the stored response after it", async () => {
    const account = await server.account({ balance: 100 });
    const first = await account.post(REFILL, { amount: 5 }, under("k"));
    const path = `/v1/admin/accounts/${account.userId}`;
    await server.operator.patch(path, { suspended: true });
    expectError(await account.post(REFILL, { amount: 5 }, under("k")), "forbidden");
    await server.operator.patch(path, { suspended: false });
    expectReplayOf(first, await account.post(REFILL, { amount: 5 }, under("k")));
    expect(await meter(account)).toBe(5);
  });
});

describe("concurrent duplicates", () => {
  test("have exactly one effect and one response", async () => {
    const account = await server.account({ balance: 100 });
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => account.post(REFILL, { amount: 5 }, under("k"))),
    );
    const firsts = answers.filter(({ headers }) => headers.get("idempotent-replayed") === null);
    expect(firsts).toHaveLength(1);
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(await meter(account)).toBe(5);
    expect(await accountBalance(account)).toBe(99);
  });

  test("of two different requests with one key, one is processed and the other rejected", async () => {
    const account = await server.account({ balance: 100 });
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        account.post(REFILL, { amount: index % 2 === 0 ? 5 : 7 }, under("k")),
      ),
    );
    const done = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 409);
    expect([done.length, refused.length]).toEqual([15, 15]);
    expect(new Set(done.map(({ text }) => text)).size).toBe(1);
    expect(await meter(account)).toBe(Number(done[0]?.body.balance));
    expect(await accountBalance(account)).toBe(99);
  });
});
