import { bytesToUuid, uuidToBytes } from "../../../kernel/data/uuid.ts";
import { ApiError } from "../../../kernel/errors.ts";
import { hasScope } from "../../../kernel/http/access/caller.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import { keyDigest } from "../../../kernel/secrets/key-format.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import type { Checks } from "../checks/checks.ts";
import type { MonitorParts } from "../ports.ts";
import type { CompletedCheck, MonitorRow } from "../store.ts";
import type { Suppression } from "../suppression/suppression.ts";
import { type HeartbeatView, PINGS_KEPT, type PingKey, type PingList } from "./schema.ts";
import {
  afterPing,
  afterStart,
  deadlineOf,
  expecting,
  type HeartbeatState,
  movedBack,
  type PingRequest,
  ranMs,
} from "./state.ts";
import { PLAIN_SUCCESS } from "./steady.ts";
import type { HeartbeatRow, HeartbeatSettings, NumberedPing, StoredPing } from "./store.ts";

/** The job of a heartbeat's deadline, under the monitor's reference; it is gone where nothing is waited for. */
const DEADLINES = "monitors.heartbeats";
/** Deadlines that are looked at in one commit. */
const CONCURRENCY = 256;
/** The job that makes the heartbeats of a suspended account new, under the account's reference. */
const RESTART = "monitors.heartbeats-restart";
/** Monitors that it looks at in one unit of work: a few milliseconds. */
const RESTARTED_AT_ONCE = 500;
/** The state of a heartbeat that waits for its first ping. */
const NEW_STATE = {
  startedAt: null,
  startedRid: null,
  waitsSince: null,
  expectedAt: null,
  missedAt: null,
  overranAt: null,
  repeatAt: null,
} as const;

interface Restart {
  /** The last monitor that was looked at. */
  readonly after: number;
}

/** Characters of a project's ping key: as many as Healthchecks gives. */
const PING_KEY_LENGTH = 22;

/** Who looks at a heartbeat, and where the server was reached. */
export type Viewer = Pick<Call, "caller" | "baseUrl">;

/** What came with a ping. */
export type PingMade = PingRequest & Pick<StoredPing, "ip" | "body">;

/** Waits for pings, and notices when they do not come. */
export class Heartbeats {
  /** Monotonic time. */
  private readonly startedAt: number;

  constructor(
    private readonly parts: MonitorParts,
    private readonly checks: Checks,
    private readonly suppression: Suppression,
  ) {
    const { clock, scheduler } = parts;
    this.startedAt = clock.monotonic();
    scheduler.register(RESTART, { concurrency: 1, run: (job) => this.restart(job) });
    scheduler.suspended.onSuspended((tx, accountRef) =>
      scheduler.enqueue(tx, RESTART, String(accountRef), tx.now, { after: 0 } satisfies Restart),
    );
    scheduler.register(DEADLINES, {
      concurrency: CONCURRENCY,
      run: async ({ key, dueAt }) => {
        const late = this.overdue(Number(key), dueAt);
        const isServerOffline = late !== null && (await suppression.isServerOffline(late.accountRef));
        return {
          record: (tx) => {
            if (isServerOffline) suppression.recordOffline(tx);
            this.passed(tx, Number(key), dueAt);
          },
        };
      },
    });
  }

  /** Makes a monitor wait for pings. @throws ApiError `monitor_slug_taken` */
  create(tx: Tx, { ref, projectRef }: Pick<MonitorRow, "ref" | "projectRef">, made: HeartbeatSettings): void {
    const { heartbeats, ids } = this.parts;
    this.assertSlugFree(projectRef, made.slug, null);
    heartbeats.insert(tx, { ...made, ref, projectRef, pingId: uuidToBytes(ids.uuidV4()) });
    heartbeats.insertState(tx, ref);
  }

  /** Looks at the deadlines of a heartbeat at once, whatever they waited for. */
  lookNow(tx: Tx, ref: number): void {
    const row = this.parts.heartbeats.find(ref);
    if (row !== null) this.save(tx, ref, { ...row, lookedAt: null });
  }

  /** The heartbeat of a monitor. */
  of({ ref }: Pick<MonitorRow, "ref">): HeartbeatRow {
    const row = this.parts.heartbeats.find(ref);
    if (row === null) throw new Error(`monitor ${ref} has no heartbeat`);
    return row;
  }

