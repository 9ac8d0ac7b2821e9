import { type Static, Type } from "@sinclair/typebox";
import { EXACT_NUMBER_PROBLEM } from "../../json-text.ts";
import {
  clearable,
  duration,
  flag,
  integer,
  name,
  oneOf,
  orNull,
  partOf,
  setting,
  text,
} from "../../kernel/data/schema.ts";
import { invalidField } from "../../kernel/errors.ts";
import { exactNumberIn } from "../../kernel/http/requests/body.ts";
import { RECORD_TYPES } from "../../kernel/outbound/dns/message.ts";
import { START_TLS } from "../../kernel/outbound/starttls.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { JSON_PATH_LENGTH_MAX, readJsonPath } from "./json-path.ts";
import { RESOLVER_LENGTH_MAX } from "./resolver.ts";
import { requiredFor } from "./types.ts";

/** Maximum length of a group name, which is a heading in a list. */
export const GROUP_LENGTH_MAX = 60;
/** Maximum number of accepted statuses and ranges. */
export const ACCEPTED_MAX = 20;
/** Maximum length of a keyword and of a text to compare with. */
export const KEYWORD_LENGTH_MAX = 256;
/** Most keywords of a list. */
export const KEYWORDS_MAX = 10;
/** Longest client certificate with its intermediate ones, PEM: four of RSA. */
export const CLIENT_CERTIFICATE_LENGTH_MAX = 10_000;
/** Shortest retry interval; at least {@link RETRY_SHARE} of the tier's shortest interval. */
export const RETRY_MS_MIN = 5_000;
const RETRY_SHARE = 1 / 10;
/** Longest time for which the alert of an outage is held: an outage of a day is news. */
const NOTIFY_AFTER_MS_MAX = DAY_MS;
/** Longest retry interval. A failing target is checked at least this often where retries are wanted. */
const RETRY_MS_MAX = 300_000;

const JsonOp = oneOf(["==", "!=", "<", "<=", ">", ">=", "contains", "exists"]);
/** Comparison of a value in a JSON response. */
export type JsonOp = Static<typeof JsonOp>;
const NUMERIC: ReadonlySet<JsonOp> = new Set(["<", "<=", ">", ">="]);

/** Probes of a monitor: more places say nothing more. */
const PROBES_MAX = 10;
/** The name of the server among the probes of a monitor. */
export const LOCAL = "local";

const Confirm = oneOf(["any", "majority", "all"]);
/** How many probes must see a target down. */
export type Confirm = Static<typeof Confirm>;

/** Longest value of a record: a text that fills its record (RFC 1035, section 3.3). */
export const RECORD_LENGTH_MAX = 1_024;

/** Packets of one check: enough for a loss in steps of a tenth, within three seconds. */
export const PACKETS_MAX = 10;

/** TLS of ports. */
const TLS = ["direct", ...START_TLS] as const;

const RecordType = oneOf(RECORD_TYPES);
/** Most values of a set of records. */
export const RECORD_VALUES_MAX = 20;

const Match = oneOf(["exact", "contains", "set"]);
/** How found records are compared with the expected ones. */
export type Match = Static<typeof Match>;

const Keyword = (description: string) => text({ min: 1, max: KEYWORD_LENGTH_MAX, description });
const Keywords = (description: string) =>
  Type.Array(text({ min: 1, max: KEYWORD_LENGTH_MAX }), {
    minItems: 1,
    maxItems: KEYWORDS_MAX,
    uniqueItems: true,
    errorMessage: `must be 1 to ${KEYWORDS_MAX} texts of 1 to ${KEYWORD_LENGTH_MAX} characters, each once`,
    description,
    examples: [["Add to cart", "Checkout"]],
  });
const StatusOrRange = Type.String({
  pattern: "^[1-9][0-9]{2}(-[1-9][0-9]{2})?$",
  errorMessage: "must be a status such as 200 or a range such as 200-299, as a text",
  examples: ["200-299"],
});

