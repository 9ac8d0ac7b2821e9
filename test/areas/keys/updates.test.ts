import { beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { newestOf } from "../audit/support.ts";
import { makeProject } from "../projects/support.ts";
import { makeBearer, makeKey, verdictOf } from "./support.ts";

const HOUR_MS = 60 * 60 * 1000;

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ balance: 10_000 });
});

const inHours = (hours: number): string => new Date(server.clock.now() + hours * HOUR_MS).toISOString();

describe("updating a key", () => {
  test("changes the given fields, clears those that are null, and leaves the others", async () => {
    const terms = { environment: "live", metadata: { a: "b" }, expires_at: inHours(5), owner_id: "acme" };
    const { id, secret } = await makeKey(account, terms);
    const { body: before } = await account.get(`/v1/keys/${id}`);
    const said = { name: "new", scopes: ["x", "y"], metadata: null, expires_at: inHours(6) };
    const { body: after } = await account.patch(`/v1/keys/${id}`, said);
    const { metadata: _, ...kept } = before as Record<string, unknown>;
    expect(after).toEqual({ ...kept, name: "new", scopes: ["x", "y"], expires_at: said.expires_at });
    expect((await account.get(`/v1/keys/${id}`)).body).toEqual(after);
    expect(await verdictOf(account, secret)).toMatchObject({ ...said, metadata: {}, owner_id: "acme" });
    await account.patch(`/v1/keys/${id}`, { expires_at: null, environment: null });
    expect(await verdictOf(account, secret)).toMatchObject({ expires_at: null, environment: null });
    await server.restart();
    expect(await verdictOf(server.client(account.key), secret)).toMatchObject({ name: "new", metadata: {} });
  });

  test("writes the changed fields to the audit log, and no entry if none changed", async () => {
    const { id } = await makeKey(account, { owner_id: "acme", uses: { remaining: 3 } });
    const said = { owner_id: "other", enabled: false, uses: { remaining: 5 } };
    await account.patch(`/v1/keys/${id}`, said);
    const { entries } = (await account.get("/v1/audit?limit=1")).body as { entries: object[] };
    expect(entries[0]).toMatchObject({
      action: "keys.patch",
      target: { type: "key", id },
      before: { owner_id: "acme", enabled: true, uses: { remaining: 3 } },
      after: said,
    });
    const newest = await newestOf(account);
    for (const nothing of [{}, said])
      expect((await account.patch(`/v1/keys/${id}`, nothing)).status).toBe(200);
    expect(await newestOf(account)).toEqual(newest);
  });

  test("applies new scopes from the credential's next request", async () => {
    const { id, secret } = await makeBearer(account, ["gate:read"]);
    const client = server.client(secret);
    expect((await client.get("/v1/gate")).status).toBe(200);
    await account.patch(`/v1/keys/${id}`, { scopes: ["keys:read"] });
    expectError(await client.get("/v1/gate"), "forbidden");
    expect((await client.get("/v1/keys")).status).toBe(200);
    expectError(await account.patch(`/v1/keys/${id}`, { scopes: ["orders:read"] }), "validation_error");
  });

  test("requires the scopes before and after, the lifetime and the project", async () => {
    const project = await makeProject(account);
    const created = await makeKey(account, { prefix: "sm", scopes: ["keys:*"], expires_at: inHours(2) });
    const client = server.client(created.secret);
    const weak = await makeKey(account, { prefix: "sm", scopes: ["keys:read"], expires_at: inHours(1) });
    const strong = await makeKey(account, { prefix: "sm", scopes: ["gate:read"], expires_at: inHours(1) });
    const path = `/v1/keys/${weak.id}`;
    expect((await client.patch(path, { scopes: ["keys:write"] })).status).toBe(200);
    const refused = [
      await client.patch(path, { scopes: ["keys:read", "gate:read"] }),
      // Even if the missing scope would be removed, or only the name changes.
      await client.patch(`/v1/keys/${strong.id}`, { scopes: ["keys:read"] }),
      await client.patch(`/v1/keys/${strong.id}`, { enabled: false }),
      await client.patch(path, { expires_at: null }),
      await client.patch(path, { expires_at: inHours(3) }),
      await client.patch(`/v1/keys/${(await makeKey(account)).id}`, { name: "n" }),
    ];
    for (const answer of refused) expectError(answer, "forbidden");
    const lasting = server.client((await makeBearer(account, ["keys:write"])).secret);
    const theirs = await makeKey(account, {}, project);
    expectError(await lasting.patch(`/v1/keys/${theirs.id}`, { name: "n" }), "forbidden");
    expect((await lasting.patch(`/v1/keys/${(await makeKey(account)).id}`, { name: "n" })).status).toBe(200);
  });

  test("by a key that was itself updated in the same batch is checked against the updated key", async () => {
    const weak = await makeBearer(account, ["keys:write", "gate:read"]);
    const target = await makeBearer(account, ["keys:write"]);
    const { http } = server.server.app;
    const patch = (id: string, secret: string | null, body: object) =>
      http.handle(
        new Request(`${server.url}/v1/keys/${id}`, {
          method: "PATCH",
          headers: { authorization: `Bearer ${secret}` },
          body: JSON.stringify(body),
        }),
      );
    const [lessened, late] = await Promise.all([
      patch(weak.id, account.key, { scopes: ["keys:write"] }),
      patch(target.id, weak.secret, { scopes: ["gate:read"] }),
    ]);
    expect([lessened.status, late.status]).toEqual([200, 403]);
  });
});

