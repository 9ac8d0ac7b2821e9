import { type Static, Type } from "@sinclair/typebox";
import { name, oneOf, orNull, text } from "../../kernel/data/schema.ts";
import { invalidField } from "../../kernel/errors.ts";
import { JSON_PATH_LENGTH_MAX, readJsonPath } from "./checks/json-path.ts";
import { clearable, flag, integer, milliseconds } from "./fields.ts";

/** Longest name of a group: a heading in a list. */
export const GROUP_LENGTH_MAX = 60;
/** Statuses and ranges that a monitor accepts. */
export const ACCEPTED_MAX = 20;
/** Longest keyword, and longest text that a value is compared with. */
export const KEYWORD_LENGTH_MAX = 256;
/** Shortest pace of checks of a target that has begun to fail, and at least this part of the tier's shortest interval. */
export const RETRY_MS_MIN = 5_000;
const RETRY_SHARE = 1 / 10;
/** Longest interval, and so the longest such pace. */
const RETRY_MS_MAX = 300_000;

const JsonOp = oneOf(["==", "!=", "<", "<=", ">", ">=", "contains", "exists"]);
/** How a value of a JSON answer is compared. */
export type JsonOp = Static<typeof JsonOp>;
const NUMERIC: ReadonlySet<JsonOp> = new Set(["<", "<=", ">", ">="]);

const Keyword = (description: string) => text({ min: 1, max: KEYWORD_LENGTH_MAX, description });
const StatusOrRange = Type.String({
  pattern: "^[1-9][0-9]{2}(-[1-9][0-9]{2})?$",
  errorMessage: "must be a status such as 200 or a range such as 200-299, as a text",
  examples: ["200-299"],
});

/** What may be set beyond the plain terms, on creation and by a change. */
export const OPTION_FIELDS = {
  group: clearable({ ...name("What it is listed under.", GROUP_LENGTH_MAX), examples: ["checkout"] }),
  retry_interval: clearable(
    milliseconds(
      RETRY_MS_MIN,
      RETRY_MS_MAX,
      "Milliseconds between the checks from the first failure until it is down, at most `interval`; null: `interval`.",
    ),
  ),
  recovery_threshold: Type.Optional(
    integer(1, 10, "Successes in a row that make it up again; 1 unless given."),
  ),
  degraded_ms: clearable(
    milliseconds(1, 30_000, "Milliseconds above which a check is slow, less than `timeout`."),
  ),
  notify_degraded: Type.Optional(flag("Whether channels are told when it becomes slow, and quick again.")),
  accept_status: clearable(
    Type.Array(StatusOrRange, {
      minItems: 1,
      maxItems: ACCEPTED_MAX,
      errorMessage: `must be 1 to ${ACCEPTED_MAX} statuses such as 200 or 200-299, as texts`,
      description: "Statuses that are up; null: all below 400.",
    }),
  ),
  keyword: clearable(Keyword("What the first 64 KiB of the body must have in them.")),
  keyword_absent: clearable(Keyword("What they must not have in them.")),
  json_path: clearable(
    text({
      min: 1,
      max: JSON_PATH_LENGTH_MAX,
      description: "Where a value of a JSON answer stands.",
      examples: ["$.status"],
    }),
  ),
  json_op: clearable({ ...JsonOp, description: "How it is compared; `==` unless given." }),
  json_value: Type.Optional(
    Type.Union([text({ min: 0, max: KEYWORD_LENGTH_MAX }), Type.Number(), Type.Boolean(), Type.Null()], {
      errorMessage: `must be a text of at most ${KEYWORD_LENGTH_MAX} characters, a number, true, false or null`,
      description: "What it is compared with.",
      examples: ["UP"],
    }),
  ),
  tls_expiry_days: Type.Optional(
    integer(0, 90, "Days before its certificate ends at which channels are told; 0: never. 14 unless given."),
  ),
};
type OptionFields = { [Field in keyof typeof OPTION_FIELDS]?: Static<(typeof OPTION_FIELDS)[Field]> };

/** The same as every answer shows it. */
export const SHOWN_OPTIONS = {
  group: orNull(Type.String({ examples: ["checkout"] })),
  retry_interval: orNull(Type.Integer(), { examples: [null] }),
  recovery_threshold: Type.Integer({ examples: [1] }),
  degraded_ms: orNull(Type.Integer({ examples: [2_000] })),
  notify_degraded: Type.Boolean({ examples: [false] }),
  accept_status: orNull(Type.Array(Type.String({ examples: ["200-299"] })), { examples: [null] }),
  keyword: orNull(Type.String(), { examples: [null] }),
  keyword_absent: orNull(Type.String(), { examples: [null] }),
  json_path: orNull(Type.String({ examples: ["$.status"] })),
  json_op: orNull(JsonOp),
  json_value: Type.Union([Type.String({ examples: ["UP"] }), Type.Number(), Type.Boolean(), Type.Null()]),
  tls_expiry_days: Type.Integer({ examples: [14] }),
};

const ShownOptions = Type.Object(SHOWN_OPTIONS);
/** What a monitor's owner has set beyond the plain terms. */
export type MonitorOptions = Readonly<Static<typeof ShownOptions>>;

