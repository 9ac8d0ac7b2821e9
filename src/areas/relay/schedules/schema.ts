import { type Static, Type } from "@sinclair/typebox";
import {
  givenEpochMs,
  name,
  named,
  oneOf,
  orNull,
  text,
  timeZone,
  uuid,
} from "../../../kernel/data/schema.ts";
import { CALLBACK_URLS, RetrySchedule, SHOWN_CALLBACK_URLS } from "../deliveries/schema.ts";
import { MessageType } from "../endpoints/schema.ts";

/** Length of `next_runs`. */
export const NEXT_RUNS = 5;
/** Default `time_zone`. */
export const TIME_ZONE = "UTC";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
const STATES = ["live", "paused"] as const;
const MISSED = ["once", "skip"] as const;
const OVERLAPS = ["allow", "skip"] as const;

const Cron = text({
  min: 1,
  max: 256,
  description:
    "Cron expression: minute, hour, day of the month, month, day of the week; or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. Accepts names (`MON-FRI`), steps (`5/15`), `L` for the last day of the month and `MON#1` for the first Monday.",
  examples: ["0 9 * * MON-FRI"],
});
const TimeZone = timeZone({
  description: "IANA time zone of `cron`. Default: `UTC`.",
  examples: ["Europe/Berlin"],
});
const Headers = Type.Record(Type.String(), Type.String({ errorMessage: "must be a string" }), {
  errorMessage: "must be an object that maps header names to strings",
  description: "Request headers, with the same reserved names as in `POST /v1/relay`.",
  examples: [{ "X-Source": "cron" }],
});
const Payload = Type.Object(
  {},
  {
    additionalProperties: true,
    errorMessage: "must be a JSON object",
    description: "JSON body of each run, `{}` by default. Not sent with GET.",
  },
);

/** Settings of a schedule. */
const SETTABLE = {
  name: orNull(name({ description: "Optional name, unique within the project." }), {
    errorMessage: "must be null or a string of 1 to 100 characters on one line",
  }),
  cron: Cron,
  time_zone: TimeZone,
  target_url: Type.String({
    minLength: 1,
    errorMessage: "must be an http or https URL such as https://example.com/hooks",
    description: "URL that each run is sent to. Required unless `event_type` is given.",
    examples: ["https://example.com/hooks"],
  }),
  method: oneOf(METHODS, { description: "HTTP method of each run. Default: `POST`." }),
  event_type: {
    ...MessageType,
    description: "Type of the message that each run sends to all matching endpoints. Replaces `target_url`.",
    examples: [],
  },
  payload: Payload,
  headers: Headers,
  state: oneOf(STATES, {
    errorMessage: "must be live or paused",
    description: "`paused` stops the runs until the schedule is `live`.",
  }),
  missed: oneOf(MISSED, {
    errorMessage: "must be once or skip",
    description:
      "Handling of times that passed more than a minute ago while the server was down: one run for all of them (`once`, default), or none (`skip`).",
  }),
  overlap: oneOf(OVERLAPS, {
    errorMessage: "must be allow or skip",
    description:
      "`skip` omits a run while the previous one, including its retries, is not finished. Default: `allow`.",
  }),
  starts_at: orNull(givenEpochMs("Earliest time of a run, in epoch milliseconds."), {
    errorMessage: "must be null or a time in epoch milliseconds, such as 1795232116928",
  }),
  ends_at: orNull(givenEpochMs("Latest time of a run, in epoch milliseconds."), {
    errorMessage: "must be null or a time in epoch milliseconds, such as 1795232116928",
  }),
  retry_schedule: orNull(RetrySchedule, {
    errorMessage: "must be null or a list of at most 20 waits such as 5s, 5m or 2h",
    description: "Delay before each retry of a run, as in `POST /v1/relay`; null for the default.",
  }),
  callback_url: {
    ...orNull(CALLBACK_URLS.callback_url, {
      description: "URL that receives the outcome of each run with a `target_url`; null for none.",
    }),
    writeOnly: true,
  },
  failure_callback_url: {
    ...orNull(CALLBACK_URLS.failure_callback_url, {
      description:
        "URL that receives the outcome of a failed run, in place of `callback_url`; null for none.",
    }),
    writeOnly: true,
  },
};

