import { beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RETENTION_MS, USER_AGENT_LENGTH_MAX } from "../../../src/areas/keys/domain.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { makeProject } from "../projects/support.ts";
import { INVALID, makeBearer, makeKey, verdictOf } from "./support.ts";

const HOUR_MS = 3_600_000;

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ balance: 10_000 });
});

const isoIn = (delayMs: number): string => new Date(server.clock.now() + delayMs).toISOString();
const read = async (id: string) => (await account.get(`/v1/keys/${id}`)).body;

describe("the list", () => {
  async function page(client: Client, limit: number, cursor: unknown) {
    const query = cursor === null ? "" : `&cursor=${encodeURIComponent(String(cursor))}`;
    const { status, body, text } = await client.get(`/v1/keys?limit=${limit}${query}`);
    expect(status, text).toBe(200);
    const keys = body.keys as { id: string; created_at: string }[];
    expect(body.next_cursor).toBe(body.has_more === true ? (keys.at(-1)?.created_at ?? "") : null);
    return { keys, cursor: body.next_cursor as string | null };
  }

  test("created_at increases with every key, even if all are created at the same time", async () => {
    const created = await Promise.all(Array.from({ length: 30 }, () => makeKey(account)));
    const times = created.map(({ createdAt }) => Date.parse(createdAt)).sort((a, b) => a - b);
    expect(times).toEqual(Array.from({ length: 30 }, (_, at) => server.clock.now() + at));
  });

  test("pages contain every key once, newest first, while keys are created, rotated and revoked between them", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(12),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.constantFrom("make", "rotate", "revoke", "none"), { minLength: 1, maxLength: 6 }),
        async (count, limit, between) => {
          const other = await server.account({ balance: 1_000 });
          const created: string[] = [];
          for (let at = 0; at < count; at += 1) created.unshift((await makeKey(other)).id);
          const seen: string[] = [];
          let cursor: string | null = null;
          for (let turn = 0; turn === 0 || cursor !== null; turn += 1) {
            const { keys, cursor: next }: Awaited<ReturnType<typeof page>> = await page(other, limit, cursor);
            seen.push(...keys.map(({ id }) => id));
            cursor = next;
            const change = between[turn % between.length];
            if (change === "make") await makeKey(other);
            if (change === "rotate") await other.post(`/v1/keys/${created.at(-1)}/rotate`, {});
            if (change === "revoke") await other.delete(`/v1/keys/${created.at(-1)}`);
          }
          expect(seen).toEqual(created);
        },
      ),
      { numRuns: 20 },
    );
  });

  test("a cursor can have any time zone offset, and keys of a project that was just deleted are skipped", async () => {
    const project = await makeProject(account);
    const first = await makeKey(account);
    for (let at = 0; at < 5; at += 1) await makeKey(account, {}, project);
    const last = await makeKey(account);
    const cursor = last.createdAt.replace("Z", "+00:00");
    expect((await page(account, 1, cursor)).keys.map(({ id }) => id)).not.toContain(last.id);
    await account.delete(`/v1/projects/${project}`);
    const { keys, cursor: next } = await page(account, 1, null);
    expect(keys.map(({ id }) => id)).toEqual([last.id]);
    expect((await page(account, 1, next)).keys.map(({ id }) => id)).toEqual([first.id]);
  });
});

