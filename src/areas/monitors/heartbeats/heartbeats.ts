import { hasScope } from "../../../kernel/callers/caller.ts";
import { bytesToUuid, uuidToBytes } from "../../../kernel/data/uuid.ts";
import { ApiError } from "../../../kernel/errors.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import { keyDigest } from "../../../kernel/secrets/key-format.ts";
import { sealedText } from "../../../kernel/secrets/sealed-column.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import type { HeartbeatView } from "../heartbeat-fields.ts";
import type { AreaDeps } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import type { GivenAddresses } from "../type-fields.ts";
import { PINGS_STORED, type PingKey, type PingList } from "./schema.ts";
import {
  deadlineOf,
  type HeartbeatState,
  NO_RUNS,
  runMsMax,
  withNextExpected,
  withTimeToRun,
} from "./state.ts";
import { PLAIN_SUCCESS, type SteadyHeartbeats } from "./steady.ts";
import type { HeartbeatRow, HeartbeatSettings, HeartbeatStore, NumberedPing } from "./store.ts";

/** The ping key of a project. */
export const PING_KEY = sealedText("ping-key");

/** The job of a heartbeat's deadline; its key is the monitor's reference. A heartbeat without a deadline has none. */
export const DEADLINE_JOB = "monitors.heartbeats";
/** Characters of a project's ping key, as in Healthchecks. */
const PING_KEY_LENGTH = 22;

/** Settings whose change begins a new period for the number of runs. */
const PERIOD = ["period_ms", "schedule", "tz", "max_runs_per_period"] as const;

/** The caller that views a heartbeat, and the base URL of its links. */
export type Viewer = Pick<Call, "caller" | "baseUrl">;

type Deps = Pick<AreaDeps, "ids" | "monitors" | "scheduler" | "vault"> & {
  readonly heartbeats: HeartbeatStore;
  readonly steady: Pick<SteadyHeartbeats, "pingsOf">;
};

/** Settings and views of heartbeats, and when their pings are due. */
export class Heartbeats {
  constructor(private readonly deps: Deps) {}

  /** Creates the heartbeat of a monitor. @throws ApiError `monitor_slug_taken`, `ping_id_taken` */
  create(
    tx: Tx,
    { ref, projectRef }: Pick<MonitorRow, "ref" | "projectRef">,
    settings: HeartbeatSettings,
    { ping_id, push_token }: GivenAddresses,
  ): void {
    const { heartbeats, ids } = this.deps;
    this.assertSlugFree(projectRef, settings.slug, null);
    const pingId = (ping_id ?? ids.uuidV4()).toLowerCase();
    if (heartbeats.refOf(pingId) !== null) throw addressTaken("ping_id");
    if (push_token !== undefined && heartbeats.refOfToken(push_token) !== null)
      throw addressTaken("push_token");
    heartbeats.insert(tx, {
      ...settings,
      ref,
      projectRef,
      pingId: uuidToBytes(pingId),
      pushToken: push_token ?? null,
    });
    heartbeats.insertState(tx, ref);
    this.begin(tx, ref);
  }

  /** Waits for the first success of a heartbeat from now on, if it waits for none yet. */
  begin(tx: Tx, ref: number): void {
    const row = this.deps.heartbeats.find(ref);
    if (row !== null && row.waitsSince === null)
      this.save(tx, ref, withNextExpected(row, row, tx.now, false));
  }

  /** Schedules the job of a heartbeat's deadline again, also if maintenance has postponed it: immediately if it has passed. */
  rescheduleDeadline(tx: Tx, ref: number): void {
    const row = this.deps.heartbeats.find(ref);
    if (row !== null) this.save(tx, ref, { ...row, jobAt: null });
  }

  /** The heartbeat of a monitor. */
  of({ ref }: Pick<MonitorRow, "ref">): HeartbeatRow {
    const row = this.deps.heartbeats.find(ref);
    if (row === null) throw new Error(`monitor ${ref} has no heartbeat`);
    return row;
  }

  /** Updates the settings of a heartbeat. `before`: the monitor before the change. @throws ApiError `monitor_slug_taken` */
  change(tx: Tx, before: MonitorRow, after: MonitorRow, settings: HeartbeatSettings): void {
    const { heartbeats } = this.deps;
    const { ref, projectRef, status } = before;
    const was = this.of(before);
    this.assertSlugFree(projectRef, settings.slug, ref);
    heartbeats.update(tx, { ...settings, ref });
    const isActive = after.settings.active;
    const isResumed = isActive && !before.settings.active;
    const since = isResumed ? tx.now : was.waitsSince;
    const fresh: HeartbeatState = { ...was, expectedAt: null };
    const next =
      since === null ? fresh : withNextExpected(fresh, settings, since, !isResumed && status !== "unknown");
    // It was reported, and is not reported again unless a longer time passes in which no ping comes.
    const isOverdue =
      before.overdue && isActive && !isResumed && next.missedAt !== null && next.missedAt <= tx.now;
    if (before.overdue && !isOverdue) this.deps.monitors.setOverdue(tx, ref, false);
    const changed = {
      ...next,
      missedAt: isActive && status !== "down" && !isOverdue ? next.missedAt : null,
      overranAt: isActive && was.overranAt !== null ? (was.startedAt ?? 0) + runMsMax(settings) : null,
      repeatAt: isActive ? was.repeatAt : null,
      ...(PERIOD.every((name) => settings[name] === was[name]) ? {} : NO_RUNS),
    };
    this.save(tx, ref, withTimeToRun(changed, settings));
  }

