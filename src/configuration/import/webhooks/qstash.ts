import { StartupError } from "../../../kernel/errors.ts";
import { isCron, isTimeZone } from "../../../kernel/scheduler/calendar.ts";
import { SECOND_MS } from "../../../kernel/time/units.ts";
import { type Draft, Secret } from "../draft.ts";
import { isObject, SourceObject, shown } from "../source.ts";
import { headerValue, SECRET_FORM } from "./endpoints.ts";
import { limitedSchedule, RETRIES_READ_MAX } from "./retries.ts";

/** Fields of schedules and URL groups that are state. */
const STATE = [
  ...["createdAt", "updatedAt", "callerIP", "callerIp", "lastScheduleTime", "nextScheduleTime"],
  ...["lastScheduleStates", "scheduleId", "lag"],
];
/** Settings of queues and of the flow control of a schedule. */
const FLOW = ["queueName", "flowControlKey", "parallelism", "rate", "ratePerSecond", "period"];
/** Growth of the delays of QStash: the delay before retry n is e^(2.5 n) seconds, at most a day. */
const DELAY_GROWTH = 2.5;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/**
 * Imports schedules and URL groups of QStash: the response to `GET /v2/schedules`, or `{schedules, url_groups}`, where URL groups
 * are the response to `GET /v2/topics`. A URL group becomes endpoints that receive the messages of one type, its name.
 * @throws StartupError
 */
export function importQstash(draft: Draft, value: unknown): void {
  const isWhole = isObject(value) && ("schedules" in value || "url_groups" in value);
  const all = new SourceObject(draft, "QStash", isWhole ? value : { schedules: value });
  for (const group of listOf("URL groups", all.any("url_groups"))) groupOf(draft, group);
  for (const schedule of listOf("schedules", all.any("schedules"))) scheduleOf(draft, schedule);
  all.rest();
}

/** A list as the API returns it, whole; empty if it is missing. */
function listOf(label: string, value: unknown): readonly unknown[] {
  if (value === null) return [];
  if (Array.isArray(value)) return value;
  throw new StartupError(`The ${label} of QStash must be a list, as the API returns them.`);
}

function groupOf(draft: Draft, value: unknown): void {
  const group = new SourceObject(draft, "URL group", value);
  const name = group.text("name") ?? "";
  group.label = `URL group ${shown(name)}`;
  const endpoints = group.list("endpoints");
  group.ignore(...STATE);
  group.rest();
  group.noteChange("name", "is the event_type of messages: send them in place of publishing to the group");
  for (const [index, item] of endpoints.entries()) {
    const endpoint = new SourceObject(draft, group.label, item, "URL group");
    const suffix = endpoint.text("name") ?? String(index + 1);
    const url = endpoint.text("url");
    endpoint.label = `URL group ${shown(name)}: endpoint ${shown(suffix)}`;
    endpoint.rest();
    draft.add({
      section: "endpoints",
      name: `${name} ${suffix}`,
      subject: endpoint,
      values: { url, event_types: [name], format: "raw", secret: Secret.unknown(SECRET_FORM) },
    });
  }
}

function scheduleOf(draft: Draft, value: unknown): void {
  const schedule = new SourceObject(draft, "schedule", value);
  const name = schedule.text("scheduleId") ?? "schedule";
  schedule.label = `schedule ${shown(name)}`;
  const times = timesOf(schedule);
  const destination = schedule.text("destination") ?? "";
  const isUrl = /^https?:/i.test(destination);
  const method = schedule.text("method") ?? "POST";
  if (!METHODS.includes(method)) schedule.note("method", `${shown(method)} is not supported: POST is sent`);
  const body = bodyOf(schedule);
  if ((schedule.number("delay") ?? 0) > 0)
    schedule.note("delay", "not carried over: each run is sent at its time");
  const flow = FLOW.filter((field) => schedule.any(field) !== null);
  if (flow.length > 0)
    schedule.note(
      "flow control",
      "not carried over: send to an endpoint, which has max_per_second and max_concurrency",
    );
  const [callback, failureCallback] = [schedule.text("callback"), schedule.text("failureCallback")];
  if (callback !== null || failureCallback !== null)
    schedule.noteChange("callbacks", "are sent once, with the outcome, and have another body: see the guide");
  const values = {
    ...times,
    ...(isUrl
      ? {
          target_url: destination,
          method: METHODS.includes(method) ? method : "POST",
          headers: headersOf(schedule),
          retry_schedule: retriesOf(schedule),
          callback_url: callback === null ? null : new Secret(callback),
          failure_callback_url: failureCallback === null ? null : new Secret(failureCallback),
        }
      : { event_type: destination }),
    payload: body.payload,
    state: schedule.flag("isPaused") || !body.isWhole ? "paused" : null,
  };
  if (!isUrl) schedule.ignore("header", "retries", "retryDelayExpression");
  schedule.ignore(...STATE, ...FLOW);
  schedule.rest();
  if (!body.isWhole) schedule.noteChange("state", "is paused, since its runs would have another body");
  if (times !== null) draft.add({ section: "schedules", name, subject: schedule, values });
}

/** Null for a schedule that cannot exist here. */
function timesOf(schedule: SourceObject): Readonly<Record<string, unknown>> | null {
  const text = schedule.text("cron") ?? "";
  const [prefix = "", zone = null] = /^CRON_TZ=(\S+)\s+/.exec(text) ?? [];
  const cron = text.slice(prefix.length);
  if ((zone === null || isTimeZone(zone)) && isCron(cron, zone ?? "UTC")) return { cron, time_zone: zone };
  schedule.noteLoss("cron", `${shown(text)} is no cron expression of five fields`);
  return null;
}

/** `isWhole`: whether runs have the body that they had. */
function bodyOf(schedule: SourceObject): { payload: unknown; isWhole: boolean } {
  const base64 = schedule.text("bodyBase64");
  const text =
    schedule.text("body") ?? (base64 === null ? null : Buffer.from(base64, "base64").toString("utf8"));
  if (text === null) return { payload: null, isWhole: true };
  const payload = jsonObject(text);
  if (payload === null) schedule.note("body", "is no JSON object: not carried over");
  return { payload, isWhole: payload !== null };
}

function jsonObject(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** The headers of each run: the API lists each with its values. */
function headersOf(schedule: SourceObject): Readonly<Record<string, unknown>> | null {
  const source = schedule.any("header");
  if (!isObject(source)) return null;
  const headers = Object.entries(source).flatMap(([name, values]) => {
    const value = Array.isArray(values) ? values.join(", ") : values;
    const isOfQstash = /^upstash-/i.test(name);
    return typeof value !== "string" || isOfQstash ? [] : [[name, headerValue(name, value)] as const];
  });
  return headers.length === 0 ? null : Object.fromEntries(headers);
}

/** The delays of QStash. */
function retriesOf(schedule: SourceObject): readonly string[] {
  const count = schedule.number("retries") ?? 0;
  if (schedule.text("retryDelayExpression") !== null)
    schedule.note("retryDelayExpression", "not carried over: the usual delays are, in retry_schedule");
  return limitedSchedule(
    schedule,
    "retries",
    Array.from(
      { length: Math.min(count, RETRIES_READ_MAX) },
      (_, index) => Math.exp(DELAY_GROWTH * (index + 1)) * SECOND_MS,
    ),
  );
}
