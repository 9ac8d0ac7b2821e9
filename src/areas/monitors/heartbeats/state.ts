import { isUuid } from "../../../kernel/data/uuid.ts";
import { CronTimes } from "../../../kernel/scheduler/calendar.ts";
import type { PingKind } from "./schema.ts";

/** When a heartbeat's pings are to come: every so many milliseconds, or at the times of a schedule. */
export interface Timing {
  readonly period_ms: number | null;
  readonly schedule: string | null;
  readonly tz: string | null;
  readonly grace_ms: number;
}

/** What the pings so far amount to; moments are epoch milliseconds. */
export interface HeartbeatState {
  readonly pings: number;
  readonly lastPingAt: number | null;
  readonly startedAt: number | null;
  /** The run that has begun, as its end will name it. */
  readonly startedRid: string | null;
  readonly lastDurationMs: number | null;
  /** What the next success is expected after; null before the first one. */
  readonly waitsSince: number | null;
  readonly expectedAt: number | null;
  /** Its deadlines. */
  readonly missedAt: number | null;
  readonly overranAt: number | null;
  readonly repeatAt: number | null;
  /** When the job looks at them: at the earliest, or sooner; null without a job. */
  readonly lookedAt: number | null;
}

/** A ping's address, read. */
export interface PingRequest {
  /** The heartbeat: its own id, or a project's key and a slug. */
  readonly check: { readonly pingId: string } | { readonly pingKey: string; readonly slug: string };
  readonly kind: PingKind;
  readonly exit: number | null;
  readonly rid: string | null;
  /** Whether a heartbeat is to be made where the slug has none. */
  readonly creates: boolean;
}

const PREFIX = "/ping/";
/** Longest address that is looked at: ours have a fifth of it. */
const TARGET_LENGTH_MAX = 1_024;
const PING_KEY = /^[0-9A-Za-z]{22}$/;
const SLUG = /^[a-z0-9_-]{1,64}$/;
const EXIT = /^[0-9]{1,3}$/;
const EXIT_MAX = 255;
const SIGNALS: ReadonlySet<string> = new Set<PingKind>(["start", "fail", "log"]);

/** What the path and query of a ping say; null where they are no ping's. */
export function readPing(target: string): PingRequest | null {
  if (target.length > TARGET_LENGTH_MAX || !target.startsWith(PREFIX)) return null;
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const [first = "", ...rest] = path.slice(PREFIX.length).split("/");
  const pingId = first.toLowerCase();
  const byId = isUuid(pingId);
  const slug = byId ? "" : (rest.shift() ?? "");
  if (!byId && !(PING_KEY.test(first) && SLUG.test(slug))) return null;
  const [signal = null, ...more] = rest;
  const says = more.length > 0 ? null : readSignal(signal);
  if (says === null) return null;
  const query = mark < 0 ? null : new URLSearchParams(target.slice(mark));
  const rid = query?.get("rid")?.toLowerCase() ?? null;
  if (rid !== null && !isUuid(rid)) return null;
  const check = byId ? { pingId } : { pingKey: first, slug };
  return { check, ...says, rid, creates: query?.get("create") === "1" };
}

function readSignal(signal: string | null): Pick<PingRequest, "kind" | "exit"> | null {
  if (signal === null) return { kind: "success", exit: null };
  if (SIGNALS.has(signal)) return { kind: signal as PingKind, exit: null };
  const exit = EXIT.test(signal) ? Number(signal) : EXIT_MAX + 1;
  return exit > EXIT_MAX ? null : { kind: exit === 0 ? "success" : "fail", exit };
}

/** The next moment at which a success is expected after another one; null where a schedule has none left. */
export function nextExpected({ period_ms, schedule, tz }: Timing, after: number): number | null {
  if (schedule === null) return after + (period_ms ?? 0);
  return new CronTimes(schedule, tz ?? "UTC").after(after);
}

