import { beforeEach, expect, test } from "bun:test";
import { CHECKS_MAX } from "../../../src/areas/check/domain.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { makeKey } from "../keys/support.ts";
import { customer, meterFigures, postCheck } from "./support.ts";

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ balance: 1_000 });
});

const accountBalance = async () => Number((await account.get("/v1/meter/balance")).body["balance"]);
const deduct = (secret: string, amount: number) => ({ secret, deduct: { amount } });

test("results are in order, each check sees those before it, and each costs one credit", async () => {
  const { secret } = await customer(account, 10, { uses: { remaining: 2 } });
  const before = await accountBalance();
  const checks = [
    deduct(secret, 6),
    deduct(secret, 6),
    deduct(secret, 4),
    deduct(secret, 0 + 1),
    { secret: "none" },
  ];
  const { status, body } = await postCheck(account, { checks });
  expect({ status, keys: Object.keys(body) }).toEqual({ status: 200, keys: ["results"] });
  expect(body["results"]).toMatchObject([
    { code: "ok", meter: { balance: 4 } },
    { code: "insufficient_balance" },
    { code: "ok", meter: { balance: 0 }, uses_remaining: 0 },
    { code: "usage_exceeded" },
    { code: "invalid_key" },
  ]);
  expect(await accountBalance()).toBe(before - checks.length);
  expect(await meterFigures(account)).toEqual([0, 0]);
});

test("402 before the first check when the credits do not suffice for all", async () => {
  const { secret } = await customer(account, 10);
  const poor = await accountBalance();
  await account.post("/v1/meter/deduct", { amount: poor - 2 });
  expectError(
    await postCheck(account, { checks: [1, 2, 3].map(() => deduct(secret, 1)) }),
    "insufficient_balance",
  );
  expectError(
    await postCheck(account, { checks: [1, 2, 3].map(() => ({ secret })) }),
    "insufficient_balance",
  );
  expect(await accountBalance()).toBe(2);
  expect(await meterFigures(account)).toEqual([10, 10]);
  const both = await postCheck(account, { checks: [deduct(secret, 1), { secret }] });
  expect(both.body["results"]).toMatchObject([{ code: "ok" }, { code: "ok" }]);
  expect(await accountBalance()).toBe(0);
});

test("at most twenty; nothing beside them; errors name the check and undo the others", async () => {
  const { secret } = await customer(account, 100);
  const some = (count: number) => ({ checks: Array.from({ length: count }, () => deduct(secret, 1)) });
  expect((await postCheck(account, some(CHECKS_MAX))).body["results"]).toHaveLength(20);
  const fieldOf = async (body: object) =>
    Object.keys(expectError(await postCheck(account, body), "validation_error").fields ?? {});
  expect(await fieldOf(some(CHECKS_MAX + 1))).toEqual(["checks"]);
  expect(await fieldOf({ checks: [] })).toEqual(["checks"]);
  expect(await fieldOf({ ...some(1), secret })).toEqual(["checks"]);
  expect(await fieldOf({ ...some(1), flags: null })).toEqual(["checks"]);
  expect(await fieldOf({})).toEqual(["secret"]);
  expect(await fieldOf({ checks: [{ secret }, {}] })).toEqual(["checks.1.secret"]);
  const wrong = { secret, require: { and: [] } };
  expect(await fieldOf({ checks: [deduct(secret, 1), wrong] })).toEqual(["checks.1.require"]);
  const unknown = { secret, ratelimits: [{ name: "none" }] };
  expect(await fieldOf({ checks: [deduct(secret, 1), unknown] })).toEqual(["checks.1.ratelimits"]);
  const both = { ...deduct(secret, 1), hold: { amount: 1 } };
  expect(await fieldOf({ checks: [deduct(secret, 1), both] })).toEqual(["checks.1.hold"]);
  expect(await meterFigures(account)).toEqual([80, 80]);
});

test("with an Idempotency-Key the response is stored once one of them was allowed", async () => {
  const { secret, id } = await customer(account, 10, { enabled: false });
  const options = { headers: { "idempotency-key": "several" } };
  const body = { checks: [deduct(secret, 1), { secret: "none" }] };
  expect((await postCheck(account, body, options)).body["results"]).toMatchObject([
    { code: "disabled" },
    { code: "invalid_key" },
  ]);
  await account.patch(`/v1/keys/${id}`, { enabled: true });
  const allowed = await postCheck(account, body, options);
  expect(allowed.body["results"]).toMatchObject([{ code: "ok" }, { code: "invalid_key" }]);
  expect((await postCheck(account, body, options)).text).toBe(allowed.text);
  expect(await meterFigures(account)).toEqual([9, 9]);
});

test("flags of all checks together have the limit of one evaluation", async () => {
  const { secret } = await makeKey(account, { owner_id: "acme" });
  const values = Array.from({ length: 500 }, (_, index) => `value-${index}`);
  const when = Array.from({ length: 10 }, () => ({ attribute: "text", op: "contains", values, not: true }));
  const rules = [{ when, serve: { variant: "on" } }];
  const { status, text } = await account.post("/v1/gate", { flag_key: "slow", enabled: true, rules });
  expect(status, text).toBe(201);
  const one = { secret, flags: ["slow"], context: { text: "a".repeat(1_000) } };
  const many = { checks: Array.from({ length: CHECKS_MAX }, () => one) };
  expect((await postCheck(account, one)).status).toBe(200);
  const { fields } = expectError(await postCheck(account, many), "validation_error");
  expect(Object.keys(fields ?? {})[0]).toMatch(/^checks\.\d+\.context$/);
});
