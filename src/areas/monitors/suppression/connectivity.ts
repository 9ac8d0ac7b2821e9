import type { Tx } from "../../../kernel/storage/tx.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import type { ConnectivitySign } from "../domain.ts";
import type { AreaDeps } from "../ports.ts";
import type { CompletedCheck, MonitorRow } from "../store.ts";
import {
  ConnectivityHosts,
  interleaved,
  type MonitoredHost,
  type ReachOutcome,
} from "./connectivity-hosts.ts";
import type { SuppressionStore } from "./store.ts";

/** Timeout of a probe of one host. */
const PROBE_TIMEOUT_MS = 2_000;
/** Interval of connectivity checks while the server is offline. */
export const RECHECK_MS = 10_000;
/** Without hosts named by the operator: monitored hosts that must fail before the server counts as offline. */
const HOSTS_MIN = 3;
/** Accounts and networks that the failing hosts must belong to: all hosts of one user or of one network can fail together. */
const ACCOUNTS_MIN = 2;
/** See {@link ACCOUNTS_MIN}. */
const NETWORKS_MIN = 3;
/** Failures older than this are ignored, unless no host is checked more often. */
const FAILURE_MAX_AGE_MS = 60_000;
/** Hosts that are probed in one connectivity check. */
const PROBED_MAX = 8;
/** Retention of outages: that of daily counts. */
const OUTAGE_RETENTION_MS = 400 * DAY_MS;

/** The job that checks, while the server is offline, whether it is online again. */
const OFFLINE_JOB = "monitors.observer";
/** The job that notifies channels of an outage and checks all monitors once the server is online again. */
const RECOVERY_JOB = "monitors.observer-return";
/** Projects that are notified, and monitors whose checks are rescheduled, in one unit of work. */
const PER_UNIT = { projects: 100, monitors: 1_000 };
/** Time over which the checks after a recovery are spread: a little less than the 15 s promised. */
const RECOVERY_CHECKS_MS = 12_000;
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** A period in which the server was offline, epoch milliseconds. */
export interface Outage {
  readonly from: number;
  readonly to: number;
}

/** Who is affected by a loss of connectivity: all accounts, or one, if all of its hosts fail and nothing is known of others. */
export type OfflineScope = "server" | "account";

/** The result of a connectivity check. */
interface ConnectivityCheck {
  readonly probed: readonly MonitoredHost[];
  /** Whether any of the probed hosts was reached. */
  readonly reached: boolean;
}

/** Progress of the recovery job. */
interface Recovery extends Outage {
  /** The last project that was notified, and the last monitor whose check was rescheduled. */
  readonly project: number;
  readonly monitor: number;
}

type Deps = Pick<
  AreaDeps,
  "clock" | "outbound" | "scheduler" | "metrics" | "changes" | "log" | "observerTargets"
> & {
  readonly store: SuppressionStore;
  /** Reschedules the next check of a monitor. */
  readonly checkAt: (tx: Tx, monitor: { ref: number; accountRef: number; url: string }, at: number) => void;
  /** Notifies the channels of a project of an outage that has ended. */
  readonly notifyChannels: (tx: Tx, projectRef: number, outage: Outage) => void;
};

/** Detects whether this server is offline. While it is, failures say nothing about targets and are ignored. */
export class Connectivity {
  private readonly hosts = new ConnectivityHosts();
  /** When a single account last seemed offline, by account, epoch milliseconds. */
  private readonly accountOfflineAt = new Map<number, number>();
  private offlineSince: number | null;
  private running: Promise<ConnectivityCheck> | null = null;
  private following: Promise<ConnectivityCheck> | null = null;
  private nextHost = 0;
  private onlineSince = 0;

  constructor(private readonly deps: Deps) {
    const { store, metrics, scheduler, clock } = deps;
    this.offlineSince = store.outage() || null;
    const help = "1, or 0 while this server is offline and failures of monitors are ignored.";
    metrics.number("ninefold_observer_online", help, () => (this.isOffline ? 0 : 1));
    scheduler.register(OFFLINE_JOB, {
      concurrency: 1,
      run: async () => {
        if (!this.isOffline) return {};
        if (!(await this.isOnlineAgain())) return { retryAt: clock.now() + RECHECK_MS, attempt: 0 };
        // Also if the clock was set back meanwhile: no other check follows.
        return { record: (tx) => this.markOnline(tx, Math.max(tx.now, this.offlineSince ?? 0)) };
      },
    });
    scheduler.register(RECOVERY_JOB, {
      concurrency: 1,
      run: async ({ payload, dueAt }) => {
        const { next, work } = this.recoveryUnit(payload as Recovery, dueAt);
        const again = next === null ? {} : { retryAt: clock.now(), payload: next, attempt: 0 };
        return { ...again, record: work };
      },
    });
  }

