import { type Static, Type } from "@sinclair/typebox";
import { name, oneOf, orNull, text } from "../../kernel/data/schema.ts";
import { invalidField } from "../../kernel/errors.ts";
import { RECORD_TYPES } from "../../kernel/outbound/lookups.ts";
import { JSON_PATH_LENGTH_MAX, readJsonPath } from "./checks/json-path.ts";
import { clearable, flag, integer, milliseconds } from "./fields.ts";

/** Maximum length of a group name, which is a heading in a list. */
export const GROUP_LENGTH_MAX = 60;
/** Maximum number of accepted statuses and ranges. */
export const ACCEPTED_MAX = 20;
/** Maximum length of a keyword and of a text to compare with. */
export const KEYWORD_LENGTH_MAX = 256;
/** Shortest retry interval; at least {@link RETRY_SHARE} of the tier's shortest interval. */
export const RETRY_MS_MIN = 5_000;
const RETRY_SHARE = 1 / 10;
/** Longest retry interval. A failing target is checked at least this often where retries are wanted. */
const RETRY_MS_MAX = 300_000;

const JsonOp = oneOf(["==", "!=", "<", "<=", ">", ">=", "contains", "exists"]);
/** Comparison of a value in a JSON response. */
export type JsonOp = Static<typeof JsonOp>;
const NUMERIC: ReadonlySet<JsonOp> = new Set(["<", "<=", ">", ">="]);

/** Longest value of a record: a text that fills its record (RFC 1035, section 3.3). */
export const RECORD_LENGTH_MAX = 1_024;

const RecordType = oneOf(RECORD_TYPES);

const Keyword = (description: string) => text({ min: 1, max: KEYWORD_LENGTH_MAX, description });
const StatusOrRange = Type.String({
  pattern: "^[1-9][0-9]{2}(-[1-9][0-9]{2})?$",
  errorMessage: "must be a status such as 200 or a range such as 200-299, as a text",
  examples: ["200-299"],
});

/** Optional settings of creation and update. */
export const OPTION_FIELDS = {
  group: clearable({
    ...name("Group under which the monitor is listed.", GROUP_LENGTH_MAX),
    examples: ["checkout"],
  }),
  retry_interval: clearable(
    milliseconds(
      RETRY_MS_MIN,
      RETRY_MS_MAX,
      "Time between checks from the first failure until the target is down, in milliseconds; at most `interval`. Null: `interval`.",
    ),
  ),
  recovery_threshold: Type.Optional(
    integer(1, 10, "Consecutive successes after which a target that is down is up; 1 by default."),
  ),
  degraded_ms: clearable(
    milliseconds(1, 30_000, "Latency above which a check is slow, in milliseconds; less than `timeout`."),
  ),
  notify_degraded: Type.Optional(
    flag("Whether channels are notified when the target becomes slow, and when its latency is normal again."),
  ),
  accept_status: clearable(
    Type.Array(StatusOrRange, {
      minItems: 1,
      maxItems: ACCEPTED_MAX,
      errorMessage: `must be 1 to ${ACCEPTED_MAX} statuses such as 200 or 200-299, as texts`,
      description: "Response statuses that count as up; null for all below 400.",
    }),
  ),
  host: Type.Optional(
    text({
      min: 1,
      max: 253,
      description:
        "Name or address of the host, for `tcp`; name that is looked up, for `dns`. Required for both.",
      examples: ["db.example.com"],
    }),
  ),
  port: Type.Optional(integer(1, 65_535, "Port, for `tcp`. Required there.")),
  record_type: Type.Optional({
    ...RecordType,
    description: "Type of the records, for `dns`. Required there.",
  }),
  record_value: clearable(
    text({
      min: 1,
      max: RECORD_LENGTH_MAX,
      description:
        "Value that one of the records must have, for `dns`; null for any. `MX` records are compared as `10 mail.example.com`.",
      examples: ["192.0.2.10"],
    }),
  ),
  keyword: clearable(
    Keyword(
      "Text that must appear in the first 64 KiB of the body; for `tcp` in the first 4 KiB that the server sends.",
    ),
  ),
  keyword_absent: clearable(Keyword("Text that must not appear in the first 64 KiB of the body.")),
  json_path: clearable(
    text({
      min: 1,
      max: JSON_PATH_LENGTH_MAX,
      description: "Path of a value in a JSON response.",
      examples: ["$.status"],
    }),
  ),
  json_op: clearable({ ...JsonOp, description: "Comparison of the value at `json_path`; `==` by default." }),
  json_value: Type.Optional(
    Type.Union([text({ min: 0, max: KEYWORD_LENGTH_MAX }), Type.Number(), Type.Boolean(), Type.Null()], {
      errorMessage: `must be a text of at most ${KEYWORD_LENGTH_MAX} characters, a number, true, false or null`,
      description: "Value that the value at `json_path` is compared with.",
      examples: ["UP"],
    }),
  ),
  tls_expiry_days: Type.Optional(
    integer(
      0,
      90,
      "Days before expiry of the certificate at which channels are notified; 0 for never, 14 by default.",
    ),
  ),
};
type OptionFields = { [Field in keyof typeof OPTION_FIELDS]?: Static<(typeof OPTION_FIELDS)[Field]> };

