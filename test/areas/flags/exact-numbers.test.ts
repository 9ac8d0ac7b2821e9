import { beforeEach, describe, expect, test } from "bun:test";
import { EXACT_DIGITS_MAX } from "../../../src/json-text.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { customer } from "../check/support.ts";

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ balance: 1_000 });
});

/** Between two doubles. */
const LONG = JSON.rawJSON("9007199254740993");
const INFINITE = JSON.rawJSON("1e400");

const PROBLEM = "is a number that JSON readers cannot carry exactly: send it as a string";
const fallback = { default: { variant: "a" } };
const condition = (value: unknown) => ({
  rules: [{ when: [{ attribute: "id", op: "in", values: ["x", value] }], serve: { variant: "on" } }],
});

describe("a flag with a number that a double cannot hold is rejected", () => {
  test.each([
    ["variants.a", { type: "number", variants: { a: LONG }, ...fallback }],
    ["variants.a", { type: "number", variants: { a: INFINITE }, ...fallback }],
    ["variants.a.limits.1", { type: "object", variants: { a: { limits: [1, LONG] } }, ...fallback }],
    ["metadata.ticket", { metadata: { ticket: LONG } }],
    ["metadata.ticket", { metadata: { ticket: JSON.rawJSON("3.141592653589793238") } }],
    ["rules[0].when[0].values[1]", condition(LONG)],
  ])("as %s", async (path, definition) => {
    const rejected = await account.post("/v1/gate", { flag_key: "f", enabled: true, ...definition });
    const { fields } = expectError(rejected, "gate.rule_invalid");
    expect(fields).toEqual({ [path]: [PROBLEM] });
    expect((await account.get("/v1/gate")).body).toEqual({ flags: [] });
  });

  test("but not numbers that it holds, however they are written", async () => {
    const variants = { a: JSON.rawJSON("9007199254740992.0"), b: JSON.rawJSON("0.10000000000000001") };
    const flag = { flag_key: "f", enabled: true, type: "number", variants, ...fallback };
    expect((await account.post("/v1/gate", flag)).status).toBe(201);
    const { text } = await account.get("/v1/gate/f/definition");
    expect(text).toContain('"variants":{"a":9007199254740992,"b":0.1}');
  });
});

describe("a number beyond a double in a context", () => {
  async function served(context: object): Promise<unknown> {
    const { status, text, body } = await account.post("/ofrep/v1/evaluate/flags/f", { context });
    expect(status, text).toBe(200);
    const all = await account.post("/ofrep/v1/evaluate/flags", { context });
    expect((all.body["flags"] as object[])[0]).toEqual(body);
    const { secret } = await customer(account, 0);
    const checked = await account.post("/v1/check", { secret, flags: ["f"], context });
    const { value, variant, reason } = body;
    expect(checked.body["flags"]).toEqual({ f: { value, variant, reason } });
    return value;
  }

  const save = async (op: string, ...values: unknown[]) => {
    const rules = [{ when: [{ attribute: "id", op, values }], serve: { variant: "on" } }];
    const saved = await account.post("/v1/gate", {
      flag_key: "f",
      enabled: true,
      rules,
      default: { variant: "off" },
    });
    expect(saved.status, saved.text).toBe(201);
  };

  test("is compared by its digits", async () => {
    await save("in", "9007199254740993", 9007199254740996);
    expect(await served({ id: LONG })).toBe(true);
    expect(await served({ id: [1, LONG] })).toBe(true);
    expect(await served({ id: 9007199254740992 })).toBe(false);
    expect(await served({ id: JSON.rawJSON("9007199254740995") })).toBe(false);
    await save("ends_with", "993");
    expect(await served({ id: LONG })).toBe(true);
  });

  test("is ordered by its value", async () => {
    await save("gt", 9007199254740992);
    expect(await served({ id: LONG })).toBe(true);
    expect(await served({ id: INFINITE })).toBe(true);
    expect(await served({ id: JSON.rawJSON("-9007199254740993") })).toBe(false);
    await save("lte", 9007199254740994);
    expect(await served({ id: LONG })).toBe(true);
    expect(await served({ id: JSON.rawJSON("9007199254740995") })).toBe(false);
  });

  test("that is the 17 digits of a double is that double", async () => {
    await save("in", 0.1);
    expect(await served({ id: JSON.rawJSON("0.10000000000000001") })).toBe(true);
  });

  test("is a time", async () => {
    await save("before", "2026-01-01T00:00:00Z");
    expect(await served({ id: JSON.rawJSON("1700000000000.00000001") })).toBe(true);
  });

  test("is assigned by its digits, so that ids next to each other are not assigned together", async () => {
    const entry = (variant: string) => ({ variant, weight: 1 });
    const split = { split: [entry("on"), entry("off")], by: "id" };
    await account.post("/v1/gate", { flag_key: "f", enabled: true, default: split });
    const values = new Set<unknown>();
    for (let at = 0; at < 20; at += 1)
      values.add(await served({ id: JSON.rawJSON(`${1234567890123456700n + BigInt(at)}`) }));
    expect(values.size).toBe(2);
    expect(await served({ id: LONG })).toBe(await served({ id: "9007199254740993" }));
  });

  test("may have a thousand digits, which count as work", async () => {
    const when = Array.from({ length: 20 }, () => ({ attribute: "id", op: "gt", values: [5] }));
    const last = { attribute: "id", op: "lt", values: [5] };
    const rules = Array.from({ length: 50 }, () => ({
      when: [...when.slice(1), last],
      serve: { variant: "on" },
    }));
    await account.post("/v1/gate", { flag_key: "f", enabled: true, rules, default: { variant: "off" } });
    const context = { id: Array(60).fill(JSON.rawJSON("1".repeat(EXACT_DIGITS_MAX))) };
    const rejected = await account.post("/ofrep/v1/evaluate/flags/f", { context });
    expect(expectError(rejected, "validation_error").fields).toHaveProperty("context");
    const longer = { id: JSON.rawJSON("1".repeat(EXACT_DIGITS_MAX + 1)) };
    for (const path of ["/ofrep/v1/evaluate/flags/f", "/ofrep/v1/evaluate/flags"]) {
      const rejected = await account.post(path, { context: longer });
      expectError(rejected, "validation_error");
      expect(rejected.body).toMatchObject({
        errorCode: "INVALID_CONTEXT",
        fields: { context: expect.anything() },
      });
    }
    const { secret } = await customer(account, 0);
    const { fields } = expectError(
      await account.post("/v1/check", { secret, flags: ["f"], context: longer }),
      "validation_error",
    );
    expect(fields).toHaveProperty("context");
  });
});
