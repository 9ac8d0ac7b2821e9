import { type Static, Type } from "@sinclair/typebox";
import { listOf, named, oneOf, orNull, text } from "../../kernel/data/schema.ts";
import { invalidField } from "../../kernel/errors.ts";
import { CHECK_CODES, CHECKS_MAX, FLAGS_MAX, SECRET_LENGTH_MAX } from "./domain.ts";
import type { CheckDeps, KeyFacts } from "./ports.ts";

const SECRET_MESSAGE = `must be a text of 1 to ${SECRET_LENGTH_MAX} characters`;

/** Fields of one check, from the schemas of keys, meters and flags. */
function checkFields<KeyRequest>({ keys, meters, flags }: CheckDeps<KeyRequest>) {
  const { amount, meter_id, ttl_seconds, hold_id } = meters.fields;
  const meter = Type.Optional({
    ...meter_id,
    description: "Id of the meter; by default the key's `meter_id`, or its `owner_id` if it has none.",
  });
  const { meta, require, cost, ratelimits } = keys.fields;
  return {
    secret: text({ min: 1, max: SECRET_LENGTH_MAX, examples: ["acme_live_zyxw"] }),
    meta: Type.Optional(meta),
    require: Type.Optional(require),
    cost: Type.Optional(cost),
    ratelimits: Type.Optional(ratelimits),
    deduct: Type.Optional(
      orNull(
        named(
          "CheckDeduct",
          { amount, meter_id: meter },
          { description: "Credits to deduct from the meter immediately." },
        ),
      ),
    ),
    hold: Type.Optional(
      orNull(
        named(
          "CheckHold",
          {
            amount,
            meter_id: meter,
            ttl_seconds: Type.Optional(ttl_seconds),
            hold_id: Type.Optional(hold_id),
          },
          {
            description:
              "Credits to hold in the meter for a later capture or release. Cannot be combined with `deduct`.",
          },
        ),
      ),
    ),
    flags: Type.Optional(
      orNull(
        listOf(flags.key, {
          max: FLAGS_MAX,
          of: "flag keys",
        }),
        {
          description: "Keys of the flags to evaluate for the key's owner.",
          examples: [["new-checkout"]],
        },
      ),
    ),
    context: Type.Optional({
      ...flags.context,
      description:
        "Additional evaluation context of the flags: any JSON with at most 8 levels. `targetingKey` defaults to the key's `owner_id`, or its id without an owner. `key` is always set to the key's id, owner, environment and metadata.",
      examples: [{ plan: "pro" }],
    }),
  };
}

/** Creates the schema of one check of several. */
function checkItem<KeyRequest>(deps: CheckDeps<KeyRequest>) {
  return named("CheckItem", checkFields(deps));
}
export type CheckItem = Static<ReturnType<typeof checkItem>>;

/** Creates the body of a request: the fields of one check, or several checks. */
export function checkBody<KeyRequest>(deps: CheckDeps<KeyRequest>) {
  const { secret, ...fields } = checkFields(deps);
  return named("CheckBody", {
    secret: Type.Optional({ ...secret, description: "Secret of the key. Required without `checks`." }),
    ...fields,
    checks: Type.Optional(
      listOf(checkItem(deps), {
        min: 1,
        max: CHECKS_MAX,
        of: "checks",
        description:
          "Checks to run one after another, in place of all other fields. Each has the effects of those before it.",
        examples: [[{ secret: "acme_live_zyxw", require: ["orders:read"] }]],
      }),
    ),
  });
}
export type CheckBody = Static<ReturnType<typeof checkBody>>;

/** The checks of a request, and whether it had a list of them. @throws ApiError `validation_error` */
export function checksOf({ checks, ...single }: CheckBody): { list: readonly CheckItem[]; isList: boolean } {
  if (checks !== undefined) {
    if (Object.values(single).some((value) => value !== undefined))
      throw invalidField("checks", "cannot be combined with other fields");
    return { list: checks, isList: true };
  }
  const { secret } = single;
  if (secret === undefined) throw invalidField("secret", SECRET_MESSAGE);
  return { list: [{ ...single, secret }], isList: false };
}

/** State of the meter after a check. */
const CheckMeter = named("CheckMeter", {
  meter_id: Type.String({ examples: ["acme"] }),
  balance: Type.Integer({ examples: [995] }),
  available: Type.Integer({ description: "Balance minus open holds, in credits.", examples: [995] }),
  deducted: Type.Integer({ examples: [5] }),
  hold_id: orNull(Type.String(), { examples: [null] }),
});
export type CheckMeter = Static<typeof CheckMeter>;

/** Evaluation of a flag for the key's owner. */
const CheckFlag = named("CheckFlag", {
  value: Type.Optional(
    Type.Unknown({
      description: "Value of the flag; omitted if your own default applies.",
      examples: [true],
    }),
  ),
  variant: Type.Optional(Type.String({ examples: ["on"] })),
  reason: Type.Optional(Type.String({ examples: ["SPLIT"] })),
  error: Type.Optional(
    oneOf(["FLAG_NOT_FOUND"], {
      description:
        "Set instead of all other fields if the flag does not exist. It does not deny the request.",
      examples: [],
    }),
  ),
});
export type CheckFlag = Static<typeof CheckFlag>;

type Facts = CheckDeps<never>["keys"]["facts"];

/** Creates the schema of a check's result, which always has the same fields. */
export function checkResult(facts: Facts) {
  const { retry_after_seconds, key_id, owner_id, project_id, name, environment } = facts;
  const { scopes, metadata, uses_remaining, ratelimits } = facts;
  return named("CheckAnswer", {
    allowed: Type.Boolean(),
    code: oneOf(CHECK_CODES, {}),
    status: Type.Integer({ description: "HTTP status for your response to the customer.", examples: [200] }),
    retry_after_seconds,
    key_id,
    owner_id,
    project_id,
    name,
    environment,
    scopes,
    metadata,
    uses_remaining,
    ratelimits,
    meter: orNull(CheckMeter, {
      description:
        "State of the meter; null without a request for credits, and if an earlier check denied the request.",
    }),
    flags: orNull(Type.Record(Type.String(), CheckFlag), {
      description: "Evaluated flags by key; null if the request is denied.",
      examples: [{ "new-checkout": { value: true, variant: "on", reason: "SPLIT" } }],
    }),
  });
}

/** Creates the schema of the response to several checks. */
export function checkResults(result: ReturnType<typeof checkResult>) {
  return named("CheckAnswers", {
    results: Type.Array(result, { description: "Result of each check, in their order." }),
  });
}

export interface CheckResult extends KeyFacts {
  readonly allowed: boolean;
  readonly code: (typeof CHECK_CODES)[number];
  readonly status: number;
  readonly meter: CheckMeter | null;
  readonly flags: Record<string, CheckFlag> | null;
}