/** Optional settings in every response. */
export const SHOWN_OPTIONS = {
  group: orNull(Type.String({ examples: ["checkout"] })),
  retry_interval: orNull(Type.Integer(), { examples: [null] }),
  recovery_threshold: Type.Integer({ examples: [1] }),
  degraded_ms: orNull(Type.Integer({ examples: [2_000] })),
  notify_degraded: Type.Boolean({ examples: [false] }),
  accept_status: orNull(Type.Array(Type.String({ examples: ["200-299"] })), { examples: [null] }),
  host: orNull(Type.String(), { description: "Host of a `tcp` or `dns` monitor.", examples: [null] }),
  port: orNull(Type.Integer(), { description: "Port of a `tcp` monitor.", examples: [null] }),
  record_type: orNull(RecordType, {
    description: "Type of the records of a `dns` monitor.",
    examples: [null],
  }),
  record_value: orNull(Type.String(), {
    description: "Value that one of the records of a `dns` monitor must have; null for any.",
    examples: [null],
  }),
  keyword: orNull(Type.String(), { examples: [null] }),
  keyword_absent: orNull(Type.String(), { examples: [null] }),
  json_path: orNull(Type.String({ examples: ["$.status"] })),
  json_op: orNull(JsonOp),
  json_value: Type.Union([Type.String({ examples: ["UP"] }), Type.Number(), Type.Boolean(), Type.Null()]),
  tls_expiry_days: Type.Integer({ examples: [14] }),
};

const ShownOptions = Type.Object(SHOWN_OPTIONS);
/** Optional settings of a monitor. */
export type MonitorOptions = Readonly<Static<typeof ShownOptions>>;

/** Settings that a response must meet for its target to be up. */
const ASSERTIONS = [
  ...(["accept_status", "keyword", "keyword_absent"] as const),
  ...(["json_path", "json_op", "json_value"] as const),
] as const;
export type Assertions = Pick<MonitorOptions, (typeof ASSERTIONS)[number]>;

/** Whether a check needs the body of the response. */
export function readsBody({ keyword, keyword_absent, json_path }: Assertions): boolean {
  return keyword !== null || keyword_absent !== null || json_path !== null;
}

/** Parses a status such as `200` or a range such as `200-299`. */
export function statusRange(text: string): readonly [from: number, to: number] {
  const [from = "", to = from] = text.split("-");
  return [Number(from), Number(to)];
}