/** How long a run took, by the wall clock: one that was set back meanwhile says nothing less than 0. */
export function ranMs(startedAt: number, endedAt: number): number {
  return Math.max(0, endedAt - startedAt);
}

/** The state after a ping. `otherMs`: how long a run took that is not the one under way. */
export function afterPing(
  state: HeartbeatState,
  { kind, rid }: Pick<PingRequest, "kind" | "rid">,
  timing: Timing,
  now: number,
  otherMs: number | null,
): HeartbeatState {
  const seen = { ...state, pings: state.pings + 1, lastPingAt: now };
  if (kind === "log") return seen;
  if (kind === "start") return { ...seen, startedAt: now, startedRid: rid, overranAt: now + timing.grace_ms };
  const isItsEnd = state.startedAt !== null && state.startedRid === rid;
  // An end that names another run leaves this one under way; one that names none, or a failure, ends whatever there is.
  const ends = isItsEnd || rid === null || kind === "fail";
  const ended = {
    ...seen,
    ...(ends ? { startedAt: null, startedRid: null, overranAt: null } : {}),
    lastDurationMs: isItsEnd ? ranMs(state.startedAt ?? now, now) : otherMs,
    repeatAt: null,
  };
  return kind === "fail" ? ended : expecting(ended, timing, now);
}

/** The same state, waiting for the next success from a moment on. */
export function expecting(state: HeartbeatState, timing: Timing, since: number): HeartbeatState {
  const expectedAt = expectedAfter(state, timing, since);
  const missedAt = expectedAt === null ? null : expectedAt + timing.grace_ms;
  return { ...state, waitsSince: since, expectedAt, missedAt };
}

/** When the next success is expected after one at `since`; null where a schedule has no time left. */
export function expectedAfter(
  { waitsSince, expectedAt: before }: Pick<HeartbeatState, "waitsSince" | "expectedAt">,
  timing: Timing,
  since: number,
): number | null {
  // Pings may come far more often than a schedule's times, which take long to find.
  const isSame = timing.schedule !== null && before !== null && waitsSince !== null;
  return isSame && waitsSince <= since && since < before ? before : nextExpected(timing, since);
}

/** The earliest deadline; null where nothing is waited for. */
export function deadlineOf({ missedAt, overranAt, repeatAt }: HeartbeatState): number | null {
  const earliest = Math.min(...[missedAt, overranAt, repeatAt].map((at) => at ?? Number.POSITIVE_INFINITY));
  return earliest === Number.POSITIVE_INFINITY ? null : earliest;
}

/** The state with all its times moved back, as the wall clock was. */
export function movedBack(state: HeartbeatState, byMs: number): HeartbeatState {
  if (byMs === 0) return state;
  const moved = (at: number | null) => at && at - byMs;
  return {
    ...state,
    lastPingAt: moved(state.lastPingAt),
    startedAt: moved(state.startedAt),
    waitsSince: moved(state.waitsSince),
    expectedAt: moved(state.expectedAt),
    missedAt: moved(state.missedAt),
    overranAt: moved(state.overranAt),
    repeatAt: moved(state.repeatAt),
    lookedAt: moved(state.lookedAt),
  };
}

/** Longest that a deadline is put off which passed while the server was down. */
export const LATE_START_MS_MAX = 10 * 60 * 1000;

/**
 * The state after a start of the server: who was to ping while it was down could not, so what passed before the start
 * gets its grace from there on.
 */
export function afterStart(state: HeartbeatState, { grace_ms }: Timing, startedAt: number): HeartbeatState {
  const until = startedAt + Math.min(grace_ms, LATE_START_MS_MAX);
  const moved = (at: number | null) => (at !== null && at <= startedAt ? until : at);
  const { missedAt, overranAt, repeatAt } = state;
  return { ...state, missedAt: moved(missedAt), overranAt: moved(overranAt), repeatAt: moved(repeatAt) };
}