  /** Changes what is waited for. `before`: the monitor before the change. @throws ApiError `monitor_slug_taken` */
  change(tx: Tx, before: MonitorRow, after: MonitorRow, made: HeartbeatSettings): void {
    const { heartbeats } = this.parts;
    const { ref, projectRef, status } = before;
    const was = this.of(before);
    this.assertSlugFree(projectRef, made.slug, ref);
    heartbeats.update(tx, { ...made, ref });
    const isOn = after.settings.active;
    const isResumed = isOn && !before.settings.active;
    const since = isResumed && status !== "unknown" ? tx.now : was.waitsSince;
    const fresh: HeartbeatState = { ...was, expectedAt: null };
    const next = since === null ? fresh : expecting(fresh, made, since);
    this.save(tx, ref, {
      ...next,
      missedAt: isOn && status !== "down" ? next.missedAt : null,
      overranAt: isOn && was.overranAt !== null ? (was.startedAt ?? 0) + made.grace_ms : null,
      repeatAt: isOn ? was.repeatAt : null,
    });
  }

  /** Removes what belongs to a monitor's heartbeat. Returns how many rows that were. */
  remove(tx: Tx, ref: number): number {
    const { heartbeats, scheduler } = this.parts;
    if (heartbeats.find(ref) === null) return 0;
    scheduler.cancel(tx, DEADLINES, String(ref));
    heartbeats.removeState(tx, ref);
    heartbeats.remove(tx, ref);
    return heartbeats.removePings(tx, ref) + 2;
  }

  /** Takes a ping. Returns false where the heartbeat has gone meanwhile. */
  take(tx: Tx, ref: number, ping: PingMade): boolean {
    const { steady, changes } = this.parts;
    const beat = isPlain(ping) ? steady.of(ref) : undefined;
    if (beat === undefined || !beat.staysSteady(tx.now, ping.ip)) return this.takeAny(tx, ref, ping);
    if (this.isStopped(beat)) return false;
    steady.succeeded(tx, beat, this.checks.recordSuccess(tx, ref, beat.previous));
    changes.inProject(tx, beat.projectRef, "pulse", beat.monitorId);
    return true;
  }

  private isStopped({ projectRef, accountRef }: Pick<MonitorRow, "projectRef" | "accountRef">): boolean {
    return this.parts.stopped.has(projectRef) || this.parts.scheduler.suspended.has(accountRef);
  }

  private takeAny(tx: Tx, ref: number, ping: PingMade): boolean {
    const { monitors, heartbeats, steady, changes } = this.parts;
    steady.release(tx, ref);
    const monitor = monitors.monitor(ref);
    const was = heartbeats.find(ref);
    if (monitor === null || was === null || this.isStopped(monitor)) return false;
    const { kind, exit, rid, ip, body } = ping;
    const isEnd = kind === "success" || kind === "fail";
    const startedAt = isEnd && rid !== null && rid !== was.startedRid ? heartbeats.startOf(ref, rid) : null;
    const is = afterPing(was, ping, was, tx.now, startedAt === null ? null : ranMs(startedAt, tx.now));
    const durationMs = isEnd ? is.lastDurationMs : null;
    heartbeats.insertPing(tx, ref, is.pings, { at: tx.now, kind, exit, durationMs, rid, ip, body });
    if (!monitor.settings.active) {
      heartbeats.save(tx, ref, { ...was, pings: is.pings, lastPingAt: tx.now });
    } else if (isEnd) {
      const error = kind === "success" ? null : exit === null ? "fail" : `exit status ${exit}`;
      const checked = this.checks.recordNow(tx, monitor, [madeOf(tx, error, durationMs)]);
      const saved = this.save(tx, ref, checked.status === "down" ? { ...is, missedAt: null } : is);
      if (isPlain(ping) && !this.suppression.hasMaintenance(ref))
        steady.add(tx, checked, { ...was, ...saved }, ip);
      return true;
    } else this.save(tx, ref, is);
    changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
    return true;
  }

  /** Makes the heartbeats of a suspended account new, in slices: what was expected meanwhile could not come. */
  private async restart({ key, payload }: Job): Promise<JobOutcome> {
    const { monitors } = this.parts;
    const { after } = payload as Restart;
    const found = monitors.after(after, RESTARTED_AT_ONCE);
    const refs = found.filter(({ accountRef, type }) => accountRef === Number(key) && type === "heartbeat");
    const record = (tx: Tx): void => {
      for (const { ref } of refs) this.renew(tx, ref);
    };
    const last = found.at(-1);
    if (last === undefined || found.length < RESTARTED_AT_ONCE) return { record };
    return {
      record,
      retryAt: this.parts.clock.now(),
      payload: { after: last.ref } satisfies Restart,
      attempt: 0,
    };
  }