/** Defaults of the optional settings. */
const OPTION_DEFAULTS: MonitorOptions = {
  group: null,
  retry_interval: null,
  recovery_threshold: 1,
  degraded_ms: null,
  notify_degraded: false,
  accept_status: null,
  host: null,
  port: null,
  record_type: null,
  record_value: null,
  keyword: null,
  keyword_absent: null,
  json_path: null,
  json_op: null,
  json_value: null,
  tls_expiry_days: 14,
};
const OPTION_NAMES = Object.keys(OPTION_DEFAULTS) as (keyof MonitorOptions)[];

/** The stored form of options: those that differ from their defaults as JSON; null if none does. */
export function storedOptions(options: MonitorOptions): string | null {
  const set = OPTION_NAMES.filter((field) => options[field] !== OPTION_DEFAULTS[field]);
  return set.length === 0 ? null : JSON.stringify(Object.fromEntries(set.map((one) => [one, options[one]])));
}

/** Restores options from their stored form. */
export function optionsOf(stored: string | null): MonitorOptions {
  return stored === null ? OPTION_DEFAULTS : { ...OPTION_DEFAULTS, ...JSON.parse(stored) };
}

/** Settings that limit the options. */
interface RelatedSettings {
  readonly method: string;
  readonly timeout: number;
  readonly interval: number;
}

/**
 * Resolves the options that depend on other settings. `before`: the options before the update; null for a new monitor.
 * @throws ApiError `validation_error`
 */
export function resolveOptions(
  given: OptionFields,
  before: MonitorOptions | null,
  after: MonitorOptions & RelatedSettings,
  tierIntervalMs: number,
): Pick<MonitorOptions, "retry_interval" | "json_op" | "json_value"> {
  const retry = after.retry_interval && Math.max(after.retry_interval, retryMsMin(tierIntervalMs));
  const settled = { ...jsonAssertion(given, before ?? OPTION_DEFAULTS, after), retry_interval: retry };
  assertFits({ ...after, ...settled });
  return settled;
}

/** The shortest retry interval, given a tier's shortest interval. */
export function retryMsMin(tierIntervalMs: number): number {
  return Math.max(RETRY_MS_MIN, Math.round(tierIntervalMs * RETRY_SHARE));
}

function assertFits({ method, timeout, interval, ...options }: MonitorOptions & RelatedSettings): void {
  const { retry_interval: retry, degraded_ms: slow, accept_status: accepted } = options;
  if (retry !== null && retry > interval) {
    throw invalidField("retry_interval", `must be at most the interval of ${interval} ms`);
  }
  if (slow !== null && slow >= timeout) {
    throw invalidField("degraded_ms", `must be less than the timeout of ${timeout} ms`);
  }
  const hasReversed = (accepted ?? []).map(statusRange).some(([from, to]) => from > to);
  if (hasReversed)
    throw invalidField("accept_status", "must have ranges from the lower to the higher status");
  if (method === "HEAD" && readsBody(options)) {
    const field = (["keyword", "keyword_absent", "json_path"] as const).find((one) => options[one] !== null);
    throw invalidField(
      field ?? "method",
      "needs the body of the response, and the method HEAD returns none. Use GET or POST",
    );
  }
}

/** Resolves the assertion on a JSON response: all three fields, or none. @throws ApiError `validation_error` */
function jsonAssertion(
  given: OptionFields,
  before: MonitorOptions,
  { json_path: path, json_op, json_value: value }: MonitorOptions,
): Pick<MonitorOptions, "json_op" | "json_value"> {
  if (path === null) {
    const orphan = (["json_op", "json_value"] as const).find((one) => (given[one] ?? null) !== null);
    if (orphan !== undefined) throw invalidField(orphan, "needs a json_path");
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
    throw invalidField("json_value", `is required with the json_op ${op}`);
  }
  if (NUMERIC.has(op) && typeof value !== "number") {
    throw invalidField("json_value", `must be a number with the json_op ${op}`);
  }
  if (op === "contains" && value === null)
    throw invalidField("json_value", "must not be null with the json_op contains");
  return { json_op: op, json_value: value };
}
