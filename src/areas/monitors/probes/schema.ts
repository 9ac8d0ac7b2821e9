import { type Static, Type } from "@sinclair/typebox";
import {
  clearable,
  dateTime,
  duration,
  integer,
  named,
  oneOf,
  orNull,
  text,
  uuid,
} from "../../../kernel/data/schema.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import { IcmpResult } from "../icmp-result.ts";
import { SHOWN_OPTIONS } from "../options.ts";
import { MonitorType } from "../types.ts";

/** Probes of a page by default. */
export const PROBES_PAGE = 50;
/** Results in one request: recording them takes a few slices of the event loop. */
export const RESULTS_MAX = 500;
/** Bytes of a request with results. */
export const RESULTS_BYTES_MAX = 256 * 1024;
/** Oldest result that is accepted. */
export const RESULT_AGE_MS_MAX = 7 * DAY_MS;
/** Longest `wait_ms`: proxies commonly close idle requests after a minute. */
const WAIT_MS_MAX = 55_000;
/** Default `wait_ms`. */
export const WAIT_MS = 25_000;
/** Longest text of an error that a probe reports. */
export const ERROR_LENGTH_MAX = 500;

/** The earliest and the latest expiry that a certificate can have: the years 0 and 9999, Unix seconds. */
const EXPIRY_MIN = Date.parse("0000-01-01T00:00:00Z") / 1_000;
const EXPIRY_MAX = Date.UTC(9999, 11, 31, 23, 59, 59) / 1_000;
const NAME_PATTERN = "^[a-z0-9][a-z0-9-]{0,31}$";
const Location = text({
  min: 1,
  max: 100,
  description: "Where the probe is, for people.",
  examples: ["Frankfurt"],
});

/** Body of a probe's creation. */
export const ProbeCreateBody = named("ProbeCreateBody", {
  name: Type.String({
    minLength: 1,
    maxLength: 32,
    pattern: NAME_PATTERN,
    errorMessage:
      "must be 1 to 32 lower-case letters, digits and dashes, beginning with a letter or digit, and not local",
    description: "Name of the probe, unique in the project. It cannot be changed.",
    examples: ["fra"],
  }),
  location: clearable(Location),
});

/** Body of a probe's update. */
export const ProbePatch = named("ProbePatch", { location: clearable(Location) });