/** The optional settings of monitors. */
const OPTIONS = {
  group: setting(
    clearable(
      name({
        max: GROUP_LENGTH_MAX,
        description: "Group under which the monitor is listed.",
        examples: ["checkout"],
      }),
    ),
    orNull(Type.String({ examples: ["checkout"] })),
    null,
  ),
  retry_interval: setting(
    clearable(
      duration({
        unit: "ms",
        min: RETRY_MS_MIN,
        max: RETRY_MS_MAX,
        description:
          "Time between checks from the first failure until the target is down, in milliseconds; at most `interval`. Null: `interval`.",
      }),
    ),
    orNull(Type.Integer(), { examples: [null] }),
    null,
  ),
  down_interval: setting(
    clearable(
      duration({
        unit: "ms",
        min: RETRY_MS_MIN,
        max: DAY_MS,
        description:
          "Time between checks while the target is down, in milliseconds; at most `interval`. Null: `interval`.",
      }),
    ),
    orNull(Type.Integer(), { examples: [null] }),
    null,
  ),
  notify_after_ms: setting(
    Type.Optional(
      duration({
        unit: "ms",
        min: 0,
        max: NOTIFY_AFTER_MS_MAX,
        description:
          "Time that a target must be down before anyone is notified, in milliseconds; 0 by default. If it recovers before, nobody is notified of the outage or of the recovery.",
      }),
    ),
    Type.Integer({ examples: [0] }),
    0,
  ),
  recovery_threshold: setting(
    Type.Optional(
      integer({
        min: 1,
        max: 10,
        description: "Consecutive successes after which a target that is down is up; 1 by default.",
      }),
    ),
    Type.Integer({ examples: [1] }),
    1,
  ),
  degraded_ms: setting(
    clearable(
      duration({
        unit: "ms",
        min: 1,
        max: 30_000,
        description: "Latency above which a check is slow, in milliseconds; less than `timeout`.",
      }),
    ),
    orNull(Type.Integer({ examples: [2_000] })),
    null,
  ),
  notify_degraded: setting(
    Type.Optional(
      flag({
        description:
          "Whether channels are notified when the target becomes slow, and when its latency is normal again.",
      }),
    ),
    Type.Boolean({ examples: [false] }),
    false,
  ),
  accept_status: setting(
    clearable(
      Type.Array(StatusOrRange, {
        minItems: 1,
        maxItems: ACCEPTED_MAX,
        errorMessage: `must be 1 to ${ACCEPTED_MAX} statuses such as 200 or 200-299, as texts`,
        description: "Response statuses that count as up; null for all below 400.",
      }),
    ),
    orNull(Type.Array(Type.String({ examples: ["200-299"] })), { examples: [null] }),
    null,
  ),
  host: setting(
    Type.Optional(
      text({
        min: 1,
        max: 253,
        description: `Name or address of the host; for \`dns\` the name that is looked up. ${requiredFor("host")}`,
        examples: ["db.example.com"],
      }),
    ),
    orNull(Type.String(), {
      description: "Host of the target; null if the target is a URL.",
      examples: [null],
    }),
    null,
  ),
  port: setting(
    Type.Optional(integer({ min: 1, max: 65_535, description: `Port of the host. ${requiredFor("port")}` })),
    orNull(Type.Integer(), { description: "Port of the host.", examples: [null] }),
    null,
  ),
  record_type: setting(
    Type.Optional({ ...RecordType, description: `Type of the records. ${requiredFor("record_type")}` }),
    orNull(RecordType, { description: "Type of the records.", examples: [null] }),
    null,
  ),
  record_value: setting(
    clearable(
      text({
        min: 1,
        max: RECORD_LENGTH_MAX,
        description:
          "Value that one of the records must have, as in a zone file, such as `10 mail.example.com`; null for any.",
        examples: ["192.0.2.10"],
      }),
    ),
    orNull(Type.String(), {
      description: "Value that one of the records must have; null for any.",
      examples: [null],
    }),
    null,
  ),
  match: setting(
    Type.Optional({
      ...Match,
      description:
        "How records are compared: one of them is the `record_value` (`exact`, the default), or has it in it (`contains`), or all of them together are the `record_values` (`set`).",
    }),
    Match,
    "exact",
  ),
  record_values: setting(
    clearable(
      Type.Array(text({ min: 1, max: RECORD_LENGTH_MAX }), {
        minItems: 1,
        maxItems: RECORD_VALUES_MAX,
        uniqueItems: true,
        errorMessage: `must be 1 to ${RECORD_VALUES_MAX} values of records, each once`,
        description: "Values of all records, in any order. Required with the `match` `set`.",
        examples: [["192.0.2.10", "192.0.2.11"]],
      }),
    ),
    orNull(Type.Array(Type.String({ examples: ["192.0.2.10"] })), {
      description: "Values of all records, with the `match` `set`.",
      examples: [null],
    }),
    null,
  ),
  resolver: setting(
    clearable(
      text({
        min: 1,
        max: RESOLVER_LENGTH_MAX,
        description:
          "Name server that is queried, by UDP and, for long responses, by TCP: host, or host and port. Null: those of the machine that checks.",
        examples: ["1.1.1.1:53"],
      }),
    ),
    orNull(Type.String(), {
      description: "Name server that is queried; null for those of the machine that checks.",
      examples: [null],
    }),
    null,
  ),
  packets: setting(
    Type.Optional(
      integer({
        min: 1,
        max: PACKETS_MAX,
        description: "Packets that a check of an `icmp` monitor sends, 200 ms apart; 3 by default.",
      }),
    ),
    Type.Integer({ examples: [3] }),
    3,
  ),
  max_loss_percent: setting(
    Type.Optional(
      integer({
        min: 0,
        max: 99,
        description:
          "Share of the packets that may be lost, in percent; with more, the target is down. 99 by default: one response is enough.",
      }),
    ),
    Type.Integer({ examples: [99] }),
    99,
  ),
  keyword: setting(
    clearable(
      Keyword(
        "Text that must appear in the first 64 KiB of the body; for `tcp` in the first 4 KiB that the server sends.",
      ),
    ),
    orNull(Type.String(), { examples: [null] }),
    null,
  ),
  keyword_absent: setting(
    clearable(Keyword("Text that must not appear in the first 64 KiB of the body.")),
    orNull(Type.String(), { examples: [null] }),
    null,
  ),
  keywords_all: setting(
    clearable(Keywords("Texts that must all appear in the first 64 KiB of the body.")),
    orNull(Type.Array(Type.String()), { examples: [null] }),
    null,
  ),
  keywords_any: setting(
    clearable(Keywords("Texts of which at least one must appear in the first 64 KiB of the body.")),
    orNull(Type.Array(Type.String()), { examples: [null] }),
    null,
  ),
  json_path: setting(
    clearable(
      text({
        min: 1,
        max: JSON_PATH_LENGTH_MAX,
        description: "Path of a value in a JSON response.",
        examples: ["$.status"],
      }),
    ),
    orNull(Type.String({ examples: ["$.status"] })),
    null,
  ),
  json_op: setting(
    clearable({ ...JsonOp, description: "Comparison of the value at `json_path`; `==` by default." }),
    orNull(JsonOp),
    null,
  ),
  json_value: setting(
    Type.Optional(
      Type.Union([text({ min: 0, max: KEYWORD_LENGTH_MAX }), Type.Number(), Type.Boolean(), Type.Null()], {
        errorMessage: `must be a text of at most ${KEYWORD_LENGTH_MAX} characters, a number, true, false or null`,
        description: "Value that the value at `json_path` is compared with.",
        examples: ["UP"],
      }),
    ),
    Type.Union([Type.String({ examples: ["UP"] }), Type.Number(), Type.Boolean(), Type.Null()]),
    null,
  ),
  probes: setting(
    Type.Optional(
      Type.Array(text({ min: 1, max: 32 }), {
        minItems: 1,
        maxItems: PROBES_MAX,
        uniqueItems: true,
        errorMessage: `must be 1 to ${PROBES_MAX} names of probes, or local`,
        description:
          "Names of the probes that check the target; `local` is this server, and the default. Not for heartbeats.",
        examples: [["local"]],
      }),
    ),
    Type.Array(Type.String(), { examples: [["local"]] }),
    [LOCAL],
  ),
  confirm: setting(
    Type.Optional({
      ...Confirm,
      description:
        "How many of the probes with a recent result must see the target down before it is down; `majority` by default.",
    }),
    Confirm,
    "majority",
  ),
  tls: setting(
    clearable(
      Type.Union([oneOf(TLS), Type.Literal(true)], {
        errorMessage: `must be ${TLS.join(", ")}, or true (direct)`,
        description:
          "TLS of the port: from the start (`direct`, or `true`), or after the command of a mail protocol. Null: none.",
        examples: ["direct"],
      }),
    ),
    orNull(oneOf(TLS), { description: "TLS of the port; null for none.", examples: [null] }),
    null,
  ),
  tls_verify: setting(
    Type.Optional(
      flag({
        description:
          "Whether the target is down if its certificate is not valid; `true` by default. Its expiry is watched in any case.",
      }),
    ),
    Type.Boolean({ examples: [true] }),
    true,
  ),
  tls_client_certificate: setting(
    clearable(
      text({
        min: 1,
        max: CLIENT_CERTIFICATE_LENGTH_MAX,
        description:
          "Certificate that checks present to the server if it requests one, with intermediate certificates, PEM. Requires `tls_client_key`.",
        examples: [],
      }),
    ),
    orNull(Type.String(), { description: "Certificate that checks present, PEM.", examples: [null] }),
    null,
  ),
  tls_expiry_days: setting(
    Type.Optional(
      duration({
        unit: "days",
        min: 0,
        max: 90,
        description:
          "Days before expiry of the certificate at which channels are notified; 0 for never, 14 by default.",
      }),
    ),
    Type.Integer({ examples: [14] }),
    14,
  ),
};
type Options = typeof OPTIONS;

