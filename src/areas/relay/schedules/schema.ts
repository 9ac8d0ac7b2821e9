import { type Static, Type } from "@sinclair/typebox";
import { name, named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";
import { NextCursor, pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { LIST_LIMIT, moment, RetrySchedule } from "../deliveries/schema.ts";
import { MessageType } from "../endpoints/schema.ts";

/** Next times that are shown of a schedule. */
export const NEXT_RUNS = 5;
/** The zone unless given. */
export const TIME_ZONE = "UTC";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
const STATES = ["live", "paused"] as const;
const MISSED = ["once", "skip"] as const;
const OVERLAPS = ["allow", "skip"] as const;

const Cron = text({
  min: 1,
  max: 256,
  description:
    "Minute, hour, day of the month, month, day of the week; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. Also `MON-FRI`, `L` for the last day, `MON#1` for the first Monday.",
  examples: ["0 9 * * MON-FRI"],
});
const TimeZone = text({
  min: 1,
  max: 64,
  description: "The time zone that `cron` is read in, as the IANA database names it. `UTC` unless given.",
  examples: ["Europe/Berlin"],
});
const Headers = Type.Record(Type.String(), Type.String({ errorMessage: "must be a text" }), {
  errorMessage: "must be an object of header names to texts",
  description: "As in `POST /v1/relay`.",
  examples: [{ "X-Source": "cron" }],
});
const Payload = Type.Object(
  {},
  {
    additionalProperties: true,
    errorMessage: "must be a JSON object",
    description: "Sent as the body, except with GET; `{}` unless given.",
  },
);

/** What can be changed of a schedule. */
const SETTABLE = {
  name: orNull(name("Unique in the project."), {
    errorMessage: "must be null or a text of 1 to 100 characters on one line",
  }),
  cron: Cron,
  time_zone: TimeZone,
  target_url: Type.String({
    minLength: 1,
    errorMessage: "must be an http or https URL such as https://example.com/hooks",
    description: "Where each run is sent to; or give `event_type`.",
    examples: ["https://example.com/hooks"],
  }),
  method: oneOf(METHODS),
  event_type: {
    ...MessageType,
    description: "Instead of `target_url`: sends a message of this type to all endpoints that take it.",
    examples: [],
  },
  payload: Payload,
  headers: Headers,
  state: oneOf(STATES, { errorMessage: "must be live or paused" }),
  missed: oneOf(MISSED, {
    errorMessage: "must be once or skip",
    description:
      "What becomes of times that passed while the server was down: one run for all of them, or none.",
  }),
  overlap: oneOf(OVERLAPS, {
    errorMessage: "must be allow or skip",
    description: "`skip`: no run while the last one has not ended.",
  }),
  starts_at: orNull(moment("Epoch milliseconds: no run before."), {
    errorMessage: "must be null or a moment in epoch milliseconds, such as 1795232116928",
  }),
  ends_at: orNull(moment("Epoch milliseconds: no run after."), {
    errorMessage: "must be null or a moment in epoch milliseconds, such as 1795232116928",
  }),
  retry_schedule: orNull(RetrySchedule, {
    errorMessage: "must be null or a list of at most 20 waits such as 5s, 5m or 2h",
  }),
};

const { properties: OPTIONAL } = Type.Partial(Type.Object(SETTABLE));

/** Body of a new schedule. */
export const ScheduleBody = named("ScheduleBody", { ...OPTIONAL, cron: Cron });
export type ScheduleBody = Static<typeof ScheduleBody>;

/** Body of a change. */
export const ScheduleUpdateBody = named("ScheduleUpdateBody", OPTIONAL);
export type ScheduleUpdateBody = Static<typeof ScheduleUpdateBody>;

/** Path of a schedule. */
export const ScheduleParams = Type.Object({ schedule_id: Type.String({ maxLength: 64 }) });

/** Query of a list of schedules. */
export const ScheduleQuery = named("ScheduleQuery", {
  name: Type.Optional(Type.String({ maxLength: 400, description: "Only the one of this name." })),
  ...pageQuery(LIST_LIMIT).properties,
});
export type ScheduleQuery = Static<typeof ScheduleQuery>;

const maybeMoment = (description: string) => orNull(Type.Integer({ description }), { examples: [null] });

const SHOWN = {
  schedule_id: Type.String({ examples: ["sch_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
  name: orNull(Type.String(), { examples: ["nightly"] }),
  cron: Cron,
  time_zone: TimeZone,
  target_url: orNull(Type.String({ examples: ["https://example.com/hooks"] })),
  method: oneOf(METHODS, { examples: ["POST"] }),
  event_type: orNull(Type.String(), { examples: [null] }),
  headers: Type.Record(Type.String(), Type.String(), {
    description: "With `[secret]` for what may be one.",
    examples: [{ "X-Source": "[secret]" }],
  }),
  state: oneOf(STATES, {}),
  missed: oneOf(MISSED, {}),
  overlap: oneOf(OVERLAPS, {}),
  starts_at: maybeMoment("Epoch milliseconds."),
  ends_at: maybeMoment("Epoch milliseconds."),
  retry_schedule: orNull(RetrySchedule, { description: "Null: the usual one.", examples: [null] }),
  next_run_at: orNull(
    Type.Integer({ description: "Epoch milliseconds; null while paused, or where none comes." }),
  ),
  last_run_at: maybeMoment("Epoch milliseconds."),
  last_relay_id: orNull(Type.String({ format: "uuid" }), { examples: [null] }),
  last_message_id: orNull(Type.String(), { examples: [null] }),
  runs: Type.Integer({ examples: [0] }),
  skipped: Type.Integer({
    description: "Times without a run: without credits, while the last had not ended, or missed.",
    examples: [0],
  }),
  created_at: Type.Integer({ description: "Epoch milliseconds." }),
  updated_at: Type.Integer({ description: "Epoch milliseconds." }),
};

/** A schedule, as lists show it. */
export const ScheduleItem = named("ScheduleItem", SHOWN);
export type ScheduleItem = Static<typeof ScheduleItem>;

/** A schedule. */
export const Schedule = named("Schedule", {
  ...SHOWN,
  payload: Payload,
  next_runs: Type.Array(Type.Integer(), { description: `The next ${NEXT_RUNS}, epoch milliseconds.` }),
});
export type Schedule = Static<typeof Schedule>;

/** A page of schedules, newest first. */
export const SchedulePage = named("SchedulePage", {
  schedules: Type.Array(ScheduleItem),
  cursor: NextCursor,
});
export type SchedulePage = Static<typeof SchedulePage>;

/** Answer to a run by hand. */
export const ScheduleRun = named("ScheduleRun", {
  relay_id: Type.Optional(Type.String({ format: "uuid", description: "Of a schedule with a target." })),
  message_id: Type.Optional(Type.String({ description: "Of one that sends messages.", examples: [] })),
});
export type ScheduleRun = Static<typeof ScheduleRun>;