describe("rotation", () => {
  test("copies the fields to the new key; both keys work until the grace period has passed", async () => {
    const terms = { environment: "live", metadata: { a: "b" }, expires_at: isoIn(1_000 * HOUR_MS) };
    const old = await makeKey(account, terms);
    const { body } = await account.post(`/v1/keys/${old.id}/rotate`, { grace_hours: 2 });
    expect(Object.keys(body).sort()).toEqual([
      "grace_hours",
      "new_key_id",
      "new_secret",
      "old_expires_at",
      "old_key_id",
    ]);
    expect(body).toMatchObject({ old_key_id: old.id, old_expires_at: isoIn(2 * HOUR_MS), grace_hours: 2 });
    const renewed = { id: String(body.new_key_id), secret: String(body.new_secret) };
    const [before, after] = [await read(old.id), await read(renewed.id)];
    expect(after).toEqual({
      ...before,
      id: renewed.id,
      last4: renewed.secret.slice(-4),
      created_at: expect.any(String),
      expires_at: terms.expires_at,
    });
    await server.clock.advance(2 * HOUR_MS - 1);
    expect((await verdictOf(account, old.secret)).valid).toBe(true);
    await server.clock.advance(1);
    expect(await verdictOf(account, old.secret)).toMatchObject({
      valid: false,
      error: "expired",
      key_id: old.id,
    });
    expect(await verdictOf(account, renewed.secret)).toMatchObject({ valid: true, key_id: renewed.id });
    expectError(await account.post(`/v1/keys/${old.id}/rotate`, {}), "conflict");
    // The new key can be rotated as well.
    expect((await account.post(`/v1/keys/${renewed.id}/rotate`, {})).status).toBe(200);
  });

  test("of a Bearer key: the old key works during the grace period, also after a restart, then gets 401", async () => {
    const old = await makeBearer(account, ["*"]);
    await account.post(`/v1/keys/${old.id}/rotate`, { grace_hours: 1 });
    await server.clock.advance(HOUR_MS - 1);
    await server.restart();
    expect((await server.client(old.secret).get("/v1/gate")).status).toBe(200);
    await server.clock.advance(1);
    expectError(await server.client(old.secret).get("/v1/gate"), "unauthorized");
  });

  test("many concurrent rotations create one new key", async () => {
    const old = await makeKey(account);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => account.post(`/v1/keys/${old.id}/rotate`, {})),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)]);
    expect((await account.get("/v1/keys")).body.keys).toHaveLength(2);
  });
});

describe("expires_at", () => {
  test("can have any time zone offset and is returned in UTC; after it verify reports expired and Bearer gets 401", async () => {
    const end = new Date(server.clock.now() + HOUR_MS);
    const offset = `${new Date(end.getTime() + 2 * HOUR_MS).toISOString().slice(0, -1)}+02:00`;
    const key = await makeKey(account, { prefix: "sm", scopes: ["*"], expires_at: offset });
    expect((await read(key.id)).expires_at).toBe(end.toISOString());
    const client = server.client(key.secret);
    await server.clock.advance(HOUR_MS - 1);
    expect((await client.get("/v1/gate")).status).toBe(200);
    await server.clock.advance(1);
    expectError(await client.get("/v1/gate"), "unauthorized");
    expect(await verdictOf(account, key.secret)).toMatchObject({ error: "expired", scopes: ["*"] });
    expectError(await account.post(`/v1/keys/${key.id}/rotate`, {}), "conflict");
    // `revoked` takes precedence over `expired`.
    await account.delete(`/v1/keys/${key.id}`);
    expect((await verdictOf(account, key.secret)).error).toBe("revoked");
  });
});

describe("revocation", () => {
  test("applies from the next request, survives a restart, and can be repeated without effect", async () => {
    const key = await makeBearer(account, ["*"]);
    const client = server.client(key.secret);
    expect((await client.get("/v1/gate")).status).toBe(200);
    const first = await account.delete(`/v1/keys/${key.id}`);
    expectError(await client.get("/v1/gate"), "unauthorized");
    await server.clock.advance(1_000);
    expect((await account.delete(`/v1/keys/${key.id}`)).body).toEqual(first.body);
    await server.restart();
    expectError(await server.client(key.secret).get("/v1/gate"), "unauthorized");
    expect(await verdictOf(server.client(account.key), key.secret)).toMatchObject({ error: "revoked" });
  });

  test("applies to a request that had passed the guard in the same batch", async () => {
    const key = await makeBearer(account, ["*"]);
    const { http } = server.server.app;
    const ask = (method: string, path: string, secret: string | null, body?: string) =>
      http.handle(
        new Request(`${server.url}${path}`, {
          method,
          headers: { authorization: `Bearer ${secret}` },
          ...(body === undefined ? {} : { body }),
        }),
      );
    const [revoked, used] = await Promise.all([
      ask("DELETE", `/v1/keys/${key.id}`, account.key),
      ask("DELETE", "/v1/gate/absent", key.secret),
    ]);
    expect([revoked.status, used.status]).toEqual([200, 401]);
    expect(await used.text()).toContain("This key was revoked or disabled just now.");
  });

  test("is known for 30 days; after the purge the key is unknown", async () => {
    const key = await makeKey(account);
    await account.delete(`/v1/keys/${key.id}`);
    await server.clock.advance(RETENTION_MS - 1);
    expect((await verdictOf(account, key.secret)).error).toBe("revoked");
    expect((await account.get("/v1/keys")).body.keys).toHaveLength(1);
    await server.clock.advance(1);
    expect(await verdictOf(account, key.secret)).toEqual(INVALID);
    expect((await account.get("/v1/keys")).body.keys).toEqual([]);
    expectError(await account.get(`/v1/keys/${key.id}`), "not_found");
    expectError(await account.delete(`/v1/keys/${key.id}`), "not_found");
    // The row is removed by the next hourly purge.
    const rows = () =>
      server.server.kernel.db.one<{ count: number }>(
        "SELECT count(*) AS count FROM keys WHERE purge_at IS NOT NULL",
      )()?.count;
    expect(rows()).toBeGreaterThan(0);
    await server.clock.advance(HOUR_MS);
    expect(rows()).toBe(0);
  });
});