/** Optional settings of creation and update. */
export const OPTION_FIELDS = partOf(OPTIONS, "requested");
type OptionFields = { [Field in keyof Options]?: Static<Options[Field]["requested"]> };

/** Optional settings in every response. */
export const SHOWN_OPTIONS = partOf(OPTIONS, "shown");

const ShownOptions = Type.Object(SHOWN_OPTIONS);
/** Optional settings of a monitor. */
export type MonitorOptions = Readonly<Static<typeof ShownOptions>>;

/** Settings that a response must meet for its target to be up. */
const ASSERTIONS = [
  ...(["accept_status", "keyword", "keyword_absent", "keywords_all", "keywords_any"] as const),
  ...(["json_path", "json_op", "json_value"] as const),
] as const;
/** Those that need the body of the response. */
const BODY_ASSERTIONS = [
  "keyword",
  "keyword_absent",
  "keywords_all",
  "keywords_any",
  "json_path",
] as const satisfies readonly (typeof ASSERTIONS)[number][];
export type Assertions = Pick<MonitorOptions, (typeof ASSERTIONS)[number]>;

/** Whether a check needs the body of the response. */
export function readsBody(assertions: Assertions): boolean {
  return BODY_ASSERTIONS.some((name) => assertions[name] !== null);
}

/** Parses a status such as `200` or a range such as `200-299`. */
export function statusRange(text: string): readonly [from: number, to: number] {
  const [from = "", to = from] = text.split("-");
  return [Number(from), Number(to)];
}