  /** Whether the server is known to be offline. */
  get isOffline(): boolean {
    return this.offlineSince !== null;
  }

  /** Since when pings of an account can arrive, epoch milliseconds; 0: since the start. */
  reachableSince(account: number): number {
    return Math.max(this.onlineSince, this.accountOfflineAt.get(account) ?? 0);
  }

  /** Records the outcome of a check. Returns what it shows about connectivity; null for a private target: nothing. */
  recordOutcome(monitor: MonitorRow, outcome: ReachOutcome): ConnectivitySign | null {
    const sign = this.hosts.recordOutcome(monitor, outcome, this.deps.clock.now());
    if (sign === "proved") this.accountOfflineAt.delete(monitor.accountRef);
    return sign;
  }

  /**
   * Why a check is ignored: the scope in which the server is offline, or null. Checks connectivity if the check
   * `hasEffect`: if it makes the target down or causes an alert.
   */
  async offlineScopeOf(
    { accountRef }: MonitorRow,
    { connectivity = null }: CompletedCheck,
    hasEffect: boolean,
  ): Promise<OfflineScope | null> {
    if (this.isInconclusive(connectivity)) return "server";
    return connectivity === "failed" && hasEffect ? await this.checkScope(accountRef) : null;
  }

  /** Whether a check with this sign says nothing about its target because the server is known to be offline. */
  isInconclusive(sign: ConnectivitySign | null): boolean {
    return this.isOffline && sign !== null && sign !== "proved";
  }

  /**
   * Checks whether the server is offline for an account: none of the hosts named by the operator is reached; or, if none
   * is named, no public monitored host is reached and enough of them fail. All probes start after this call.
   */
  async checkScope(account: number): Promise<OfflineScope | null> {
    if (this.isOffline) return "server";
    const isPossible =
      this.deps.observerTargets.length > 0 || this.scopeOf(account, this.candidates()) !== null;
    if (!isPossible) return null;
    const { reached, probed } = await this.check();
    if (this.isOffline) return "server";
    if (reached) return null;
    const scope = this.deps.observerTargets.length > 0 ? "server" : this.scopeOf(account, probed);
    if (scope === "account") this.accountOfflineAt.set(account, this.deps.clock.now());
    return scope;
  }

  /** Records that the server is offline since a time. Repeated calls change nothing. */
  markOffline(tx: Tx, from: number): void {
    if (this.offlineSince !== null) return;
    const { store, scheduler, log } = this.deps;
    this.offlineSince = from;
    tx.onRollback(() => {
      this.offlineSince = null;
    });
    if (scheduler.clockTrust.isTrusted) store.removeOutages(tx, tx.now - OUTAGE_RETENTION_MS);
    store.beginOutage(tx, from);
    scheduler.enqueue(tx, OFFLINE_JOB, "", tx.now + RECHECK_MS, null);
    tx.afterCommit(() => {
      const targets = this.deps.observerTargets.length;
      log.warn("this server is offline: failures of monitors are ignored until it is online again", {
        by: targets > 0 ? "observer targets" : "monitored hosts",
      });
    });
  }

  /** Records that the server is online again, and checks all monitors. `at`: start of the check that shows it. */
  markOnline(tx: Tx, at: number): void {
    const from = this.offlineSince;
    if (from === null || at < from) return;
    const { store, scheduler, log } = this.deps;
    const { onlineSince } = this;
    this.offlineSince = null;
    this.onlineSince = tx.now;
    tx.onRollback(() => {
      this.offlineSince = from;
      this.onlineSince = onlineSince;
    });
    store.endOutage(tx, tx.now);
    scheduler.cancel(tx, OFFLINE_JOB, "");
    const recovery: Recovery = { from, to: tx.now, project: 0, monitor: 0 };
    scheduler.enqueue(tx, RECOVERY_JOB, String(from), tx.now, recovery);
    tx.afterCommit(() => log.info("this server is online again", { seconds: (recovery.to - from) / 1_000 }));
  }

  /** A connectivity check that starts now or later; one that already runs may be out of date. Callers share it. */
  private check(): Promise<ConnectivityCheck> {
    if (this.running === null) {
      this.running = this.probeAll().finally(() => {
        this.running = null;
      });
      return this.running;
    }
    const next = (): Promise<ConnectivityCheck> => {
      this.following = null;
      return this.check();
    };
    this.following ??= this.running.then(next, next);
    return this.following;
  }

