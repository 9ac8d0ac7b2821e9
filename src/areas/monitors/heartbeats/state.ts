import { isUuid } from "../../../kernel/data/uuid.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import { CronTimes } from "../../../kernel/scheduler/calendar.ts";
import { WAIT_MS_MAX } from "../heartbeat-fields.ts";
import type { PingKind } from "./schema.ts";

/** When the pings of a heartbeat are expected: at an interval, or at the times of a schedule. */
export interface Timing {
  readonly period_ms: number | null;
  readonly schedule: string | null;
  readonly tz: string | null;
  readonly grace_ms: number;
  /** Longest duration of a run; null: the grace. */
  readonly start_grace_ms: number | null;
  /** Runs that may begin in a period; null: any number. */
  readonly max_runs_per_period: number | null;
}

/** The state after the pings so far. Times are epoch milliseconds. */
export interface HeartbeatState {
  readonly pings: number;
  readonly lastPingAt: number | null;
  /** The current run: of several that overlap the oldest one whose end is not overdue. */
  readonly startedAt: number | null;
  /** The `rid` of the current run. */
  readonly startedRid: string | null;
  readonly lastDurationMs: number | null;
  /** The last success, or when the heartbeat was resumed; null before the first success. */
  readonly waitsSince: number | null;
  readonly expectedAt: number | null;
  /** Deadlines. */
  readonly missedAt: number | null;
  readonly overranAt: number | null;
  readonly repeatAt: number | null;
  /** Runs that began in the current period, where their number is limited. */
  readonly runs: number;
  /** When that period ends for runs; null before the first one. */
  readonly runsUntil: number | null;
  /** Due time of the job that checks the deadlines: the earliest of them, or sooner; null without a job. */
  readonly jobAt: number | null;
}

/** Before the first run of a period. */
export const NO_RUNS = { runs: 0, runsUntil: null } as const;

/** A parsed ping target. */
export interface PingRequest {
  /** The heartbeat: its ping id, its push token, or a project's ping key and a slug. */
  readonly check:
    | { readonly pingId: string }
    | { readonly pushToken: string }
    | { readonly pingKey: string; readonly slug: string };
  readonly kind: PingKind;
  readonly exit: number | null;
  readonly rid: string | null;
  /** Why the run failed, from the query; null without it. */
  readonly message: string | null;
  /** Duration of the run in milliseconds, from the query; null without it. */
  readonly durationMs: number | null;
  /** Whether to create a heartbeat for an unknown slug. */
  readonly creates: boolean;
}

const PREFIX = "/ping/";
/** Maximum length of a target: valid ones have a fifth of it. */
const TARGET_LENGTH_MAX = 1_024;
const PING_KEY = /^[0-9A-Za-z]{22}$/;
const SLUG = /^[a-z0-9_-]{1,64}$/;
const EXIT = /^[0-9]{1,3}$/;
const EXIT_MAX = 255;
const SIGNALS: ReadonlySet<string> = new Set<PingKind>(["start", "fail", "log"]);

/**
 * Kinds of pings by the query of clients of other products, which keep it when their URL is replaced: `status` of Uptime Kuma's
 * push monitors, `state` of Cronitor. Any other value is that of a success.
 */
const KINDS_BY_QUERY: ReadonlyMap<string, PingKind> = new Map([
  ["status=down", "fail"],
  ["state=fail", "fail"],
  ["state=run", "start"],
]);

/** Parses the path and query of a ping. Returns null if they are not valid. */
export function readPing(target: string): PingRequest | null {
  if (target.length > TARGET_LENGTH_MAX || !target.startsWith(PREFIX)) return null;
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const [first = "", ...rest] = path.slice(PREFIX.length).split("/");
  const pingId = first.toLowerCase();
  const byId = isUuid(pingId);
  const slug = byId ? "" : (rest.shift() ?? "");
  if (!byId && !(PING_KEY.test(first) && SLUG.test(slug))) return null;
  // Some clients append a slash to every URL.
  if (rest.at(-1) === "") rest.pop();
  const [signal = null, ...more] = rest;
  const parsed = more.length > 0 ? null : readSignal(signal);
  if (parsed === null) return null;
  const query = new URLSearchParams(mark < 0 ? "" : target.slice(mark));
  const rid = query.get("rid")?.toLowerCase() ?? null;
  if (rid !== null && !isUuid(rid)) return null;
  const check = byId ? { pingId } : { pingKey: first, slug };
  const kind = signal === null ? kindOf(query) : parsed.kind;
  const message = kind === "fail" ? query.get("msg") || query.get("message") : null;
  return { check, ...parsed, kind, rid, message, durationMs: null, creates: query.get("create") === "1" };
}

