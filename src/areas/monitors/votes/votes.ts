import type { ProbeState } from "../../../kernel/data/probe-state.ts";
import type { SuspendedAccounts } from "../../../kernel/projects/suspended-accounts.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { type Clock, receivingSince } from "../../../kernel/time/clock.ts";
import { secondsOf } from "../../../kernel/time/units.ts";
import { type AlertRules, afterCheck } from "../domain.ts";
import type { Confirm } from "../options.ts";
import type { CompletedCheck, MonitorRow } from "../store.ts";
import { LOCAL_REF, type Voter, type VoteStore } from "./store.ts";

/** What those that check a monitor see together. */
export interface Verdict {
  /** Whether as many as needed see it down. */
  readonly isDown: boolean;
  /** Whether some see it down, and fewer than needed. */
  readonly isSplit: boolean;
  /** Whether as many as needed see it slow. */
  readonly isSlow: boolean;
  /** Error of the last check that failed; null if none sees it down. */
  readonly error: string | null;
  readonly voters: readonly Voter[];
}

/** Names of probes, where only the server checks. */
export function isLocalOnly(probes: readonly string[]): boolean {
  return probes.length === 1 && probes[0] === "local";
}

/** How many of `voters` must see a target down. */
function neededFor(confirm: Confirm, voters: number): number {
  if (confirm === "any") return 1;
  return confirm === "all" ? voters : Math.floor(voters / 2) + 1;
}

/** How long a vote lasts, in milliseconds: until the second check after it would have ended. */
function voteMs({ interval, timeout }: Pick<MonitorRow["settings"], "interval" | "timeout">): number {
  return 2 * interval + timeout;
}

/** Whether a monitor has other probes than the server. */
export function isVoting({ settings }: MonitorRow): boolean {
  return !isLocalOnly(settings.probes);
}

/** What each of those that check a monitor sees, for responses and alerts. */
export function statesOf(voters: readonly Voter[]): ProbeState[] {
  return voters.map(({ name, isOffline, status, latencyMs, lastCheckedAt, error }) => ({
    name,
    status,
    online: !isOffline,
    latency_ms: latencyMs,
    last_checked_at: lastCheckedAt === null ? null : secondsOf(lastCheckedAt),
    error,
  }));
}

/** What each probe of a monitor sees; empty if only the server checks it. */
export function probeStatesOf({ voters }: Pick<VoteStore, "voters">, monitor: MonitorRow): ProbeState[] {
  return isVoting(monitor) ? statesOf(voters(monitor.ref)) : [];
}

/** Decides the status of monitors that probes check. */
export class Votes {
  /** Monotonic time: votes from before were not renewed while the server was down. */
  private readonly startedAt: number;

  constructor(
    private readonly store: VoteStore,
    private readonly clock: Pick<Clock, "now" | "monotonic" | "runningSince">,
    private readonly suspended: Pick<SuspendedAccounts, "activeSince">,
  ) {
    this.startedAt = clock.monotonic();
  }

  /** Records what a probe has seen, and counts the votes. Null: nobody has one. */
  cast(tx: Tx, monitor: MonitorRow, check: CompletedCheck, rules: AlertRules): Verdict | null {
    const probeRef = check.probe?.ref ?? LOCAL_REF;
    const voters = this.store.voters(monitor.ref);
    const voter = voters.find((voter) => voter.probeRef === probeRef);
    // It has left the list meanwhile: others decide.
    if (voter !== undefined) {
      const before = { ...voter, alertedAt: null, overdue: false, isSplit: false };
      const { state } = afterCheck(before, check, { ...rules, hasListeners: false });
      const isNewer = state !== before;
      const after = isNewer ? { ...voter, ...state, error: check.error, isOffline: false } : voter;
      if (isNewer) this.store.save(tx, monitor.ref, after);
      voters[voters.indexOf(voter)] = after;
    }
    return this.count(monitor, voters, tx.now);
  }

  /** Counts the votes that a monitor has now. Null: nobody has one. */
  tally(monitor: MonitorRow, now: number): Verdict | null {
    return this.count(monitor, this.store.voters(monitor.ref), now);
  }

  /** Whether missing votes show that nobody checks: after a start, an interruption or a suspension, each probe first has the time for a check. */
  isObservable({ settings, updatedAt, accountRef }: MonitorRow, now: number): boolean {
    const received = receivingSince(this.clock, this.startedAt);
    // A change in the future was made before the clock was set back.
    const changedAt = updatedAt > now ? 0 : updatedAt;
    return now - Math.max(received, changedAt, this.suspended.activeSince(accountRef)) >= voteMs(settings);
  }

  /** Whether each of those that are online has found that it cannot check. */
  isNobodyAble({ ref }: MonitorRow): boolean {
    return this.store
      .voters(ref)
      .every(
        ({ isOffline, status, lastCheckedAt }) =>
          isOffline || (status === "unknown" && lastCheckedAt !== null),
      );
  }

  /** What each probe of a monitor sees; empty if only the server checks it. */
  viewOf(monitor: MonitorRow): ProbeState[] {
    return probeStatesOf(this.store, monitor);
  }

  private count({ settings }: MonitorRow, voters: readonly Voter[], now: number): Verdict | null {
    const since = now - voteMs(settings);
    const voting = voters.filter(
      ({ isOffline, status, lastCheckedAt }) =>
        !isOffline && status !== "unknown" && lastCheckedAt !== null && lastCheckedAt >= since,
    );
    if (voting.length === 0) return null;
    const needed = neededFor(settings.confirm, voting.length);
    const down = voting.filter(({ status }) => status === "down");
    const isDown = down.length >= needed;
    return {
      isDown,
      isSplit: !isDown && down.length > 0,
      isSlow: !isDown && voting.filter(({ degraded }) => degraded).length >= needed,
      error: down.at(-1)?.error ?? null,
      voters,
    };
  }
}