  private async probeAll(): Promise<ConnectivityCheck> {
    const { observerTargets } = this.deps;
    if (observerTargets.length > 0)
      return { probed: [], reached: await this.reachesAny(observerTargets.map(operatorTarget)) };
    const probed = this.candidates();
    return { probed, reached: await this.reachesAny(probed) };
  }

  /** Hosts that responded to their last check, however old it is: hosts that were down before prove nothing. */
  private candidates(): MonitoredHost[] {
    return interleaved(this.hosts.publicHosts.filter(({ proved }) => proved)).slice(0, PROBED_MAX);
  }

  /** The scope in which the server is offline if none of `probed` is reached; null if too few hosts fail. */
  private scopeOf(account: number, probed: readonly MonitoredHost[]): OfflineScope | null {
    const { publicHosts } = this.hosts;
    const shortestIntervalMs = publicHosts.reduce(
      (least, { intervalMs }) => Math.min(least, intervalMs),
      Number.POSITIVE_INFINITY,
    );
    const since = this.deps.clock.now() - Math.max(FAILURE_MAX_AGE_MS, shortestIntervalMs);
    const failing = [...publicHosts.filter(({ proved, at }) => !proved && at >= since), ...probed];
    if (failing.length < HOSTS_MIN) return null;
    const accounts = new Set(failing.map((host) => host.account));
    const networks = new Set(failing.map(({ network }) => network));
    if (accounts.size >= ACCOUNTS_MIN && networks.size >= NETWORKS_MIN) return "server";
    if (failing.filter((host) => host.account === account).length < HOSTS_MIN) return null;
    // If only one account has monitors, no other account is affected.
    return this.deps.store.accounts() < ACCOUNTS_MIN ? "server" : "account";
  }

  private async reachesAny(hosts: readonly ProbeTarget[]): Promise<boolean> {
    const { outbound } = this.deps;
    const reached = hosts.map(({ url, ...host }) =>
      outbound.reaches(url, { ...host, timeoutMs: PROBE_TIMEOUT_MS }),
    );
    return (await Promise.all(reached)).includes(true);
  }

  /** Probes the hosts named by the operator, or the next public monitored host in turn. */
  private isOnlineAgain(): Promise<boolean> {
    const { observerTargets } = this.deps;
    if (observerTargets.length > 0) return this.reachesAny(observerTargets.map(operatorTarget));
    const hosts = interleaved(this.hosts.publicHosts);
    this.nextHost += 1;
    const host = hosts[this.nextHost % hosts.length];
    if (host !== undefined) return this.reachesAny([host]);
    // After a start no host is known until the first check. Without monitors of URLs none ever is: then it counts as online.
    return Promise.resolve(this.deps.store.checkedAfter(0, 1).length === 0);
  }

  /** One unit of the recovery: notifies projects, then reschedules checks. `next`: the remaining work; null for none. */
  private recoveryUnit(from: Recovery, at: number): { next: Recovery | null; work: (tx: Tx) => void } {
    const { store, notifyChannels, checkAt, changes } = this.deps;
    const projects: number[] = [];
    for (let project = from.project; projects.length < PER_UNIT.projects; projects.push(project)) {
      project = store.projectAfter(project);
      if (project === 0) break;
    }
    if (projects.length > 0) {
      const work = (tx: Tx): void => {
        for (const project of projects) {
          notifyChannels(tx, project, { from: from.from, to: from.to });
          changes.inProject(tx, project, "pulse");
        }
      };
      return { next: { ...from, project: projects.at(-1) ?? 0 }, work };
    }
    const monitors = store.checkedAfter(from.monitor, PER_UNIT.monitors);
    const work = (tx: Tx): void => {
      for (const monitor of monitors)
        checkAt(tx, monitor, at + Math.floor(((monitor.ref * GOLDEN_RATIO) % 1) * RECOVERY_CHECKS_MS));
    };
    const isLast = monitors.length < PER_UNIT.monitors;
    return { next: isLast ? null : { ...from, monitor: monitors.at(-1)?.ref ?? 0 }, work };
  }
}

type ProbeTarget = { readonly url: string; readonly account: number | null; readonly anywhere?: boolean };

function operatorTarget(target: string): ProbeTarget {
  return { url: `http://${target}`, account: null, anywhere: true };
}