  private renew(tx: Tx, ref: number): void {
    const monitor = this.parts.monitors.monitor(ref);
    const row = this.parts.heartbeats.find(ref);
    if (monitor === null || row === null) return;
    this.save(tx, ref, { ...row, ...NEW_STATE });
    this.checks.forgetStatus(tx, monitor);
  }

  /** The last pings of a heartbeat, newest first; of another monitor, none. */
  pings({ ref }: MonitorRow): PingList {
    const { heartbeats, steady } = this.parts;
    const unsaved = steady.pingsOf(ref).map((ping) => ({ ...PLAIN_SUCCESS, ...ping }));
    const last = [...unsaved, ...heartbeats.lastPings(ref)].sort((a, b) => b.number - a.number);
    const shown = ({ at, durationMs, number, ...ping }: NumberedPing) => ({
      ...ping,
      at: isoTime(at),
      duration_ms: durationMs,
    });
    return { pings: last.slice(0, PINGS_KEPT).map(shown) };
  }

  /** Gives a project a new ping key; the one before no longer works. */
  renewKey(tx: Tx, { account, project }: Call["caller"]): PingKey {
    const { heartbeats, ids, vault } = this.parts;
    const had = heartbeats.keyOf(project.ref) !== null;
    const ping_key = ids.base62(PING_KEY_LENGTH);
    const sealed = vault.seal(ping_key, keyContext(project.ref));
    const owner = { projectRef: project.ref, accountRef: account.ref };
    heartbeats.setKey(tx, { ...owner, digest: keyDigest(ping_key), sealed });
    tx.audit({
      summary: `Ping key ${had ? "renewed" : "made"}`,
      target: { type: "ping_key", id: project.id },
      before: null,
      after: { renewed: had },
    });
    return { ping_key };
  }

  /** What users have set about a heartbeat. */
  settingsOf(monitor: MonitorRow): HeartbeatSettings {
    const { slug, period_ms, schedule, tz, grace_ms } = this.of(monitor);
    return { slug, period_ms, schedule, tz, grace_ms };
  }

  /** A heartbeat as its viewer may see it: whoever knows its address may ping, and so change what is read. */
  view(monitor: MonitorRow, { caller, baseUrl }: Viewer): HeartbeatView {
    const row = this.of(monitor);
    const { slug, period_ms, schedule, tz, grace_ms, lastDurationMs } = row;
    const mayPing = hasScope(caller, "pulse:write");
    const key = mayPing && slug !== null ? this.keyOf(monitor.projectRef) : null;
    return {
      slug,
      period_ms,
      schedule,
      tz,
      grace_ms,
      last_duration_ms: lastDurationMs,
      ping_url: mayPing ? `${baseUrl}/ping/${bytesToUuid(row.pingId)}` : null,
      ping_slug_url: key === null ? null : `${baseUrl}/ping/${key}/${slug}`,
      last_ping_at: isoTimeOrNull(row.lastPingAt),
      started_at: isoTimeOrNull(row.startedAt),
      expected_at: isoTimeOrNull(row.expectedAt),
    };
  }

  private keyOf(projectRef: number): string | null {
    const row = this.parts.heartbeats.keyOf(projectRef);
    return row && this.parts.vault.open(row.sealed, keyContext(projectRef));
  }

  /** A deadline has passed, unless a ping has moved it meanwhile. `dueAt`: when the job was due that looks. */
  private passed(tx: Tx, ref: number, dueAt: number): void {
    const { monitors, heartbeats, scheduler, stopped } = this.parts;
    const monitor = monitors.monitor(ref);
    const found = heartbeats.find(ref);
    if (monitor === null || found === null || !monitor.settings.active) return;
    // Of a suspended account, all begin as new: see {@link restart}.
    if (stopped.has(monitor.projectRef) || scheduler.suspended.has(monitor.accountRef)) return;
    const row = this.heard(monitor, found, dueAt);
    const deadline = deadlineOf(row);
    if (deadline === null || deadline > tx.now) {
      this.save(tx, ref, { ...row, lookedAt: null });
      return;
    }
    const lookedAt = this.suppression.suppressedUntil(ref, tx.now);
    if (lookedAt !== null) {
      heartbeats.save(tx, ref, { ...row, lookedAt });
      scheduler.enqueue(tx, DEADLINES, String(ref), lookedAt, null);
      return;
    }
    const { missedAt, overranAt } = row;
    const isMissed = missedAt !== null && missedAt <= tx.now;
    const isOver = overranAt !== null && overranAt <= tx.now;
    const next = { ...row, missedAt: null, overranAt: isOver ? null : overranAt };
    const error = isMissed ? missedText(row) : isOver ? overranText(row) : this.lastError(monitor);
    const made = { ...madeOf(tx, error, null), ignoresThreshold: true, isRepeat: !isMissed && !isOver };
    this.checks.recordNow(tx, monitor, [made]);
    this.save(tx, ref, { ...next, repeatAt: tx.now + monitor.settings.cooldown_ms, lookedAt: null });
  }

