import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { STALE_AFTER_MS } from "../../../../src/areas/flags/domain.ts";
import { isoTime } from "../../../../src/kernel/time/date-time.ts";
import { HOUR_MS } from "../../../../src/kernel/time/units.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const newAccount = (): Promise<AccountClient> => server.account({ tier: "unlimited", balance: 0 });

async function save(client: Client, flag_key: string, fields: object = {}): Promise<number> {
  const response = await client.post("/v1/gate", { flag_key, enabled: true, ...fields });
  expect(response.status, response.text).toBe(201);
  return Number(response.body.version);
}

async function definition(client: Client, flag_key: string): Promise<Record<string, unknown>> {
  const { status, body } = await client.get(`/v1/gate/${flag_key}/definition`);
  expect(status).toBe(200);
  return body;
}

const SPLIT = {
  split: [
    { variant: "on", weight: 25 },
    { variant: "off", weight: 75 },
  ],
};

describe("GET /v1/gate/{flagKey}/definition", () => {
  test("the complete definition of a plain switch", async () => {
    const client = await newAccount();
    await save(client, "f", { description: "The first" });
    const now = isoTime(server.clock.now());
    expect(await definition(client, "f")).toEqual({
      flag_key: "f",
      enabled: true,
      description: "The first",
      type: "boolean",
      variants: { on: true, off: false },
      default: { variant: "on" },
      off_variant: "off",
      rules: [],
      tags: [],
      metadata: {},
      server_only: false,
      archived: false,
      scheduled: [],
      version: 1,
      created_at: now,
      updated_at: now,
      last_evaluated_at: null,
      stale: false,
      stale_reason: null,
    });
  });

  test("omitted fields stay, null restores the default", async () => {
    const client = await newAccount();
    const set = {
      type: "string",
      variants: { a: "A", b: "B" },
      default: { variant: "a" },
      off_variant: "b",
      rules: [{ when: [{ attribute: "x", op: "exists" }], serve: SPLIT_AB }],
      tags: ["t"],
      metadata: { n: 1 },
      server_only: true,
    };
    await save(client, "f", set);
    const stored = { ...set, rules: [{ ...set.rules[0], serve: { ...SPLIT_AB, hash: "m3" } }] };
    await save(client, "f");
    expect(await definition(client, "f")).toMatchObject({ ...stored, version: 1 });
    await save(client, "f", { tags: ["u"] });
    expect(await definition(client, "f")).toMatchObject({ ...stored, tags: ["u"], version: 2 });
    await save(client, "f", {
      tags: null,
      rules: null,
      metadata: null,
      server_only: null,
      off_variant: null,
    });
    expect(await definition(client, "f")).toMatchObject({
      tags: [],
      rules: [],
      metadata: {},
      server_only: false,
      off_variant: null,
      type: "string",
    });
    // The stored fields would be invalid: a type without variants.
    const response = await client.post("/v1/gate", { flag_key: "f", enabled: true, type: null });
    expectError(response, "gate.rule_invalid");
    expect(Object.keys(response.body.fields as object)).toEqual(["variants.a", "variants.b"]);
    await save(client, "f", { type: null, variants: null, default: null, off_variant: "off" });
    expect(await definition(client, "f")).toMatchObject({ type: "boolean", off_variant: "off", version: 4 });
  });

  test("a missing flag, no key, an invalid key", async () => {
    const client = await newAccount();
    expectError(await client.get("/v1/gate/f/definition"), "gate.feature_not_found");
    expectError(await client.get("/v1/gate/F/definition"), "validation_error");
    expectError(await server.client(null).get("/v1/gate/f/definition"), "unauthorized");
  });
});

const SPLIT_AB = {
  split: [
    { variant: "a", weight: 1 },
    { variant: "b", weight: 1 },
  ],
};