const PUSH_PREFIX = "/api/push/";
const PUSH_TOKEN = /^[A-Za-z0-9_-]{10,64}$/;
/** Longest duration of a run that is recorded: a year, as of periods. */
const PUSH_DURATION_MS_MAX = WAIT_MS_MAX;

/** Parses the path and query of a ping as Uptime Kuma receives it. Returns null if they are not valid. */
export function readPush(target: string): PingRequest | null {
  if (target.length > TARGET_LENGTH_MAX || !target.startsWith(PUSH_PREFIX)) return null;
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const pushToken = path.slice(PUSH_PREFIX.length);
  if (!PUSH_TOKEN.test(pushToken)) return null;
  const query = new URLSearchParams(mark < 0 ? "" : target.slice(mark));
  // As there, any other status is a failure.
  const kind = (query.get("status") || "up") === "up" ? "success" : "fail";
  const latency = Math.round(Number.parseFloat(query.get("ping") ?? ""));
  const isDuration = latency >= 0 && latency <= PUSH_DURATION_MS_MAX;
  const message = kind === "fail" ? query.get("msg") || null : null;
  const durationMs = isDuration ? latency : null;
  return { check: { pushToken }, kind, exit: null, rid: null, message, durationMs, creates: false };
}

function kindOf(query: URLSearchParams): PingKind {
  const found = ["status", "state"].flatMap((name) => KINDS_BY_QUERY.get(`${name}=${query.get(name)}`) ?? []);
  return found[0] ?? "success";
}

function readSignal(signal: string | null): Pick<PingRequest, "kind" | "exit"> | null {
  if (signal === null) return { kind: "success", exit: null };
  if (SIGNALS.has(signal)) return { kind: signal as PingKind, exit: null };
  const exit = EXIT.test(signal) ? Number(signal) : EXIT_MAX + 1;
  return exit > EXIT_MAX ? null : { kind: exit === 0 ? "success" : "fail", exit };
}

/** Time at which the next success is expected after one at `after`; null if the schedule has no further times. */
export function nextExpected(
  { period_ms, schedule, tz }: Pick<Timing, "period_ms" | "schedule" | "tz">,
  after: number,
): number | null {
  if (schedule === null) return after + (period_ms ?? 0);
  return new CronTimes(schedule, tz ?? "UTC").after(after);
}

/** Duration of a run by the wall clock; 0 if the clock was set back meanwhile. */
export function ranMs(startedAt: number, endedAt: number): number {
  return Math.max(0, endedAt - startedAt);
}

/** A run that has not ended. */
export interface Run {
  readonly at: number;
  readonly rid: string | null;
}

/** A ping with the run that it belongs to. */
export type RunPing = Run & Pick<PingRequest, "kind">;

/** The runs that have not ended after these pings (oldest first), oldest first. */
export function openRuns(pings: readonly RunPing[]): Run[] {
  let open: Run[] = [];
  for (const { kind, rid, at } of pings) {
    if (kind !== "log") open = open.filter((run) => !endsRun({ kind, rid }, run));
    if (kind === "start") open.push({ at, rid });
  }
  return open;
}

/** Whether a ping ends a run, or starts it anew. An end without a `rid` ends every run, one with a `rid` only that run. */
function endsRun({ kind, rid }: Pick<PingRequest, "kind" | "rid">, run: Pick<Run, "rid">): boolean {
  return rid === run.rid || (rid === null && kind !== "start");
}

/** Longest duration of a run, milliseconds. */
export function runMsMax({ start_grace_ms, grace_ms }: Pick<Timing, "start_grace_ms" | "grace_ms">): number {
  return start_grace_ms ?? grace_ms;
}