  /** A heartbeat with the deadlines that it has where the clock was set back, or no ping could arrive for a time. */
  private heard({ accountRef }: MonitorRow, row: HeartbeatRow, dueAt: number): HeartbeatRow {
    // Its job was due when it is looked at, until the clock was set back, and the job with it.
    const setBackMs = row.lookedAt === null ? 0 : Math.max(0, row.lookedAt - dueAt);
    const since = Math.max(this.listensSince, this.reachableSince(accountRef));
    const is = movedBack(row, setBackMs);
    return { ...row, ...afterStart(is, row, since) };
  }

  /** When pings could be received again, after a start or an interruption of the process, by the wall clock of now. */
  private get listensSince(): number {
    const { clock } = this.parts;
    const since = Math.max(this.startedAt, clock.runningSince());
    return clock.now() - Math.max(0, Math.round(clock.monotonic() - since));
  }

  /** The same of a lost connectivity. A time that lies ahead is from before the clock was set back. */
  private reachableSince(accountRef: number): number {
    const since = this.suppression.reachableSince(accountRef);
    return since > this.parts.clock.now() ? 0 : since;
  }

  /** The monitor of a heartbeat whose deadline has passed; null while it has not. */
  private overdue(ref: number, dueAt: number): MonitorRow | null {
    const monitor = this.parts.monitors.monitor(ref);
    const row = this.parts.heartbeats.find(ref);
    if (monitor === null || row === null) return null;
    const deadline = deadlineOf(this.heard(monitor, row, dueAt));
    return deadline !== null && deadline <= this.parts.clock.now() ? monitor : null;
  }

  /** Why it is down, which its last check found. */
  private lastError({ lastCheck }: MonitorRow): string {
    return this.parts.checks.check(lastCheck)?.error ?? "missed";
  }

  /**
   * Writes a state with its deadlines, and its job in the same unit of work. A job that stands before the deadline stays
   * where it is, and looks anew when it runs: pings come far more often than deadlines pass.
   */
  private save(tx: Tx, ref: number, is: HeartbeatState): HeartbeatState {
    const { heartbeats, scheduler } = this.parts;
    const deadline = deadlineOf(is);
    const stands = deadline !== null && is.lookedAt !== null && is.lookedAt <= deadline;
    const saved = stands ? is : { ...is, lookedAt: deadline };
    heartbeats.save(tx, ref, saved);
    if (stands) return saved;
    if (deadline !== null) scheduler.enqueue(tx, DEADLINES, String(ref), deadline, null);
    else if (is.lookedAt !== null) scheduler.cancel(tx, DEADLINES, String(ref));
    return saved;
  }

  /** A slug is unique in its project. `ownRef`: the monitor that may have it already. */
  private assertSlugFree(projectRef: number, slug: string | null, ownRef: number | null): void {
    const { heartbeats, monitors } = this.parts;
    const holder = slug === null ? null : heartbeats.withSlug(projectRef, slug);
    if (holder === null || holder.ref === ownRef) return;
    const monitor_id = monitors.monitor(holder.ref)?.monitorId ?? "";
    const message = `The monitor ${monitor_id} of this project has this slug: change that one, or choose another slug.`;
    throw new ApiError("monitor_slug_taken", message, { extras: { monitor_id } });
  }
}

/** What a ping, or one that did not come, amounts to as a check. */
function madeOf(tx: Tx, error: string | null, durationMs: number | null): CompletedCheck {
  return {
    up: error === null,
    latencyMs: durationMs ?? 0,
    at: tx.now,
    manual: false,
    isImmediate: true,
    responseStatus: null,
    error,
  };
}

/** Whether a ping says nothing but that its job has succeeded. */
function isPlain({ kind, exit, rid, body }: PingMade): boolean {
  return kind === "success" && exit === null && rid === null && body === null;
}

function missedText({ expectedAt, grace_ms }: HeartbeatRow): string {
  return `missed: no ping since ${isoTime(expectedAt ?? 0)}, when one was expected, for ${grace_ms} ms`;
}

function overranText({ startedAt, grace_ms }: HeartbeatRow): string {
  return `overran: the run that began at ${isoTime(startedAt ?? 0)} has not ended within ${grace_ms} ms`;
}

/** What a sealed ping key is sealed for. */
function keyContext(projectRef: number): string {
  return `ping-key:${projectRef}`;
}