describe("versions", () => {
  test("one counter for the project, one more with every change, deletions included", async () => {
    const client = await newAccount();
    expect(await save(client, "a")).toBe(1);
    expect(await save(client, "b")).toBe(2);
    expect(await save(client, "a", { tags: ["x"] })).toBe(3);
    expect(await save(client, "b", { enabled: false })).toBe(4);
    await client.delete("/v1/gate/a");
    expect(await save(client, "a")).toBe(6);
    await server.restart();
    const later = server.client(client.key);
    expect(await save(later, "c")).toBe(7);
    expect((await definition(later, "b")).version).toBe(4);
  });

  test("a save without changes writes nothing", async () => {
    const client = await newAccount();
    const body = { description: "d", tags: ["a"], metadata: { x: 1, y: 2 }, default: SPLIT };
    await save(client, "a", body);
    const before = await definition(client, "a");
    const entries = async () => ((await client.get("/v1/audit")).body.entries as object[]).length;
    const written = await entries();
    await server.clock.advance(60_000);
    for (const same of [{}, body, { metadata: { y: 2, x: 1 } }, { archived: false }, { type: null }])
      expect(await save(client, "a", same)).toBe(1);
    expect(await definition(client, "a")).toEqual(before);
    expect(await entries()).toBe(written);
  });

  test("a conflicting change: 409 with the current version", async () => {
    const client = await newAccount();
    const at = (if_version: number, fields: object = {}) =>
      client.post("/v1/gate", { flag_key: "a", enabled: true, if_version, ...fields });
    const absent = await at(0);
    expectError(absent, "conflict");
    expect(absent.body.version).toBeNull();
    await save(client, "a");
    await save(client, "b");
    expect((await at(1, { tags: ["x"] })).body.version).toBe(3);
    const late = await at(1, { tags: ["y"] });
    expectError(late, "conflict");
    expect(late.body.version).toBe(3);
    expect(await definition(client, "a")).toMatchObject({ tags: ["x"], version: 3 });
    expect((await at(3)).body.version).toBe(3);
  });

  test("concurrent changes with the same expected version: one succeeds", async () => {
    const client = await newAccount();
    await save(client, "a");
    const responses = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        client.post("/v1/gate", { flag_key: "a", enabled: true, tags: [`t${index}`], if_version: 1 }),
      ),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(409)]);
    expect((await definition(client, "a")).version).toBe(2);
  });
});

describe("archived flags", () => {
  test("are in no list, can be read, and can be unarchived", async () => {
    const client = await newAccount();
    await save(client, "a", { tags: ["x"], description: "d" });
    await save(client, "b", { tags: ["x", "y"] });
    await save(client, "a", { archived: true });
    const config = async (query: string) =>
      ((await client.get(`/v1/gate/config${query}`)).body.flags as { flag_key: string }[]).map(
        ({ flag_key }) => flag_key,
      );
    expect((await client.get("/v1/gate")).body.flags).toEqual(["b"]);
    expect(await config("")).toEqual(["b"]);
    expect(await config("?full=true")).toEqual(["b"]);
    expect(await config("?archived=true")).toEqual(["b", "a"]);
    expect(await config("?archived=true&tag=x")).toEqual(["b", "a"]);
    expect(await config("?full=true&archived=true&tag=y")).toEqual(["b"]);
    expect(await config("?tag=z")).toEqual([]);
    expectError(await client.get("/v1/gate/config?tag=X"), "validation_error");
    expect((await client.get("/v1/gate/a")).body).toEqual({ enabled: true, flag_key: "a" });
    expect(await definition(client, "a")).toMatchObject({ archived: true, tags: ["x"] });
    const { body } = await client.get("/v1/overview");
    expect(body.gate).toMatchObject({ total: 1, on: 1 });
    await save(client, "a", { archived: false });
    expect((await client.get("/v1/gate")).body.flags).toEqual(["b", "a"]);
  });

  test("config?full=true returns the same as the definitions", async () => {
    const client = await newAccount();
    await save(client, "a", { default: SPLIT, tags: ["x"] });
    await save(client, "b");
    const { body } = await client.get("/v1/gate/config?full=true");
    expect(body.flags).toEqual([await definition(client, "b"), await definition(client, "a")] as never);
  });
});