/** The state that watches the end of a run; null: there is none. */
function watching(state: HeartbeatState, run: Run | null, timing: Timing): HeartbeatState {
  if (run === null) return { ...state, startedAt: null, startedRid: null, overranAt: null };
  return { ...state, startedAt: run.at, startedRid: run.rid, overranAt: run.at + runMsMax(timing) };
}

/** The state after a ping. `open`: the runs that had not ended before it, oldest first. `otherMs`: duration of a run other than the current one. */
export function afterPing(
  state: HeartbeatState,
  { kind, rid }: Pick<PingRequest, "kind" | "rid">,
  timing: Timing,
  now: number,
  open: () => readonly Run[],
  otherMs: number | null,
): HeartbeatState {
  const seen = { ...state, pings: state.pings + 1, lastPingAt: now };
  if (kind === "log") return seen;
  const current = currentRun(state);
  const isItsEnd = current !== null && current.rid === rid;
  if (kind === "start") {
    const isWatched = current !== null && state.overranAt !== null;
    if (isWatched && !isItsEnd) return seen;
    const next = isWatched ? runAfter(open(), current) : null;
    return withTimeToRun(watching(seen, next ?? { at: now, rid }, timing), timing);
  }
  const ends = current !== null && endsRun({ kind, rid }, current);
  const next = ends && rid !== null ? runAfter(open(), current) : null;
  const left = ends ? watching(seen, next, timing) : seen;
  const ended = { ...left, lastDurationMs: isItsEnd ? ranMs(current.at, now) : otherMs, repeatAt: null };
  return kind === "fail" ? ended : withTimeToRun(withNextExpected(ended, timing, now, true), timing);
}

/**
 * The state whose current run may last as long as `start_grace_ms`, if that is set: a run that began before the next success
 * was overdue postpones that deadline to its own. One that begins later does not, so a job that is started again and again is
 * reported.
 */
export function withTimeToRun(
  state: HeartbeatState,
  { start_grace_ms, grace_ms }: Pick<Timing, "start_grace_ms" | "grace_ms">,
): HeartbeatState {
  const { startedAt, overranAt, expectedAt, missedAt } = state;
  if (start_grace_ms === null || startedAt === null || overranAt === null) return state;
  const isInTime = expectedAt !== null && startedAt <= expectedAt + grace_ms;
  return missedAt !== null && isInTime ? { ...state, missedAt: Math.max(missedAt, overranAt) } : state;
}

/** The state after the end of its current run was overdue: the next one is watched. */
export function afterOverrun(state: HeartbeatState, timing: Timing, open: readonly Run[]): HeartbeatState {
  const current = currentRun(state);
  const next = current === null ? null : runAfter(open, current);
  return next === null ? { ...state, overranAt: null } : watching(state, next, timing);
}

function currentRun({ startedAt, startedRid }: HeartbeatState): Run | null {
  return startedAt === null ? null : { at: startedAt, rid: startedRid };
}

/** The open run that started next after another one; those before it are overdue, and reported. */
function runAfter(open: readonly Run[], { rid }: Run): Run | null {
  // Without the pings of that one, the stored ones are all newer. Times do not order runs: several can start in a millisecond.
  return open[open.findIndex((run) => run.rid === rid) + 1] ?? null;
}

/**
 * The state that waits since a time, with the time of the next success. `isSuccess`: a success was then, which may have been early
 * for the coming time of a schedule.
 */
export function withNextExpected(
  state: HeartbeatState,
  timing: Timing,
  since: number,
  isSuccess: boolean,
): HeartbeatState {
  const next = expectedAfter(state, timing, since);
  const expectedAt = isSuccess ? withoutEarly(next, timing, since) : next;
  const missedAt = expectedAt === null ? null : expectedAt + timing.grace_ms;
  return { ...state, waitsSince: since, expectedAt, missedAt };
}