/** The optional settings of a monitor without any. */
export const OPTION_DEFAULTS: MonitorOptions = partOf(OPTIONS, "initial");
const OPTION_NAMES = Object.keys(OPTION_DEFAULTS) as (keyof MonitorOptions)[];

/** The stored form of options: those that differ from their defaults as JSON; null if none does. */
export function storedOptions(options: MonitorOptions): string | null {
  const set = OPTION_NAMES.filter((field) => !isEqual(options[field], OPTION_DEFAULTS[field]));
  return set.length === 0
    ? null
    : JSON.stringify(Object.fromEntries(set.map((field) => [field, options[field]])));
}

function isEqual(left: unknown, right: unknown): boolean {
  return left === right || (Array.isArray(left) && JSON.stringify(left) === JSON.stringify(right));
}

/** Restores options from their stored form. */
export function optionsOf(stored: string | null): MonitorOptions {
  return stored === null ? OPTION_DEFAULTS : { ...OPTION_DEFAULTS, ...JSON.parse(stored) };
}

/** The same as a request has them. */
type GivenOptions = Omit<MonitorOptions, "tls"> & { readonly tls: MonitorOptions["tls"] | true };

/** Methods that ask for a tunnel, or for an echo of the headers. */
const UNSENT_METHODS: ReadonlySet<string> = new Set(["CONNECT", "TRACE"]);

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
  body: OptionFields,
  before: MonitorOptions | null,
  after: GivenOptions & RelatedSettings,
  tierIntervalMs: number,
): Pick<
  MonitorOptions,
  "retry_interval" | "down_interval" | "json_op" | "json_value" | "record_value" | "record_values" | "tls"
