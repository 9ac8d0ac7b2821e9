import { describe, expect, test } from "bun:test";
import { PREVIEWED_CONTEXTS_MAX } from "../../../src/areas/flags/domain.ts";
import { EFFORT_MAX } from "../../../src/areas/flags/evaluation/context.ts";
import { CONTEXT_LEVELS_MAX } from "../../../src/areas/flags/evaluation/schema.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { useTestServer } from "../../support/server.ts";
import { CHECKOUT_RULES } from "./checkout.ts";

const server = useTestServer({ manualClock: true });
const PATH = "/v1/gate/checkout/preview";

async function stored({ account }: World): Promise<void> {
  const flag = { flag_key: "checkout", enabled: true, rules: CHECKOUT_RULES, default: { variant: "off" } };
  expect((await account.post("/v1/gate", flag)).status).toBe(201);
}

/** A preview of the stored flag. */
function previewed(name: string, body: object, results: readonly object[]): Scenario {
  return { name, before: stored, request: ["POST", PATH, body], status: 200, body: { results }, spent: 1 };
}

function rejected(name: string, body: unknown, fields: object, code = "validation_error"): Scenario {
  return { name, before: stored, request: ["POST", PATH, body], status: 400, code, holds: { fields } };
}

const ACME = { email: "ada@acme.com" };
const PRO = { targetingKey: "user-2", plan: "pro", app: { version: "2.3.0" } };
const ON = { value: true, variant: "on" };
const OFF = { value: false, variant: "off" };

function nested(levels: number): object {
  return levels === 1 ? {} : { a: nested(levels - 1) };
}

describe("POST /v1/gate/{flagKey}/preview", () => {
  endpoint(() => server, "POST /v1/gate/{flagKey}/preview", [
    previewed("of each context, with the rule that decided", { contexts: [ACME, PRO, {}, null] }, [
      { ...ON, reason: "TARGETING_MATCH", rule: 0 },
      { ...OFF, reason: "SPLIT", rule: 1 },
      { ...OFF, reason: "DEFAULT", rule: null },
      { ...OFF, reason: "DEFAULT", rule: null },
    ]),
    previewed(
      "of a change that is not saved: omitted fields are those of the flag",
      { contexts: [ACME], definition: { rules: null } },
      [{ ...OFF, reason: "STATIC", rule: null }],
    ),
    previewed(
      "of a flag that would be off, without a value",
      { contexts: [ACME], definition: { enabled: false, off_variant: null } },
      [{ value: null, variant: null, reason: "DISABLED", rule: null }],
    ),
    previewed(
      "a number that a double does not hold has its digits in a context",
      {
        contexts: [{ id: "9007199254740993" }],
        definition: {
          rules: [
            { when: [{ attribute: "id", op: "in", values: ["9007199254740993"] }], serve: { variant: "on" } },
          ],
        },
      },
      [{ ...ON, reason: "TARGETING_MATCH", rule: 0 }],
    ),
    {
      name: "a flag that does not exist, with a definition",
      request: ["POST", "/v1/gate/new/preview", { contexts: [{}], definition: {} }],
      status: 200,
      body: { results: [{ ...ON, reason: "STATIC", rule: null }] },
      spent: 1,
    },
    {
      name: "changes nothing and counts nowhere",
      before: stored,
      request: ["POST", PATH, { contexts: [ACME], definition: { enabled: false } }],
      status: 200,
      spent: 1,
      after: async ({ account }) => {
        const { body } = await account.get("/v1/gate/checkout/definition");
        expect(body).toMatchObject({ enabled: true, version: 1, last_evaluated_at: null });
      },
    },
    {
      name: "an archived, server-only flag is evaluated like others",
      before: async ({ account }) => {
        await account.post("/v1/gate", {
          flag_key: "checkout",
          enabled: true,
          archived: true,
          server_only: true,
        });
      },
      request: ["POST", PATH, { contexts: [{}] }],
      status: 200,
      body: { results: [{ ...ON, reason: "STATIC", rule: null }] },
      spent: 1,
    },
    rejected("no contexts", {}, { contexts: expect.anything() }),
    rejected("an empty list", { contexts: [] }, { contexts: ["must be a list of 1 to 100 contexts"] }),
    rejected(
      "a context too many",
      { contexts: Array.from({ length: PREVIEWED_CONTEXTS_MAX + 1 }, () => ({})) },
      { contexts: ["must be a list of 1 to 100 contexts"] },
    ),
    rejected("a context of another type", { contexts: [ACME, 1] }, { "contexts.1": expect.anything() }),
    rejected(
      "a context that is too deep",
      { contexts: [nested(CONTEXT_LEVELS_MAX), nested(CONTEXT_LEVELS_MAX + 1)] },
      { "contexts.1": ["is nested deeper than 8 levels"] },
    ),
    rejected(
      "a rule that is not valid",
      { contexts: [{}], definition: { rules: [{ when: [], serve: { variant: "on" } }] } },
      { "definition.rules[0].when": expect.anything() },
      "gate.rule_invalid",
    ),
    rejected(
      "a definition with an unknown variant",
      { contexts: [{}], definition: { default: { variant: "blue" } } },
      { "definition.default": ["must be the name of one of the flag's variants"] },
      "gate.rule_invalid",
    ),
    rejected(
      "a switch of another type",
      { contexts: [{}], definition: { enabled: 1 } },
      { "definition.enabled": ["must be true or false"] },
      "gate.rule_invalid",
    ),
    {
      name: "an unknown flag",
      request: ["POST", PATH, { contexts: [{}] }],
      status: 404,
      code: "gate.feature_not_found",
      spent: 1,
    },
    {
      name: "no key",
      as: "nobody",
      request: ["POST", PATH, { contexts: [{}] }],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "no credit",
      account: { balance: 0 },
      before: stored,
      request: ["POST", PATH, { contexts: [{}] }],
      status: 402,
      code: "insufficient_balance",
    },
  ]);

  test("a number in a definition that a double does not hold is rejected with its path", async () => {
    const account = await server.account({ balance: 5 });
    const text = '{"contexts":[{}],"definition":{"variants":{"1":9007199254740993}}}';
    const { status, body } = await account.post("/v1/gate/new/preview", text);
    expect({ status, code: body.code }).toEqual({ status: 400, code: "gate.rule_invalid" });
    expect(Object.keys(body.fields as object)).toEqual(["definition.variants.1"]);
  });

  test(`all contexts together have the ${EFFORT_MAX} comparisons of one evaluation`, async () => {
    const account = await server.account({ balance: 20 });
    const values = Array.from({ length: 1_000 }, (_, index) => `v${index}`);
    const when = [{ attribute: "a", op: "starts_with", values }];
    const definition = { rules: [{ when, serve: { variant: "on" } }] };
    const context = { a: Array.from({ length: 20 }, () => "x") };
    const preview = (count: number) =>
      account.post("/v1/gate/new/preview", {
        contexts: Array.from({ length: count }, () => context),
        definition,
      });
    expect((await preview(20)).status).toBe(200);
    const { status, body } = await preview(50);
    expect({ status, fields: Object.keys(body.fields as object) }).toEqual({
      status: 400,
      fields: ["contexts"],
    });
  });
});