describe("the last use", () => {
  test("is the last verification, with its client; a later use without a client keeps the stored one", async () => {
    const key = await makeKey(account);
    expect(await read(key.id)).toMatchObject({ last_used_at: null });
    await account.post("/v1/keys/verify", {
      secret: key.secret,
      meta: { ip: "203.0.113.7", user_agent: "curl/8.5" },
    });
    const first = { last_used_at: isoIn(0), last_used_ip: "203.0.113.7", last_used_ua: "curl/8.5" };
    expect(await read(key.id)).toMatchObject(first);
    await server.clock.advance(1_000);
    await verdictOf(account, key.secret);
    expect(await read(key.id)).toMatchObject({ ...first, last_used_at: isoIn(0) });
    await account.post("/v1/keys/verify", { secret: key.secret, meta: { ip: "198.51.100.1" } });
    const last = { ...first, last_used_at: isoIn(0), last_used_ip: "198.51.100.1" };
    await server.restart();
    const client = server.client(account.key);
    expect((await client.get(`/v1/keys/${key.id}`)).body).toMatchObject(last);
    const [item] = (await client.get("/v1/keys")).body.keys as Record<string, unknown>[];
    expect(item).toHaveProperty("last_used_at", last.last_used_at);
    expect(item).not.toHaveProperty("last_used_ip");
  });

  test("is also recorded for a Bearer key, without a client, and not for rejected uses", async () => {
    const key = await makeBearer(account, ["gate:read"]);
    await server.client(key.secret).get("/v1/gate");
    const body = await read(key.id);
    expect(body).toMatchObject({ last_used_at: isoIn(0) });
    expect(body).not.toHaveProperty("last_used_ip");
    await server.clock.advance(1_000);
    await account.delete(`/v1/keys/${key.id}`);
    await verdictOf(account, key.secret);
    expect((await read(key.id)).last_used_at).toBe(isoIn(-1_000));
  });

  test(`stores ${USER_AGENT_LENGTH_MAX} characters of the user agent and never half a character`, async () => {
    const key = await makeKey(account);
    const agents: [string, string][] = [
      ["x".repeat(USER_AGENT_LENGTH_MAX), "x".repeat(USER_AGENT_LENGTH_MAX)],
      ["x".repeat(USER_AGENT_LENGTH_MAX + 1), "x".repeat(USER_AGENT_LENGTH_MAX)],
      ["🦊".repeat(USER_AGENT_LENGTH_MAX + 1), "🦊".repeat(USER_AGENT_LENGTH_MAX)],
      [`x${"🦊".repeat(USER_AGENT_LENGTH_MAX)}`, `x${"🦊".repeat(USER_AGENT_LENGTH_MAX - 1)}`],
      ["a\ud800b", "a\ufffdb"],
    ];
    for (const [sent, kept] of agents) {
      await account.post("/v1/keys/verify", { secret: key.secret, meta: { user_agent: sent } });
      expect((await read(key.id)).last_used_ua).toBe(kept);
    }
  });
});