const { properties: OPTIONAL } = Type.Partial(Type.Object(SETTABLE));

/** Body of a new schedule. */
export const ScheduleBody = named("ScheduleBody", { ...OPTIONAL, cron: Cron });

/** Body of an update. */
export const ScheduleUpdateBody = named("ScheduleUpdateBody", OPTIONAL);
export type ScheduleUpdateBody = Static<typeof ScheduleUpdateBody>;

/** Filters of a list of schedules. */
export const ScheduleFilters = {
  name: Type.Optional(
    Type.String({ maxLength: 400, description: "Returns only the schedule with exactly this name." }),
  ),
};

const nullableTime = (description: string) =>
  orNull(Type.Integer({ description: `${description}, in epoch milliseconds.` }), { examples: [null] });

const SHOWN = {
  schedule_id: Type.String({ examples: ["sch_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
  name: orNull(Type.String(), { examples: ["nightly"] }),
  cron: Cron,
  time_zone: TimeZone,
  target_url: orNull(Type.String({ examples: ["https://example.com/hooks"] })),
  method: oneOf(METHODS, { examples: ["POST"] }),
  event_type: orNull(Type.String(), { examples: [null] }),
  headers: Type.Record(Type.String(), Type.String(), {
    description: "Request headers, with `[secret]` in place of values that may be secret.",
    examples: [{ "X-Source": "[secret]" }],
  }),
  state: oneOf(STATES, {}),
  missed: oneOf(MISSED, {}),
  overlap: oneOf(OVERLAPS, {}),
  starts_at: nullableTime("Earliest time of a run"),
  ends_at: nullableTime("Latest time of a run"),
  retry_schedule: orNull(RetrySchedule, {
    description: "Delay before each retry; null for the default.",
    examples: [null],
  }),
  ...SHOWN_CALLBACK_URLS,
  next_run_at: orNull(
    Type.Integer({
      description: "Time of the next run, in epoch milliseconds; null while paused, or after the last run.",
    }),
  ),
  last_run_at: nullableTime("Time of the last run"),
  last_relay_id: orNull(uuid({ description: "Delivery of the last run." }), {
    examples: [null],
  }),
  last_message_id: orNull(Type.String({ description: "Message of the last run." }), { examples: [null] }),
  runs: Type.Integer({ description: "Number of runs.", examples: [0] }),
  skipped: Type.Integer({
    description:
      "Number of times without a run: missed, without credits, while the previous run was not finished, or because the payload does not fit the enforced schema of its event type.",
    examples: [0],
  }),
  last_error: orNull(
    Type.String({
      description:
        "What of the payload did not fit the enforced schema of its event type, if that was why the last run was skipped.",
    }),
    { examples: [null] },
  ),
  created_at: Type.Integer({ description: "Time of creation, in epoch milliseconds." }),
  updated_at: Type.Integer({ description: "Time of the last update, in epoch milliseconds." }),
};

/** A schedule in a list. */
export const ScheduleItem = named("ScheduleItem", SHOWN);
export type ScheduleItem = Static<typeof ScheduleItem>;

export const Schedule = named("Schedule", {
  ...SHOWN,
  payload: Payload,
  next_runs: Type.Array(Type.Integer(), {
    description: `Times of the next ${NEXT_RUNS} runs, in epoch milliseconds.`,
  }),
});

/** Response to a manual run. */
export const ScheduleRun = named("ScheduleRun", {
  relay_id: Type.Optional(uuid({ description: "Delivery of the run, for a schedule with `target_url`." })),
  message_id: Type.Optional(
    Type.String({ description: "Message of the run, for a schedule with `event_type`.", examples: [] }),
  ),
});
export type ScheduleRun = Static<typeof ScheduleRun>;
