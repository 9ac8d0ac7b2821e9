import type { OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { ConnectivitySign } from "../domain.ts";
import type { MonitorParts } from "../ports.ts";
import type { CompletedCheck, MonitorRow } from "../store.ts";
import { ConnectivityHosts, interleaved, type MonitoredHost } from "./connectivity-hosts.ts";
import type { SuppressionStore } from "./store.ts";

/** How long a host may take to be reached. */
const REACH_MS = 2_000;
/** How often connectivity is checked again while the server is offline. */
export const RECHECK_MS = 10_000;
/** Without hosts that the operator names, so many hosts must have failed. */
const HOSTS_MIN = 3;
/** All hosts of one user may fail, and all of one network: of so many of each must some fail before the server is offline. */
const ACCOUNTS_MIN = 2;
/** See {@link ACCOUNTS_MIN}. */
const NETWORKS_MIN = 3;
/** What was seen of hosts longer ago says nothing, unless no host is checked more often. */
const SEEN_MS_MIN = 60_000;
/** Hosts that are probed before the server counts as offline. */
const PROBED_MAX = 8;
/** How long outages are kept: as long as the figures of days. */
const OUTAGE_RETENTION_MS = 400 * 24 * 60 * 60 * 1000;

/** The job that looks, while the line is cut, whether it is back. */
const LOOK = "monitors.observer";
/** The job that has every monitor checked once it is back. */
const RETURN = "monitors.observer-return";
/** Projects that are told, and monitors that are checked again, in one unit of work. */
const SLICE = { projects: 100, monitors: 1_000 };
/** Within which time after the return each monitor is checked: a little less than the 15 s promised. */
const RETURN_MS = 12_000;
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** The time in which the line was cut. */
export interface Outage {
  readonly from: number;
  readonly to: number;
}

/** Whom a loss of connectivity affects: everyone, or one account only, all of whose hosts fail while nothing is known of others. */
export type OfflineScope = "server" | "account";

/** One look at connectivity: hosts that were probed, and whether any was reached. */
interface Look {
  readonly probed: readonly MonitoredHost[];
  readonly reached: boolean;
}

interface Return extends Outage {
  /** The last project that was told, and the last monitor whose check was moved up. */
  readonly project: number;
  readonly monitor: number;
}

type Parts = Pick<
  MonitorParts,
  "clock" | "outbound" | "scheduler" | "metrics" | "changes" | "log" | "observerTargets"
> & {
  readonly store: SuppressionStore;
  /** Checks a monitor at a moment, instead of when it would be. */
  readonly checkAt: (tx: Tx, monitor: { ref: number; accountRef: number; url: string }, at: number) => void;
  /** Tells a project of an outage that is over. */
  readonly notifyChannels: (tx: Tx, projectRef: number, outage: Outage) => void;
};

/**
 * Knows whether this server's own line is cut. Then failures say nothing about targets outside, and count for nothing
 * until it is back.
 */
export class Connectivity {
  private readonly hosts = new ConnectivityHosts();
  /** Per account that alone seemed offline: when it last did, epoch milliseconds. */
  private readonly offlineAt = new Map<number, number>();
  private since: number | null;
  private running: Promise<Look> | null = null;
  private following: Promise<Look> | null = null;
  private turn = 0;
  private back = 0;

  constructor(private readonly parts: Parts) {
    const { store, metrics, scheduler } = parts;
    this.since = store.outage() || null;
    const help =
      "1; 0 while this server's own line seems cut, so that failures of monitors count for nothing.";
    metrics.number("ninefold_observer_online", help, () => (this.offline ? 0 : 1));
    scheduler.register(LOOK, {
      concurrency: 1,
      run: async () => {
        if (!this.offline) return {};
        if (!(await this.isBack())) return { retryAt: parts.clock.now() + RECHECK_MS, attempt: 0 };
        // Also where the clock was set back meanwhile: nobody looks again after this.
        return { record: (tx) => this.end(tx, Math.max(tx.now, this.since ?? 0)) };
      },
    });
    scheduler.register(RETURN, {
      concurrency: 1,
      run: async ({ payload, dueAt }) => {
        const { next, work } = this.slice(payload as Return, dueAt);
        const again = next === null ? {} : { retryAt: parts.clock.now(), payload: next, attempt: 0 };
        return { ...again, record: work };
      },
    });
  }

  /** Whether the line is cut, as far as is known. */
  get offline(): boolean {
    return this.since !== null;
  }

  /** Since when pings of an account can arrive, as far as is known, epoch milliseconds; 0: since the start. */
  reachableSince(account: number): number {
    return Math.max(this.back, this.offlineAt.get(account) ?? 0);
  }

  /** What a check's outcome says of the line; null for a target inside, which neither proves it nor suffers from it. */
  saw(monitor: MonitorRow, outcome: OutboundOutcome): ConnectivitySign | null {
    const sign = this.hosts.saw(monitor, outcome, this.parts.clock.now());
    if (sign === "proved") this.offlineAt.delete(monitor.accountRef);
    return sign;
  }

  /**
   * Whether a check counts for nothing, since the server is offline. `matters`: whether someone would be notified, or the
   * target would be down; then connectivity is checked.
   */
  async holds(
    { accountRef }: MonitorRow,
    { line = null }: CompletedCheck,
    matters: boolean,
  ): Promise<OfflineScope | null> {
    if (this.isInconclusive(line)) return "server";
    return line === "failed" && matters ? await this.offlineFor(accountRef) : null;
  }

  /** Whether a check with this sign counts for nothing by what is known already. */
  isInconclusive(line: ConnectivitySign | null): boolean {
    return this.offline && line !== null && line !== "proved";
  }

  /**
   * Whether the server is offline as far as an account can see: none of the hosts that the operator named is reached, or,
   * where none is named, no host outside is reached and enough of them fail. What is concluded was seen after this call.
   */
  async offlineFor(account: number): Promise<OfflineScope | null> {
    if (this.offline) return "server";
    const isPossible =
      this.parts.observerTargets.length > 0 || this.scopeOf(account, this.candidates()) !== null;
    if (!isPossible) return null;
    const { reached, probed } = await this.reauthorize();
    if (this.offline) return "server";
    if (reached) return null;
    const scope = this.parts.observerTargets.length > 0 ? "server" : this.scopeOf(account, probed);
    if (scope === "account") this.offlineAt.set(account, this.parts.clock.now());
    return scope;
  }

  /** Notes that the line is cut; once. */
  begin(tx: Tx, from: number): void {
    if (this.since !== null) return;
    const { store, scheduler, log } = this.parts;
    this.since = from;
    tx.onRollback(() => {
      this.since = null;
    });
    if (scheduler.clockTrust.isTrusted) store.removeOutages(tx, tx.now - OUTAGE_RETENTION_MS);
    store.beginOutage(tx, from);
    scheduler.enqueue(tx, LOOK, "", tx.now + RECHECK_MS, null);
    tx.afterCommit(() => {
      const targets = this.parts.observerTargets.length;
      log.warn("this server's own line seems cut: failures of monitors count for nothing until it is back", {
        by: targets > 0 ? "observer targets" : "monitored hosts",
      });
    });
  }

  /** Notes that the line is back, and has every monitor checked; once. `at`: when that which shows it was begun. */
  end(tx: Tx, at: number): void {
    const from = this.since;
    if (from === null || at < from) return;
    const { store, scheduler, log } = this.parts;
    const back = this.back;
    this.since = null;
    this.back = tx.now;
    tx.onRollback(() => {
      this.since = from;
      this.back = back;
    });
    store.endOutage(tx, tx.now);
    scheduler.cancel(tx, LOOK, "");
    const began: Return = { from, to: tx.now, project: 0, monitor: 0 };
    scheduler.enqueue(tx, RETURN, String(from), tx.now, began);
    tx.afterCommit(() => log.info("this server's own line is back", { seconds: (began.to - from) / 1_000 }));
  }

  /** A look that begins now or later: one that is running may have seen what no longer holds. Many callers share it. */
  private reauthorize(): Promise<Look> {
    if (this.running === null) {
      this.running = this.look().finally(() => {
        this.running = null;
      });
      return this.running;
    }
    const next = (): Promise<Look> => {
      this.following = null;
      return this.reauthorize();
    };
    this.following ??= this.running.then(next, next);
    return this.following;
  }

  private async look(): Promise<Look> {
    const { observerTargets } = this.parts;
    if (observerTargets.length > 0)
      return { probed: [], reached: await this.reachesAny(observerTargets.map(ofOperator)) };
    const probed = this.candidates();
    return { probed, reached: await this.reachesAny(probed) };
  }

  /** Hosts that answered when they were last checked, however long ago: three dead hosts of one user say nothing about others. */
  private candidates(): MonitoredHost[] {
    return interleaved(this.hosts.publicHosts.filter(({ proved }) => proved)).slice(0, PROBED_MAX);
  }

  /** Whom it affects if none of `probed` is reached. */
  private scopeOf(account: number, probed: readonly MonitoredHost[]): OfflineScope | null {
    const { publicHosts } = this.hosts;
    const seenMs = publicHosts.reduce(
      (least, { intervalMs }) => Math.min(least, intervalMs),
      Number.POSITIVE_INFINITY,
    );
    const since = this.parts.clock.now() - Math.max(SEEN_MS_MIN, seenMs);
    const failing = [...publicHosts.filter(({ proved, at }) => !proved && at >= since), ...probed];
    if (failing.length < HOSTS_MIN) return null;
    const accounts = new Set(failing.map((host) => host.account));
    const networks = new Set(failing.map(({ network }) => network));
    if (accounts.size >= ACCOUNTS_MIN && networks.size >= NETWORKS_MIN) return "server";
    if (failing.filter((host) => host.account === account).length < HOSTS_MIN) return null;
    // Where nobody else has monitors, nobody else is silenced.
    return this.parts.store.accounts() < ACCOUNTS_MIN ? "server" : "account";
  }

  private async reachesAny(hosts: readonly Asked[]): Promise<boolean> {
    const { outbound } = this.parts;
    const reached = hosts.map(({ url, ...host }) => outbound.reaches(url, { ...host, timeoutMs: REACH_MS }));
    return (await Promise.all(reached)).includes(true);
  }

  /** Asks all that the operator named; else one host outside, each time the next. */
  private isBack(): Promise<boolean> {
    const { observerTargets } = this.parts;
    if (observerTargets.length > 0) return this.reachesAny(observerTargets.map(ofOperator));
    const publicHosts = interleaved(this.hosts.publicHosts);
    this.turn += 1;
    const host = publicHosts[this.turn % publicHosts.length];
    if (host !== undefined) return this.reachesAny([host]);
    // After a start, until the first of them is checked, nothing is known of any; where none is checked, nothing ever is.
    return Promise.resolve(this.parts.store.checkedAfter(0, 1).length === 0);
  }

  /** Tells some projects of an outage, or moves the checks of some monitors up; and what is left then. */
  private slice(from: Return, at: number): { next: Return | null; work: (tx: Tx) => void } {
    const { store, notifyChannels, checkAt, changes } = this.parts;
    const projects: number[] = [];
    for (let project = from.project; projects.length < SLICE.projects; projects.push(project)) {
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
    const monitors = store.checkedAfter(from.monitor, SLICE.monitors);
    const work = (tx: Tx): void => {
      for (const monitor of monitors)
        checkAt(tx, monitor, at + Math.floor(((monitor.ref * GOLDEN_RATIO) % 1) * RETURN_MS));
    };
    const isLast = monitors.length < SLICE.monitors;
    return { next: isLast ? null : { ...from, monitor: monitors.at(-1)?.ref ?? 0 }, work };
  }
}

type Asked = { readonly url: string; readonly account: number | null; readonly anywhere?: boolean };

function ofOperator(target: string): Asked {
  return { url: `http://${target}`, account: null, anywhere: true };
}