describe("keys of an owner", () => {
  const owned = (owner_id: string, more: object = {}, project?: string) =>
    makeKey(account, { owner_id, ...more }, project);
  const ids = async (query: string, client = server.client(account.key)) => {
    const { body } = await client.get(`/v1/keys?${query}`);
    return (body.keys as { id: string }[]).map(({ id }) => id);
  };

  test("can be listed, also together with an environment", async () => {
    const project = await makeProject(account);
    const [a, , c, d] = [
      await owned("acme", { environment: "live" }),
      await owned("other", { environment: "live" }),
      await owned("acme", { environment: "test" }),
      await owned("acme", { environment: "live" }, project),
    ];
    expect(await ids("owner_id=acme")).toEqual([d.id, c.id, a.id]);
    expect(await ids("owner_id=acme&environment=live")).toEqual([d.id, a.id]);
    expect(await ids("environment=test")).toEqual([c.id]);
    expect(await ids("owner_id=nobody")).toEqual([]);
    const bound = server.client((await makeKey(account, { prefix: "sm", scopes: ["*"] }, project)).secret);
    expect(await ids("owner_id=acme", bound)).toEqual([d.id]);
    const first = (await account.get("/v1/keys?owner_id=acme&limit=1")).body;
    expect(first).toMatchObject({ has_more: true, keys: [{ id: d.id }] });
    const cursor = encodeURIComponent(String(first.next_cursor));
    expect(await ids(`owner_id=acme&limit=2&cursor=${cursor}`)).toEqual([c.id, a.id]);
    for (const query of ["owner_id=", "owner_id=a%20b", "environment=", `environment=${"x".repeat(256)}`])
      expectError(await account.get(`/v1/keys?${query}`), "validation_error");
  });

  test("that the caller can see are revoked by one request", async () => {
    const project = await makeProject(account);
    const [a, b] = [await owned("acme"), await owned("acme", {}, project)];
    const other = await owned("other");
    const bound = server.client((await makeKey(account, { prefix: "sm", scopes: ["*"] }, project)).secret);
    const revoke = { owner_id: "acme" };
    expect((await bound.post("/v1/keys/revoke", revoke)).body).toEqual({ revoked: 1, more: false });
    expect((await verdictOf(account, a.secret)).valid).toBe(true);
    expect((await verdictOf(account, b.secret)).error).toBe("revoked");
    expect((await account.post("/v1/keys/revoke", revoke)).body).toEqual({ revoked: 1, more: false });
    expect((await verdictOf(account, a.secret)).error).toBe("revoked");
    expect((await verdictOf(account, other.secret)).valid).toBe(true);
    const entry = (await account.get("/v1/audit?limit=1")).body.entries as object[];
    expect(entry[0]).toMatchObject({
      action: "keys.revoke_owned",
      summary: "Keys of owner acme revoked",
      target: { type: "key_owner", id: "acme" },
      after: { revoked: 1 },
    });
    expect((await account.post("/v1/keys/revoke", revoke)).body).toEqual({ revoked: 0, more: false });
  });

  test("are not revoked if one of them has a scope that the caller lacks", async () => {
    const [plain, strong] = [
      await owned("acme"),
      await owned("acme", { prefix: "sm", scopes: ["gate:read"] }),
    ];
    const client = server.client((await makeBearer(account, ["keys:write"])).secret);
    expectError(await client.post("/v1/keys/revoke", { owner_id: "acme" }), "forbidden");
    expect((await verdictOf(account, plain.secret)).valid).toBe(true);
    expect((await verdictOf(account, strong.secret)).valid).toBe(true);
  });

  test("are revoked 1,000 at a time; more is true if there are others", async () => {
    const rich = await server.account({ tier: "unlimited" });
    const make = () => makeKey(rich, { owner_id: "acme" });
    for (let round = 0; round < 11; round += 1) await Promise.all(Array.from({ length: 91 }, make));
    const revoke = async () => (await rich.post("/v1/keys/revoke", { owner_id: "acme" })).body;
    expect(await revoke()).toEqual({ revoked: 1_000, more: true });
    expect(await revoke()).toEqual({ revoked: 1, more: false });
    await Promise.all(Array.from({ length: 1_000 }, make));
    expect(await revoke()).toEqual({ revoked: 1_000, more: false });
  }, 60_000);
});