export const Probe = named("Probe", {
  id: Type.String({ examples: ["prb_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
  name: Type.String({ examples: ["fra"] }),
  location: orNull(Type.String({ examples: ["Frankfurt"] })),
  status: oneOf(["new", "online", "offline"], {
    description: "`new` before its first request, `offline` after 2 minutes without one.",
  }),
  last_seen_at: orNull(dateTime(), { description: "Time of its last request; null before the first." }),
  version: orNull(Type.String(), { description: "Version of its executable.", examples: ["0.1.0"] }),
  queue: Type.Integer({ description: "Number of results that it still has to send.", examples: [0] }),
  clock_offset_ms: orNull(Type.Integer({ examples: [12] }), {
    description:
      "Difference of its clock from the server's, in milliseconds. Results do not depend on it: their times are the server's.",
  }),
  token: Type.Optional(
    Type.String({
      description: "Token of the probe. Only in the response to its creation.",
      examples: [],
    }),
  ),
  created_at: dateTime(),
  updated_at: dateTime(),
});
export type Probe = Static<typeof Probe>;

/** Response to a deletion. */
export const ProbeDeleted = named("ProbeDeleted", { deleted: Type.Literal(true) });

/** When a request was sent. */
const SENT = {
  run: Type.Optional(
    text({
      min: 1,
      max: 64,
      description: "Identifies the process of the probe, for `sent_ms`.",
      examples: [],
    }),
  ),
  sent_ms: Type.Optional(
    integer({
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
      description:
        "Time of the request by the monotonic clock of the process, in milliseconds: shows how long it was on its way.",
      examples: [],
    }),
  ),
};

/** Query for the work of a probe. */
export const ProbeWorkQuery = named("ProbeWorkQuery", {
  after: Type.Optional(
    Type.String({
      maxLength: 100,
      description: "The `cursor` of the last response; omitted at the start.",
      examples: [],
    }),
  ),
  wait_ms: Type.Optional(
    duration({
      unit: "ms",
      min: 0,
      max: WAIT_MS_MAX,
      default: WAIT_MS,
      description: "Longest wait for a change, in milliseconds.",
      // Examples must respond immediately.
      examples: [0],
    }),
  ),
  version: Type.Optional(Type.String({ maxLength: 50, description: "Version of the probe.", examples: [] })),
  queue: Type.Optional(
    integer({
      min: 0,
      max: 1_000_000,
      description: "Number of results that the probe still has to send.",
    }),
  ),
  time_ms: Type.Optional(
    integer({
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
      description: "Time of the probe's clock, Unix milliseconds.",
    }),
  ),
  ...SENT,
});
export type ProbeWorkQuery = Static<typeof ProbeWorkQuery>;

const { host, port, retry_interval, down_interval } = SHOWN_OPTIONS;
const { record_type, record_value, record_values, match, resolver } = SHOWN_OPTIONS;
const { keywords_all, keywords_any, tls, tls_verify, tls_client_certificate } = SHOWN_OPTIONS;
const { packets, max_loss_percent } = SHOWN_OPTIONS;
const { accept_status, keyword, keyword_absent, json_path, json_op, json_value } = SHOWN_OPTIONS;

/** A monitor as a probe needs it. */
const ProbeMonitor = Type.Object({
  monitor_id: uuid(),
  type: MonitorType,
  url: Type.String({ examples: ["https://example.com/health"] }),
  method: Type.String({ examples: ["GET"] }),
  headers: orNull(Type.Record(Type.String(), Type.String()), { examples: [null] }),
  body: orNull(Type.String(), { examples: [null] }),
  timeout: Type.Integer({ examples: [10_000] }),
  interval: Type.Integer({ examples: [60_000] }),
  consecutive_threshold: Type.Integer({ examples: [1] }),
  host,
  port,
  record_type,
  record_value,
  record_values,
  match,
  resolver,
  retry_interval,
  down_interval,
  accept_status,
  keyword,
  keyword_absent,
  keywords_all,
  keywords_any,
  tls,
  tls_verify,
  tls_client_certificate,
  tls_client_key: orNull(Type.String(), { description: "Key of the client certificate.", examples: [null] }),
  json_path,
  json_op,
  json_value,
  packets,
  max_loss_percent,
});
export type ProbeMonitor = Static<typeof ProbeMonitor>;

/** Work of a probe. */
export const ProbeWork = named("ProbeWork", {
  cursor: Type.String({ description: "Position for the next request.", examples: ["a1.0"] }),
  reset: Type.Boolean({
    description: "Whether `monitors` begin a new list: monitors of earlier responses are dropped.",
  }),
  complete: Type.Boolean({ description: "Whether the list ends with this response.", examples: [true] }),
  monitors: Type.Array(ProbeMonitor, { description: "Monitors to check at their intervals." }),
  due: Type.Array(uuid(), { description: "Monitors to check once, now.", examples: [[]] }),
  scheduled: Type.Boolean({
    description:
      "Whether the probe checks at the intervals itself; otherwise only what is `due`, under a test clock.",
    examples: [true],
  }),
});
export type ProbeWork = Static<typeof ProbeWork>;

const Result = Type.Object({
  result_id: text({
    min: 1,
    max: 64,
    description: "Identifies the result: a second one with it is rejected.",
  }),
  monitor_id: Type.String({ maxLength: 64 }),
  age_ms: Type.Number({
    description:
      "Time since the start of the check, in milliseconds, by the monotonic clock of the probe: 0 to 7 days.",
    examples: [250],
  }),
  status: oneOf(["up", "down", "unknown"], {
    description: "`unknown` if the probe could not check, such as without `ping`: it does not vote then.",
  }),
  latency_ms: Type.Optional(
    orNull(integer({ min: 0, max: 60_000 }), {
      description: "Latency of the check, in milliseconds. Null, if nothing was measured, counts as 0.",
      examples: [120],
    }),
  ),
  response_status: Type.Optional(orNull(integer({ min: 100, max: 999 }), { examples: [200] })),
  error: Type.Optional(
    orNull(text({ min: 0, max: ERROR_LENGTH_MAX }), {
      description: "Why the target is down, or why it could not be checked.",
      examples: [null],
    }),
  ),
  observer_offline: Type.Optional(
    Type.Boolean({ description: "Whether the probe itself was offline, so that the result is no vote." }),
  ),
  icmp: Type.Optional({ ...IcmpResult, description: "Packets of the check, for `icmp`." }),
  certificate: Type.Optional(
    Type.Object({
      not_after: integer({ min: EXPIRY_MIN, max: EXPIRY_MAX, description: "Expiry, Unix seconds." }),
      issuer: text({ min: 0, max: 64 }),
      intermediate: Type.Optional(text({ min: 1, max: 64 })),
    }),
  ),
});
export type ProbeResult = Static<typeof Result>;

/** Body with results of a probe. */
export const ProbeResultsBody = named("ProbeResultsBody", {
  results: Type.Array(Result, {
    maxItems: RESULTS_MAX,
    errorMessage: `must be at most ${RESULTS_MAX} results`,
    description: `At most ${RESULTS_MAX} results.`,
  }),
  ...SENT,
});
export type ProbeResultsBody = Static<typeof ProbeResultsBody>;

/** What became of results. */
export const ProbeResultsAccepted = named("ProbeResultsAccepted", {
  accepted: Type.Integer({ description: "Number of results that were stored.", examples: [1] }),
  rejected: Type.Array(
    Type.Object({
      index: Type.Integer({ examples: [1] }),
      reason: oneOf(["duplicate", "unknown_monitor", "age"], {}),
    }),
    { description: "Results that were not stored. They are not to be sent again." },
  ),
});
export type ProbeResultsAccepted = Static<typeof ProbeResultsAccepted>;