> {
  const raised = (ms: number | null) => ms && Math.max(ms, retryMsMin(tierIntervalMs));
  const settled = {
    ...jsonAssertion(body, before ?? OPTION_DEFAULTS, after),
    ...expectedRecords(body, after),
    tls: after.tls === true ? ("direct" as const) : after.tls,
    retry_interval: raised(after.retry_interval),
    down_interval: raised(after.down_interval),
  };
  assertFits({ ...after, ...settled });
  return settled;
}

/** The shortest interval of retries and of checks while down, given a tier's shortest interval. */
export function retryMsMin(tierIntervalMs: number): number {
  return Math.max(RETRY_MS_MIN, Math.round(tierIntervalMs * RETRY_SHARE));
}

function assertFits({ method, timeout, interval, ...options }: MonitorOptions & RelatedSettings): void {
  const { degraded_ms: slow, accept_status: accepted } = options;
  for (const field of ["retry_interval", "down_interval"] as const)
    if ((options[field] ?? 0) > interval)
      throw invalidField(field, `must be at most the interval of ${interval} ms`);
  if (slow !== null && slow >= timeout) {
    throw invalidField("degraded_ms", `must be less than the timeout of ${timeout} ms`);
  }
  if (UNSENT_METHODS.has(method))
    throw invalidField("method", `must not be ${[...UNSENT_METHODS].join(" or ")}`);
  const hasReversed = (accepted ?? []).map(statusRange).some(([from, to]) => from > to);
  if (hasReversed)
    throw invalidField("accept_status", "must have ranges from the lower to the higher status");
  if (method === "HEAD" && readsBody(options)) {
    const field = BODY_ASSERTIONS.find((name) => options[name] !== null);
    throw invalidField(
      field ?? "method",
      "needs the body of the response, and the method HEAD returns none. Use GET or POST",
    );
  }
}

/**
 * Rejects a `json_value` that a double cannot hold: another number would be compared.
 *
 * @throws ApiError `validation_error`
 */
export function assertAssertionHeld(bodyText: string): void {
  if (exactNumberIn(bodyText, ["json_value"]) !== null)
    throw invalidField("json_value", EXACT_NUMBER_PROBLEM);
}

/** Resolves the expected records: one value, or a set of values. @throws ApiError `validation_error` */
function expectedRecords(
  body: OptionFields,
  { match, record_value, record_values }: Pick<MonitorOptions, "match" | "record_value" | "record_values">,
): Pick<MonitorOptions, "record_value" | "record_values"> {
  if (match === "set") {
    if ((body.record_value ?? null) !== null)
      throw invalidField("record_value", "is not for the match set. Use record_values");
    if (record_values === null) throw invalidField("record_values", "is required with the match set");
    return { record_value: null, record_values };
  }
  if ((body.record_values ?? null) !== null)
    throw invalidField("record_values", "is only for the match set. Use record_value, or set match");
  if (match === "contains" && record_value === null)
    throw invalidField("record_value", "is required with the match contains");
  return { record_value, record_values: null };
}

/** Resolves the assertion on a JSON response: all three fields, or none. @throws ApiError `validation_error` */
function jsonAssertion(
  body: OptionFields,
  before: MonitorOptions,
  {
    json_path: path,
    json_op,
    json_value: value,
  }: Pick<MonitorOptions, "json_path" | "json_op" | "json_value">,
): Pick<MonitorOptions, "json_op" | "json_value"> {
  if (path === null) {
    const orphan = (["json_op", "json_value"] as const).find((name) => (body[name] ?? null) !== null);
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
  if (body.json_value === undefined && !hadValue) {
    throw invalidField("json_value", `is required with the json_op ${op}`);
  }
  if (NUMERIC.has(op) && typeof value !== "number") {
    throw invalidField("json_value", `must be a number with the json_op ${op}`);
  }
  if (op === "contains" && value === null)
    throw invalidField("json_value", "must not be null with the json_op contains");
  return { json_op: op, json_value: value };
}