describe("usage", () => {
  const usage = async (id: string, query = "") =>
    (await server.client(account.key).get(`/v1/keys/${id}/usage${query}`)).body;

  test("is counted by hour and outcome, and available immediately and after a restart", async () => {
    const limit = { name: "a", limit: 1, duration_ms: 3_600_000 };
    const { id, secret } = await makeKey(account, { ratelimits: [limit] });
    for (let turn = 0; turn < 3; turn += 1) await verdictOf(account, secret);
    const noon = new Date(server.clock.now()).toISOString();
    const first = { from: noon, total: 3, valid: 1, errors: { rate_limited: 2 } };
    expect(await usage(id)).toEqual({ from: inHours(-24), to: noon, granularity: "hour", data: [first] });
    expect((await usage(id, `?to=${noon}`)).data).toEqual([]);
    await server.clock.advance(1);
    await server.restart();
    expect((await usage(id)).data).toEqual([first]);
    await server.clock.advance(HOUR_MS);
    const client = server.client(account.key);
    await verdictOf(client, secret);
    await client.post("/v1/keys/verify", { secret, require: ["more"] });
    const second = {
      from: inHours(0).replace(".001", ".000"),
      total: 2,
      valid: 1,
      errors: { insufficient_scope: 1 },
    };
    await server.clock.advance(1);
    expect((await usage(id)).data).toEqual([first, second]);
    const day = { from: "2026-03-10T00:00:00.000Z", total: 5, valid: 2 };
    expect((await usage(id, "?granularity=day")).data).toEqual([
      { ...day, errors: { rate_limited: 2, insufficient_scope: 1 } },
    ]);
    // `from` is inclusive, `to` exclusive.
    expect((await usage(id, `?from=${noon}&to=${second.from}`)).data).toEqual([first]);
    expect((await usage(id, `?from=${second.from}`)).data).toEqual([second]);
    // `from` is rounded down to its hour.
    expect(
      (await usage(id, `?from=${noon.replace("00:00.000", "59:59.999")}&to=${second.from}`)).data,
    ).toEqual([first]);
  });

  test("of a credential is the number of its requests", async () => {
    const { id, secret } = await makeBearer(account, ["gate:read"]);
    for (let turn = 0; turn < 3; turn += 1) await server.client(secret).get("/v1/gate");
    await server.clock.advance(1);
    expect((await usage(id)).data).toMatchObject([{ total: 3, valid: 3, errors: {} }]);
  });

  test("is available for 90 days and removed within a day after that", async () => {
    const { id } = await makeKey(account);
    const { db, writer } = server.server.kernel;
    const oldest = Math.floor(server.clock.now() / HOUR_MS) - 90 * 24;
    const add = db.change<[hour: number]>(
      "INSERT INTO key_hours SELECT ref, ?, 0, 1 FROM keys ORDER BY ref DESC LIMIT 1",
    );
    await writer.submit((tx) => {
      for (const hour of [oldest - 1, oldest, oldest + 48]) add(tx, hour);
    });
    const all = `?granularity=day&from=${inHours(-92 * 24)}`;
    const froms = ((await usage(id, all)).data as { from: string }[]).map(({ from }) => from.slice(0, 13));
    const days = [-90, -88].map((day) => `${inHours(day * 24).slice(0, 11)}00`);
    expect(froms).toEqual(days);
    await server.clock.advance(24 * HOUR_MS);
    const left = db.all<{ hour: number }>("SELECT hour FROM key_hours ORDER BY hour LIMIT 1")();
    expect(left).toEqual([{ hour: oldest + 48 }]);
  });
});
