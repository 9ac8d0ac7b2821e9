import type { Static } from "@sinclair/typebox";
import { invalidField } from "../../../kernel/errors.ts";
import type { RequestHeaders } from "../../../kernel/outbound/headers.ts";
import { readWaits } from "../../../kernel/outbound/retries.ts";
import { ANY_TARGET, type TargetPolicy } from "../../../kernel/outbound/target.ts";
import { CronTimes, requestedTimes } from "../../../kernel/scheduler/calendar.ts";
import { assertCallbackUrls } from "../deliveries/callback-urls.ts";
import { assertSendable, withoutReservedHeaders } from "../deliveries/reserved-headers.ts";
import { assertNotReservedType } from "../endpoints/notices.ts";
import { payloadText } from "../payload.ts";
import { type ScheduleBody, type ScheduleUpdateBody, TIME_ZONE } from "./schema.ts";
import type { ScheduleSettings } from "./store.ts";

/** The given settings, checked and not sealed yet. */
export type ScheduleChange = Partial<Omit<ScheduleSettings, "headers">> & {
  readonly headers?: RequestHeaders;
};

export const DEFAULT_SETTINGS: Omit<ScheduleSettings, "cron"> = {
  name: null,
  time_zone: TIME_ZONE,
  target_url: null,
  method: "POST",
  event_type: null,
  headers: null,
  payload: "{}",
  state: "live",
  missed: "once",
  overlap: "allow",
  starts_at: null,
  ends_at: null,
  retry_schedule: null,
  callback_url: null,
  failure_callback_url: null,
};

/** Fields that determine when a schedule runs. */
const TIMING = ["cron", "time_zone", "starts_at", "ends_at"] as const;

/** Checks each field that a caller gives. @throws ApiError `validation_error` naming the field. */
export async function changeOf(
  body: ScheduleUpdateBody,
  bodyText: string,
  policy: Pick<TargetPolicy, "assertUrl">,
): Promise<ScheduleChange> {
  assertSettings(body, policy);
  const { target_url, event_type, payload, headers, retry_schedule, ...plain } = body;
  const waits = retry_schedule && JSON.stringify(retry_schedule);
  return {
    ...plain,
    // Each replaces the other.
    ...(target_url === undefined ? {} : { target_url, event_type: null }),
    ...(event_type === undefined ? {} : { event_type, target_url: null }),
    ...(payload === undefined ? {} : { payload: await payloadText(bodyText, payload) }),
    ...(headers === undefined ? {} : { headers: withoutReservedHeaders(headers) }),
    ...(waits === undefined ? {} : { retry_schedule: waits }),
  };
}

function assertSettings(body: ScheduleUpdateBody, policy: Pick<TargetPolicy, "assertUrl">): void {
  const { target_url, event_type, retry_schedule } = body;
  if (target_url !== undefined && event_type !== undefined)
    throw invalidField("event_type", "cannot be combined with target_url: omit one of them");
  if (event_type !== undefined) assertNotReservedType(event_type);
  if (target_url !== undefined) policy.assertUrl("target_url", target_url);
  if (retry_schedule) readWaits(retry_schedule);
  assertCallbackUrls(body, policy);
}

/** Checks a new schedule as far as no server is needed. @throws ApiError `validation_error` naming the field */
export function checkNew(body: Static<typeof ScheduleBody>): void {
  assertSettings(body, ANY_TARGET);
  assertHasTarget({ target_url: body.target_url ?? null, event_type: body.event_type ?? null });
  assertSendable(body.headers);
  if (body.headers !== undefined) withoutReservedHeaders(body.headers);
  firstRun({ ...DEFAULT_SETTINGS, ...body }, 0);
}

/** @throws ApiError `validation_error` for a new schedule that sends neither to a URL nor a message */
export function assertHasTarget(settings: {
  readonly target_url: string | null;
  readonly event_type: string | null;
}): void {
  if (settings.target_url === null && settings.event_type === null)
    throw invalidField("target_url", "is required unless event_type is given");
}

/** Whether a change touches when a schedule runs. */
export function isTimed(change: ScheduleChange): boolean {
  return TIMING.some((field) => change[field] !== undefined);
}

type Timing = Pick<ScheduleSettings, (typeof TIMING)[number]>;

/** The first run of a schedule after a time, both in epoch milliseconds; null when there is none. */
export function nextRun(timing: Timing, time: number): number | null {
  const { cron, time_zone, starts_at, ends_at } = timing;
  const next = new CronTimes(cron, time_zone).after(Math.max(time, (starts_at ?? 0) - 1));
  return next === null || next > (ends_at ?? next) ? null : next;
}

/** The first run of new settings. @throws ApiError `validation_error` naming the field that prevents every run. */
export function firstRun(timing: Timing, now: number): number {
  const { cron, time_zone, ends_at, starts_at } = timing;
  requestedTimes(cron, time_zone, { expression: "cron", timeZone: "time_zone" });
  if (ends_at !== null && ends_at < (starts_at ?? 0))
    throw invalidField("ends_at", "must not be before starts_at");
  const first = nextRun(timing, now);
  if (first !== null) return first;
  const isOver = ends_at !== null && nextRun({ ...timing, ends_at: null }, now) !== null;
  if (isOver) throw invalidField("ends_at", "must be after the next time of cron: there would be no run");
  throw invalidField("cron", "matches no date (as February 30 would)");
}
