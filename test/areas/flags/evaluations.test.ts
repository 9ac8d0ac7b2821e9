import { describe, expect, test } from "bun:test";
import { COUNTED_VARIANTS_MAX, EVALUATIONS_RETENTION_MS } from "../../../src/areas/flags/domain.ts";
import { DAY_MS, HOUR_MS } from "../../../src/kernel/time/units.ts";
import type { Client } from "../../support/client.ts";
import { endpoint } from "../../support/scenario.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";

const server = useTestServer({ manualClock: true });

const PLANS = [
  { when: [{ attribute: "plan", op: "in", values: ["pro"] }], serve: { variant: "on" } },
  { when: [{ attribute: "plan", op: "in", values: ["none"] }], serve: { variant: "other" } },
];
const VARIANTS = { on: true, off: false, other: true };

function save(client: Client, flag_key: string, fields: object = {}) {
  return client.post("/v1/gate", { flag_key, enabled: true, ...fields });
}

async function ruled(account: AccountClient, flag_key = "f"): Promise<void> {
  const saved = await save(account, flag_key, {
    variants: VARIANTS,
    rules: PLANS,
    default: { variant: "off" },
  });
  expect(saved.status, saved.text).toBe(201);
}

async function evaluate(client: Client, plan: string, key = "f"): Promise<void> {
  const { status } = await client.post(`/ofrep/v1/evaluate/flags/${key}`, { context: { plan } });
  expect(status).toBe(200);
}

async function dataOf(client: Client, query = "") {
  const { body } = await client.get(`/v1/gate/f/evaluations${query}`);
  return body.data as {
    from: string;
    total: number;
    variants: object;
    no_value: number;
    switch_reads: number;
  }[];
}

const PATH = "/v1/gate/f/evaluations";

describe("GET /v1/gate/{flagKey}/evaluations", () => {
  endpoint(() => server, "GET /v1/gate/{flagKey}/evaluations", [
    {
      name: "of a flag that was not evaluated",
      before: ({ account }) => save(account, "f"),
      request: ["GET", `${PATH}?granularity=day`],
      status: 200,
      holds: { granularity: "day", data: [] },
    },
    { name: "an unknown flag", request: ["GET", PATH], status: 404, code: "gate.feature_not_found" },
    {
      name: "another granularity",
      before: ({ account }) => save(account, "f"),
      request: ["GET", `${PATH}?granularity=week`],
      status: 400,
      code: "validation_error",
    },
    {
      name: "a range that ends before it begins",
      before: ({ account }) => save(account, "f"),
      request: ["GET", `${PATH}?from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z`],
      status: 400,
      code: "validation_error",
      holds: { fields: { from: ["must be before to"] } },
    },
    { name: "no key", as: "nobody", request: ["GET", PATH], status: 401, code: "unauthorized" },
  ]);

  test("counts individual evaluations and checks by variant; not bulk ones and previews", async () => {
    const account = await server.account({ balance: 100 });
    await ruled(account);
    await evaluate(account, "pro");
    await evaluate(account, "free");
    await evaluate(account, "free");
    await account.post("/ofrep/v1/evaluate/flags", { context: { plan: "pro" } });
    await account.post("/v1/gate/f/preview", { contexts: [{ plan: "pro" }] });
    await account.get("/v1/gate/f");
    const { body } = await account.post("/v1/keys", { prefix: "acme", name: "k", scopes: ["x"] });
    const checked = await account.post("/v1/check", { secret: body.secret, flags: ["f"] });
    expect(checked.body).toMatchObject({ allowed: true });
    const from = new Date(server.clock.now() - (server.clock.now() % HOUR_MS)).toISOString();
    const counted = { from, total: 5, variants: { on: 1, off: 3 }, no_value: 0, switch_reads: 1 };
    expect(await dataOf(account)).toEqual([counted]);
    await server.restart();
    const again = server.client(account.key);
    expect(await dataOf(again)).toEqual([counted]);
    await evaluate(again, "pro");
    expect(await dataOf(again)).toEqual([{ ...counted, total: 6, variants: { on: 2, off: 3 } }]);
    // Without a value, and a switch that has one outcome.
    await save(again, "f", { enabled: false, off_variant: null });
    await evaluate(again, "pro");
    await again.get("/v1/gate/f");
    await save(again, "f", { enabled: false, off_variant: "off" });
    await again.get("/v1/gate/f");
    expect(await dataOf(again)).toEqual([{ ...counted, total: 9, variants: { on: 2, off: 4 }, no_value: 2 }]);
    await again.delete("/v1/gate/f");
    await save(again, "f");
    expect(await dataOf(again)).toEqual([]);
  });

  test("by hour and day, for 30 days", async () => {
    const account = await server.account({ balance: 100 });
    await save(account, "f");
    const start = server.clock.now() - (server.clock.now() % DAY_MS) + DAY_MS;
    await server.clock.advance(start - server.clock.now());
    const hour = (hours: number) => new Date(start + hours * HOUR_MS).toISOString();
    await account.get("/v1/gate/f");
    await server.clock.advance(HOUR_MS);
    await account.get("/v1/gate/f");
    await account.get("/v1/gate/f");
    await server.clock.advance(23 * HOUR_MS);
    await account.get("/v1/gate/f");
    const totals = async (query: string) =>
      (await dataOf(account, query)).map(({ from, total }) => [from, total]);
    expect(await totals(`?from=${hour(0)}`)).toEqual([
      [hour(0), 1],
      [hour(1), 2],
      [hour(24), 1],
    ]);
    expect(await totals(`?from=${hour(1)}&to=${hour(24)}`)).toEqual([[hour(1), 2]]);
    expect(await totals(`?from=${hour(0)}&granularity=day`)).toEqual([
      [hour(0), 3],
      [hour(24), 1],
    ]);
    await server.clock.advance(EVALUATIONS_RETENTION_MS - 24 * HOUR_MS);
    expect(await totals(`?from=${hour(0)}`)).toEqual([
      [hour(0), 1],
      [hour(1), 2],
      [hour(24), 1],
    ]);
    await server.clock.advance(2 * DAY_MS);
    expect(await totals(`?from=${hour(0)}`)).toEqual([]);
    await server.restart();
    await server.clock.advance(2 * HOUR_MS);
    const rows = server.server.kernel.db.number<[day: number]>(
      "SELECT count(*) AS n FROM flag_evaluations WHERE day <= ?",
    );
    expect(rows(start / DAY_MS)).toBe(0);
  });

  test(`a day counts ${COUNTED_VARIANTS_MAX} variants`, async () => {
    const account = await server.account({ balance: 1_000 });
    for (let index = 0; index <= COUNTED_VARIANTS_MAX; index += 1) {
      const name = index === 0 ? "constructor" : `v${index}`;
      await save(account, "f", { variants: { [name]: true }, default: { variant: name } });
      await account.get("/v1/gate/f");
    }
    await server.restart();
    const [day] = await dataOf(server.client(account.key));
    expect(Object.keys(day?.variants ?? {})).toHaveLength(COUNTED_VARIANTS_MAX);
    expect(day?.variants).toMatchObject({ constructor: 1 });
  });
});