  /** Deletes the heartbeat of a monitor. Returns the number of deleted rows. */
  remove(tx: Tx, ref: number): number {
    const { heartbeats, scheduler } = this.deps;
    if (heartbeats.find(ref) === null) return 0;
    scheduler.cancel(tx, DEADLINE_JOB, String(ref));
    heartbeats.removeState(tx, ref);
    heartbeats.remove(tx, ref);
    return heartbeats.removePings(tx, ref) + 2;
  }

  /** The last pings of a heartbeat, newest first. Empty for other monitors. */
  pings({ ref }: MonitorRow): PingList {
    const { heartbeats, steady } = this.deps;
    const unsaved = steady.pingsOf(ref).map((ping) => ({ ...PLAIN_SUCCESS, ...ping }));
    const last = [...unsaved, ...heartbeats.lastPings(ref)].sort((a, b) => b.number - a.number);
    const view = ({ at, durationMs, number, ...ping }: NumberedPing) => ({
      ...ping,
      at: isoTime(at),
      duration_ms: durationMs,
    });
    return { pings: last.slice(0, PINGS_STORED).map(view) };
  }

  /** Creates a ping key for a project. The previous one stops working. */
  renewKey(tx: Tx, { account, project }: Call["caller"]): PingKey {
    const { heartbeats, ids, vault } = this.deps;
    const had = heartbeats.keyOf(project.ref) !== null;
    const ping_key = ids.base62(PING_KEY_LENGTH);
    const sealed = PING_KEY.seal(vault, project.ref, ping_key);
    const owner = { projectRef: project.ref, accountRef: account.ref };
    heartbeats.setKey(tx, { ...owner, digest: keyDigest(ping_key), sealed });
    tx.audit({
      summary: `Ping key ${had ? "replaced" : "created"}`,
      target: { type: "ping_key", id: project.id },
      before: null,
      after: { renewed: had },
    });
    return { ping_key };
  }

  /** The settings of a heartbeat. */
  settingsOf(monitor: MonitorRow): HeartbeatSettings {
    return settingsOf(this.of(monitor));
  }

  /** A heartbeat as its viewer may see it. Anyone who knows a ping URL can ping, so read-only keys do not get it. */
  view(monitor: MonitorRow, { caller, baseUrl }: Viewer): HeartbeatView {
    const row = this.of(monitor);
    const { slug, lastDurationMs } = row;
    const mayPing = hasScope(caller, "pulse:write");
    const key = mayPing && slug !== null ? this.keyOf(monitor.projectRef) : null;
    return {
      ...settingsOf(row),
      last_duration_ms: lastDurationMs,
      ping_url: mayPing ? `${baseUrl}/ping/${bytesToUuid(row.pingId)}` : null,
      ping_slug_url: key === null ? null : `${baseUrl}/ping/${key}/${slug}`,
      push_url: mayPing && row.pushToken !== null ? `${baseUrl}/api/push/${row.pushToken}` : null,
      last_ping_at: isoTimeOrNull(row.lastPingAt),
      started_at: isoTimeOrNull(row.startedAt),
      expected_at: isoTimeOrNull(row.expectedAt),
    };
  }

  private keyOf(projectRef: number): string | null {
    const row = this.deps.heartbeats.keyOf(projectRef);
    // A restore without the master key removes its text; pings with it still work.
    return PING_KEY.openOrNull(this.deps.vault, projectRef, row?.sealed ?? null);
  }

  /**
   * Saves a state, and the job of its deadline in the same unit of work. A job that is due before the deadline stays as it
   * is and is postponed when it runs, because pings are far more frequent than missed deadlines.
   */
  save(tx: Tx, ref: number, is: HeartbeatState): HeartbeatState {
    const { heartbeats, scheduler } = this.deps;
    const deadline = deadlineOf(is);
    const isJobEarly = deadline !== null && is.jobAt !== null && is.jobAt <= deadline;
    const saved = isJobEarly ? is : { ...is, jobAt: deadline };
    heartbeats.save(tx, ref, saved);
    if (isJobEarly) return saved;
    if (deadline !== null) scheduler.enqueue(tx, DEADLINE_JOB, String(ref), deadline, null);
    else if (is.jobAt !== null) scheduler.cancel(tx, DEADLINE_JOB, String(ref));
    return saved;
  }

  /** Slugs are unique within a project. `ownRef`: the monitor that may already have it. */
  private assertSlugFree(projectRef: number, slug: string | null, ownRef: number | null): void {
    const { heartbeats, monitors } = this.deps;
    const holder = slug === null ? null : heartbeats.withSlug(projectRef, slug);
    if (holder === null || holder.ref === ownRef) return;
    const monitor_id = monitors.monitor(holder.ref)?.monitorId ?? "";
    const message = `The monitor ${monitor_id} of this project has this slug. Choose another slug, or change that monitor.`;
    throw new ApiError("monitor_slug_taken", message, { extras: { monitor_id } });
  }
}

function settingsOf(row: HeartbeatSettings): HeartbeatSettings {
  const { slug, period_ms, schedule, tz, grace_ms, start_grace_ms, max_runs_per_period } = row;
  return { slug, period_ms, schedule, tz, grace_ms, start_grace_ms, max_runs_per_period };
}

/** Without the holder: it may belong to another account. */
function addressTaken(field: string): ApiError {
  return new ApiError(
    "ping_id_taken",
    `Another heartbeat of this server has this ${field}. Delete that one, or omit the field.`,
  );
}