describe("last_evaluated_at and stale", () => {
  test("an evaluation is recorded by the hour and survives a restart", async () => {
    const client = await newAccount();
    await save(client, "a");
    await client.get("/v1/gate/a");
    const hour = () => isoTime(server.clock.now() - (server.clock.now() % HOUR_MS));
    const first = hour();
    expect((await definition(client, "a")).last_evaluated_at).toBe(first);
    await server.restart();
    const later = server.client(client.key);
    expect((await definition(later, "a")).last_evaluated_at).toBe(first);
    await server.clock.advance(2 * HOUR_MS);
    await later.get("/v1/gate/config?full=true");
    expect((await definition(later, "a")).last_evaluated_at).toBe(first);
    await later.get("/v1/gate/a");
    expect((await definition(later, "a")).last_evaluated_at).toBe(hour());
    expect(hour()).not.toBe(first);
    // A new flag with the same key has no evaluation.
    await later.delete("/v1/gate/a");
    await save(later, "a");
    expect((await definition(later, "a")).last_evaluated_at).toBeNull();
  });

  test("stale: unchanged for 30 days, and not evaluated or with one outcome", async () => {
    const client = await newAccount();
    await save(client, "switch");
    await save(client, "split", { default: SPLIT });
    await save(client, "ruled", {
      rules: [{ when: [{ attribute: "a", op: "exists" }], serve: { variant: "off" } }],
    });
    await save(client, "unused", { default: SPLIT });
    await save(client, "archived", { archived: true });
    const stale = async () =>
      ((await server.client(client.key).get("/v1/gate/config?full=true&archived=true")).body.flags as Stale[])
        .filter((flag) => flag.stale)
        .map(({ flag_key }) => flag_key)
        .sort();
    const { db } = server.server.kernel;
    /** Moves the last changes of the flags into the past. */
    const age = (ms: number): void => db.execute(`UPDATE flags SET updated_at = updated_at - ${ms}`);
    age(STALE_AFTER_MS - 1);
    for (const key of ["switch", "split", "ruled"]) await client.get(`/v1/gate/${key}`);
    expect(await stale()).toEqual([]);
    age(1);
    expect(await stale()).toEqual(["switch", "unused"]);
    await save(client, "unused", { description: "d" });
    expect(await stale()).toEqual(["switch"]);
    await server.restart();
    const refOf = "(SELECT ref FROM flags WHERE flag_key = 'split')";
    const longAgo = server.clock.now() - STALE_AFTER_MS;
    server.server.kernel.db.execute(`UPDATE flag_uses SET at = ${longAgo} WHERE flag_ref = ${refOf}`);
    expect(await stale()).toEqual(["split", "switch"]);
    // Evaluated again.
    await server.client(client.key).get("/v1/gate/split");
    expect(await stale()).toEqual(["switch"]);
  });
});

interface Stale {
  readonly flag_key: string;
  readonly stale: boolean;
}

test("the audit log has the definition of new and deleted flags, otherwise the changed fields", async () => {
  const client = await newAccount();
  await save(client, "plain");
  await save(client, "plain", { enabled: false });
  await save(client, "a", { default: SPLIT, tags: ["x"] });
  await save(client, "a", { tags: ["y"] });
  await save(client, "a", { archived: true });
  await client.delete("/v1/gate/a");
  const { body } = await client.get("/v1/audit?target_type=flag&limit=6");
  const entries = (body.entries as { summary: string; before: object; after: object }[]).reverse();
  const default_ = { ...SPLIT, hash: "m3" };
  const whole = { enabled: true, description: null, archived: false, default: default_ };
  expect(entries.map(({ summary, before, after }) => [summary, before, after] as unknown)).toEqual([
    ["Flag plain created, on", null, { enabled: true, description: null }],
    ["Flag plain switched off", { enabled: true }, { enabled: false }],
    ["Flag a created, on", null, { ...whole, tags: ["x"] }],
    ["Flag a definition changed", { tags: ["x"] }, { tags: ["y"] }],
    ["Flag a archived", { archived: false }, { archived: true }],
    ["Flag a deleted", { ...whole, tags: ["y"], archived: true }, null],
  ]);
});

test("the audit log counts the rules that a save changes, adds or removes", async () => {
  const client = await newAccount();
  const on = (plan: string) => ({
    when: [{ attribute: "plan", op: "in", values: [plan] }],
    serve: { variant: "on" },
  });
  for (const rules of [
    [on("a"), on("b")],
    [on("c"), on("b"), on("d")],
    [on("c"), on("b")],
  ])
    await save(client, "ruled", { rules });
  const { body } = await client.get("/v1/audit?target_type=flag&limit=2");
  expect((body.entries as { summary: string }[]).map(({ summary }) => summary)).toEqual([
    "Flag ruled 1 rule changed",
    "Flag ruled 2 rules changed",
  ]);
});