test("stale flags are listed with their reason", async () => {
  const account = await server.account({ balance: 100 });
  await ruled(account, "one-value");
  await ruled(account, "two-values");
  await ruled(account, "unused");
  await save(account, "one-outcome");
  await ruled(account, "archived");
  await save(account, "archived", { archived: true });
  await server.clock.advance(EVALUATIONS_RETENTION_MS - HOUR_MS);
  const list = async (path: string) => (await account.get(path)).body.flags as unknown[];
  expect(await list("/v1/gate?stale=true")).toEqual([]);
  for (const key of ["one-value", "two-values"]) await evaluate(account, "pro", key);
  await evaluate(account, "free", "two-values");
  await account.get("/v1/gate/one-outcome");
  // Whether a switch is on says nothing about variants.
  for (const key of ["one-value", "two-values"]) await account.get(`/v1/gate/${key}`);
  await server.clock.advance(HOUR_MS);
  expect(await list("/v1/gate?stale=true")).toEqual(["one-outcome", "unused", "one-value"]);
  expect(await list("/v1/gate/config?stale=true&full=true")).toMatchObject([
    { flag_key: "one-outcome", stale: true, stale_reason: "one_outcome" },
    { flag_key: "unused", stale: true, stale_reason: "unused" },
    { flag_key: "one-value", stale: true, stale_reason: "one_value" },
  ]);
  expect(await list("/v1/gate/config?stale=true")).toHaveLength(3);
  expect(await list("/v1/gate")).toHaveLength(4);
  await evaluate(account, "free", "one-value");
  await save(account, "unused", { description: "d" });
  expect(await list("/v1/gate?stale=true")).toEqual(["one-outcome"]);
  expect((await account.get("/v1/gate/two-values/definition")).body).toMatchObject({
    stale: false,
    stale_reason: null,
  });
});
