import { beforeEach, describe, expect, test } from "bun:test";
import { ApiError } from "../../../src/kernel/errors.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { makeProject } from "../projects/support.ts";
import { makeKey } from "./support.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
});

async function ask(secret: string, asked: object = {}): Promise<Record<string, unknown>> {
  const client = server.client(account.key);
  const { status, body, text } = await client.post("/v1/keys/verify", { secret, ...asked });
  expect(status, text).toBe(200);
  return body;
}

const usesOf = async (id: string) => (await server.client(account.key).get(`/v1/keys/${id}`)).body.uses;
const spent = (more: object = {}) => ({ valid: false, error: "usage_exceeded", uses_remaining: 0, ...more });

describe("uses", () => {
  test("are taken by cost and never become negative", async () => {
    const { id, secret } = await makeKey(account, { uses: { remaining: 5 } });
    expect(await ask(secret)).toMatchObject({ valid: true, uses_remaining: 4, retry_after_seconds: null });
    expect(await ask(secret, { cost: 5 })).toMatchObject(
      spent({ uses_remaining: 4, retry_after_seconds: null }),
    );
    expect(await ask(secret, { cost: 4 })).toMatchObject({ valid: true, uses_remaining: 0 });
    expect(await ask(secret)).toMatchObject(spent());
    expect(await ask(secret, { cost: 0 })).toMatchObject({ valid: true, uses_remaining: 0 });
    expect(await usesOf(id)).toEqual({ remaining: 0 });
  });

  test("are taken exactly once each by concurrent requests", async () => {
    const { secret } = await makeKey(account, { uses: { remaining: 50 } });
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(secret)));
    const left = answers.filter(({ valid }) => valid).map(({ uses_remaining }) => Number(uses_remaining));
    expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, at) => at));
  });

  test("survive a restart", async () => {
    const { id, secret } = await makeKey(account, { uses: { remaining: 5 } });
    await ask(secret);
    await server.restart();
    expect(await usesOf(id)).toEqual({ remaining: 4 });
    expect(await ask(secret)).toMatchObject({ uses_remaining: 3 });
  });

  test("are raised to the refill's amount, also in a response before the next use", async () => {
    const refill = { every: "day", amount: 2 };
    const { id, secret } = await makeKey(account, { uses: { remaining: 1, refill } });
    await ask(secret);
    // The clock starts at noon.
    expect(await ask(secret)).toMatchObject(spent({ retry_after_seconds: 12 * 3_600 }));
    expect(await ask(secret, { cost: 3 })).toMatchObject(spent({ retry_after_seconds: null }));
    await server.clock.advance(DAY_MS / 2 - 1);
    expect(await ask(secret)).toMatchObject(spent({ retry_after_seconds: 1 }));
    await server.clock.advance(1);
    expect(await usesOf(id)).toEqual({ remaining: 2, refill });
    expect(await ask(secret)).toMatchObject({ valid: true, uses_remaining: 1 });
    expect(await ask(secret)).toMatchObject({ valid: true, uses_remaining: 0 });
    expect(await ask(secret)).toMatchObject(spent({ retry_after_seconds: 24 * 3_600 }));
    await account.patch(`/v1/keys/${id}`, { uses: { remaining: 9, refill } });
    await server.clock.advance(DAY_MS);
    expect(await ask(secret)).toMatchObject({ uses_remaining: 8 });
  });

  test("are shared by both keys during the grace period of a rotation", async () => {
    const old = await makeKey(account, { uses: { remaining: 5 } });
    const { body } = await account.post(`/v1/keys/${old.id}/rotate`, { grace_hours: 2 });
    const renewed = { id: String(body.new_key_id), secret: String(body.new_secret) };
    expect(await ask(old.secret)).toMatchObject({ uses_remaining: 4 });
    expect(await ask(renewed.secret)).toMatchObject({ uses_remaining: 3 });
    await account.patch(`/v1/keys/${renewed.id}`, { uses: { remaining: 1 } });
    expect(await usesOf(old.id)).toEqual({ remaining: 1 });
    expect(await ask(old.secret)).toMatchObject({ uses_remaining: 0 });
    expect(await ask(renewed.secret)).toMatchObject(spent());
    await account.patch(`/v1/keys/${renewed.id}`, { uses: null });
    for (const { secret } of [old, renewed])
      expect(await ask(secret)).toMatchObject({ valid: true, uses_remaining: null });
    // Also if they were set only after the rotation, and across two rotations.
    const last = (await account.post(`/v1/keys/${renewed.id}/rotate`, {})).body;
    await account.patch(`/v1/keys/${last.new_key_id}`, { uses: { remaining: 2 } });
    expect(await ask(old.secret)).toMatchObject({ uses_remaining: 1 });
    expect(await ask(String(last.new_secret))).toMatchObject({ uses_remaining: 0 });
    expect(await ask(renewed.secret)).toMatchObject(spent());
  });

  test("are stored as long as a key shares them, and removed with the last one", async () => {
    const rows = () =>
      server.server.kernel.db.one<{ n: number }>("SELECT count(*) AS n FROM key_allowances")()?.n ?? -1;
    const before = rows();
    const project = await makeProject(account);
    const { id } = await makeKey(account, { uses: { remaining: 5 } }, project);
    const { body } = await account.post(`/v1/keys/${id}/rotate`, {});
    expect(rows()).toBe(before + 1);
    await account.delete(`/v1/keys/${id}`);
    await server.clock.advance(31 * DAY_MS);
    expect(await ask(String(body.new_secret))).toMatchObject({ uses_remaining: 4 });
    await account.delete(`/v1/projects/${project}`);
    await server.clock.advance(DAY_MS);
    expect(rows()).toBe(before);
  }, 60_000);
});

describe("a unit of work that is rolled back", () => {
  test("restores uses, tokens and the allowance", async () => {
    const limit = { name: "a", limit: 3, duration_ms: 60_000 };
    const { id, secret } = await makeKey(account, { uses: { remaining: 3 }, ratelimits: [limit] });
    const plain = await makeKey(account);
    const { db, writer } = server.server.kernel;
    const clear = db.change("UPDATE key_allowances SET remaining = 99");
    const submit = writer.submit.bind(writer);
    const refused: Promise<unknown>[] = [];
    // Each unit of work is followed by one that fails after a write: the batch of both runs twice.
    writer.submit = (work) => {
      const done = submit(work);
      const failing = submit((tx) => {
        clear(tx);
        throw new ApiError("conflict", "Rejected by this test, after the change.");
      });
      refused.push(failing.catch((error: ApiError) => error.code));
      return done;
    };
    const answer = await ask(secret);
    writer.submit = submit;
    expect(await Promise.all(refused)).toContain("conflict");
    expect(answer).toMatchObject({ valid: true, uses_remaining: 2, ratelimits: [{ remaining: 2 }] });
    expect(await usesOf(id)).toEqual({ remaining: 2 });
    expect(await ask(secret)).toMatchObject({ uses_remaining: 1, ratelimits: [{ remaining: 1 }] });
    expect(await ask(plain.secret)).toMatchObject({ uses_remaining: null });
  });
});