/** As {@link nextExpected}, but keeps the time that is already known where the schedule has none before it. */
export function expectedAfter(
  { waitsSince, expectedAt: before }: Pick<HeartbeatState, "waitsSince" | "expectedAt">,
  timing: Timing,
  since: number,
): number | null {
  // The next time of a schedule takes long to calculate, and pings can be far more frequent.
  const isSame = timing.schedule !== null && before !== null && waitsSince !== null;
  return isSame && waitsSince <= since && since < before ? before : nextExpected(timing, since);
}

/** Part of the gap between two times of a schedule by which a success may be early. */
const EARLY_PART = 1 / 20;
/** Times of schedules whose next one is remembered: pings can be far more frequent than they are. */
const GAPS_REMEMBERED_MAX = 4_096;
const gaps = new LruMap<string, number>(GAPS_REMEMBERED_MAX);

/**
 * The time at which the next success is expected after one at `since`: not the coming time of a schedule if that is so near that
 * the success is the one of that time.
 */
export function withoutEarly(expectedAt: number | null, timing: Timing, since: number): number | null {
  if (timing.schedule === null || expectedAt === null) return expectedAt;
  const gap = gapAfter(timing, expectedAt);
  return expectedAt - since <= gap * EARLY_PART ? expectedAt + gap : expectedAt;
}

/** Milliseconds from a time of a schedule to the one after it; 0 if there is none. */
function gapAfter(timing: Timing, at: number): number {
  const key = `${at} ${timing.tz} ${timing.schedule}`;
  return gaps.getOrAdd(key, () => (nextExpected(timing, at) ?? at) - at);
}

/**
 * Whether a ping begins a run. `known`: the stored pings, which are read only for one with a `rid`. Without a `rid` each start
 * begins one, and each end whose start was not reported.
 */
export function beginsRun(
  state: HeartbeatState,
  { kind, rid }: Pick<PingRequest, "kind" | "rid">,
  known: () => readonly RunPing[],
): boolean {
  if (kind === "log") return false;
  if (rid !== null) return !known().some((ping) => ping.kind !== "log" && ping.rid === rid);
  return kind === "start" || currentRun(state) === null;
}

/** The state after a run has begun: it counts in the period that it belongs to. */
export function withRun(state: HeartbeatState, timing: Timing, now: number): HeartbeatState {
  const { runs, runsUntil } = state;
  if (runsUntil !== null && now < runsUntil) return { ...state, runs: runs + 1 };
  return { ...state, runs: 1, runsUntil: periodEnd(timing, now) };
}

/** When the period of a run ends for others. One that is early, by the part of a period that jobs vary by, is in the next. */
function periodEnd(timing: Timing, now: number): number {
  const { period_ms, schedule } = timing;
  if (schedule === null) return now + Math.ceil((period_ms ?? 0) * (1 - EARLY_PART));
  const end = withoutEarly(nextExpected(timing, now), timing, now);
  return end === null ? now + WAIT_MS_MAX : end - Math.floor(gapAfter(timing, end) * EARLY_PART);
}

/** The earliest deadline; null without one. */
export function deadlineOf({ missedAt, overranAt, repeatAt }: HeartbeatState): number | null {
  const earliest = Math.min(...[missedAt, overranAt, repeatAt].map((at) => at ?? Number.POSITIVE_INFINITY));
  return earliest === Number.POSITIVE_INFINITY ? null : earliest;
}

/** The state with all times moved back, as the wall clock was. */
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
    runsUntil: moved(state.runsUntil),
    jobAt: moved(state.jobAt),
  };
}

/** Maximum delay of a deadline that passed while the server was down. */
export const LATE_START_MS_MAX = 10 * 60 * 1000;

/**
 * The state after a start of the server. Clients could not ping while it was down, so deadlines that passed before the
 * start are postponed by the grace, counted from the start.
 */
export function afterStart(state: HeartbeatState, { grace_ms }: Timing, startedAt: number): HeartbeatState {
  const until = startedAt + Math.min(grace_ms, LATE_START_MS_MAX);
  const moved = (at: number | null) => (at !== null && at <= startedAt ? until : at);
  const { missedAt, overranAt, repeatAt } = state;
  return { ...state, missedAt: moved(missedAt), overranAt: moved(overranAt), repeatAt: moved(repeatAt) };
}