/** The fields that say what an answer must be like for its target to be up. */
const ASSERTIONS = [
  ...(["accept_status", "keyword", "keyword_absent"] as const),
  ...(["json_path", "json_op", "json_value"] as const),
] as const;
/** What they say. */
export type Assertions = Pick<MonitorOptions, (typeof ASSERTIONS)[number]>;

/** Whether the body must be kept. */
export function readsBody({ keyword, keyword_absent, json_path }: Assertions): boolean {
  return keyword !== null || keyword_absent !== null || json_path !== null;
}

/** A status such as `200`, or a range of them such as `200-299`, from the lower to the upper end. */
export function statusRange(text: string): readonly [from: number, to: number] {
  const [from = "", to = from] = text.split("-");
  return [Number(from), Number(to)];
}

/** What a monitor has where its user sets nothing. */
const OPTION_DEFAULTS: MonitorOptions = {
  group: null,
  retry_interval: null,
  recovery_threshold: 1,
  degraded_ms: null,
  notify_degraded: false,
  accept_status: null,
  keyword: null,
  keyword_absent: null,
  json_path: null,
  json_op: null,
  json_value: null,
  tls_expiry_days: 14,
};
const OPTION_NAMES = Object.keys(OPTION_DEFAULTS) as (keyof MonitorOptions)[];

/** Options as they are stored: those that are not at their default; null where all are. */
export function storedOptions(options: MonitorOptions): string | null {
  const set = OPTION_NAMES.filter((field) => options[field] !== OPTION_DEFAULTS[field]);
  return set.length === 0 ? null : JSON.stringify(Object.fromEntries(set.map((one) => [one, options[one]])));
}

/** Stored options, whole. */
export function optionsOf(stored: string | null): MonitorOptions {
  return stored === null ? OPTION_DEFAULTS : { ...OPTION_DEFAULTS, ...JSON.parse(stored) };
}

/** Settings that options must go with. */
interface Beside {
  readonly method: string;
  readonly timeout: number;
  readonly interval: number;
}

/**
 * What becomes of some of a monitor's options once all of its settings are known. `before`: as they were, null for a new
 * monitor.
 * @throws ApiError `validation_error`
 */
export function resolvedOptions(
  given: OptionFields,
  before: MonitorOptions | null,
  after: MonitorOptions & Beside,
  tierIntervalMs: number,
): Pick<MonitorOptions, "retry_interval" | "json_op" | "json_value"> {
  const retry = after.retry_interval && Math.max(after.retry_interval, retryMsMin(tierIntervalMs));
  const settled = { ...jsonAssertion(given, before ?? OPTION_DEFAULTS, after), retry_interval: retry };
  assertFits({ ...after, ...settled });
  return settled;
}

/** The quickest pace of checks between the first failure and `down`, given a tier's shortest interval. */
export function retryMsMin(tierIntervalMs: number): number {
  return Math.max(RETRY_MS_MIN, Math.round(tierIntervalMs * RETRY_SHARE));
}

function assertFits({ method, timeout, interval, ...options }: MonitorOptions & Beside): void {
  const { retry_interval: retry, degraded_ms: slow, accept_status: accepted } = options;
  if (retry !== null && retry > interval) {
    throw invalidField("retry_interval", `must be at most the interval of ${interval} ms`);
  }
  if (slow !== null && slow >= timeout) {
    throw invalidField("degraded_ms", `must be less than the timeout of ${timeout} ms`);
  }
  const turned = (accepted ?? []).map(statusRange).some(([from, to]) => from > to);
  if (turned) throw invalidField("accept_status", "must have ranges from the lower to the upper status");
  if (method === "HEAD" && readsBody(options)) {
    const field = (["keyword", "keyword_absent", "json_path"] as const).find((one) => options[one] !== null);
    throw invalidField(field ?? "method", "looks at the body of an answer: HEAD asks for none");
  }
}

/** What is said of the JSON answer: all three parts of it, or none. @throws ApiError `validation_error` */
function jsonAssertion(
  given: OptionFields,
  before: MonitorOptions,
  { json_path: path, json_op, json_value: value }: MonitorOptions,
): Pick<MonitorOptions, "json_op" | "json_value"> {
  if (path === null) {
    const beside = (["json_op", "json_value"] as const).find((one) => (given[one] ?? null) !== null);
    if (beside !== undefined) throw invalidField(beside, "needs a json_path");
    return { json_op: null, json_value: null };
  }
  if (readJsonPath(path) === null) {
    throw invalidField(
      "json_path",
      'must be a path such as $.status, $.checks[0].state or $.queue["in use"].length',
    );
  }
  const op = json_op ?? "==";
  if (op === "exists") return { json_op: op, json_value: null };
  const hadValue = before.json_op !== null && before.json_op !== "exists";
  if (given.json_value === undefined && !hadValue) {
    throw invalidField("json_value", `must be given for a json_op of ${op}`);
  }
  if (NUMERIC.has(op) && typeof value !== "number") {
    throw invalidField("json_value", `must be a number for a json_op of ${op}`);
  }
  if (op === "contains" && value === null) throw invalidField("json_value", "must not be null for contains");
  return { json_op: op, json_value: value };
}
