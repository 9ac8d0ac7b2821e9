import { isPublicAddress } from "../../kernel/outbound/address.ts";
import type { FailureKind, OutboundOutcome } from "../../kernel/outbound/outcome.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { LineSign } from "./domain.ts";
import type { MonitorParts } from "./ports.ts";
import type { QuietStore } from "./quiet-store.ts";
import type { CheckMade, MonitorRow } from "./store.ts";

/** How long a host may take to be reached. */
const REACH_MS = 2_000;
/** How long an answer to whether the line is cut stands, and how often it is asked again while it is. */
export const AGAIN_MS = 10_000;
/** Without hosts that the operator names, so many hosts must have failed. */
const HOSTS_MIN = 3;
/** What was seen of hosts longer ago says nothing, unless no host is checked more often. */
const SEEN_MS_MIN = 60_000;
/** Hosts of which is known how their last check went: some megabytes. */
const HOSTS_MAX = 10_000;
/** Hosts that are asked at once before the line is said to be cut. */
const ASKED_MAX = 5;
/** How long outages are kept: as long as the figures of days. */
const OUTAGES_KEPT_MS = 400 * 24 * 60 * 60 * 1000;

/** The job that looks, while the line is cut, whether it is back. */
const LOOK = "monitors.observer";
/** The job that has every monitor checked once it is back. */
const RETURN = "monitors.observer-return";
/** Projects that are told, and monitors that are checked again, in one unit of work. */
const SLICE = { projects: 100, monitors: 1_000 };
/** Within which time after the return each monitor is checked: a little less than the 15 s promised. */
const RETURN_MS = 12_000;
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** Failures as a cut line causes them. */
const LINE_FAILURES: ReadonlySet<FailureKind> = new Set(["dns", "connect", "timeout", "reset"]);

interface SeenHost {
  readonly url: string;
  readonly account: number;
  readonly isPublic: boolean;
  readonly proved: boolean;
  readonly at: number;
  readonly intervalMs: number;
}

/** The time in which the line was cut. */
export interface Outage {
  readonly from: number;
  readonly to: number;
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
  readonly quiet: QuietStore;
  /** Checks a monitor at a moment, instead of when it would be. */
  readonly checkAt: (tx: Tx, monitor: { ref: number; accountRef: number; url: string }, at: number) => void;
  /** Tells a project of an outage that is over. */
  readonly tell: (tx: Tx, projectRef: number, outage: Outage) => void;
};

/**
 * Knows whether this server's own line is cut. Then failures say nothing about targets outside, and count for nothing
 * until it is back.
 */
export class Observer {
  private readonly hosts = new Map<string, SeenHost>();
  private since: number | null;
  private answer: { readonly at: number; readonly cut: Promise<boolean> } | null = null;
  private turn = 0;
  private back = 0;

  constructor(private readonly parts: Parts) {
    const { quiet, metrics, scheduler } = parts;
    this.since = quiet.outage() || null;
    const help =
      "1; 0 while this server's own line seems cut, so that failures of monitors count for nothing.";
    metrics.number("ninefold_observer_online", help, () => (this.offline ? 0 : 1));
    scheduler.register(LOOK, {
      concurrency: 1,
      run: async () => {
        if (!this.offline) return {};
        if (!(await this.isBack())) return { retryAt: parts.clock.now() + AGAIN_MS, attempt: 0 };
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

  /** When the line came back last, epoch milliseconds; 0: not since the start. */
  get backAt(): number {
    return this.back;
  }

  /** What a check's outcome says of the line; null for a target inside, which neither proves it nor suffers from it. */
  saw(monitor: MonitorRow, outcome: OutboundOutcome): LineSign | null {
    const { url, interval } = monitor.settings;
    const { host } = new URL(url);
    const isPublic = this.isPublic(host, outcome);
    const sign = isPublic ? signOf(outcome) : null;
    if (sign === "open") return sign;
    this.hosts.delete(host);
    const known = { url, account: monitor.accountRef, intervalMs: interval };
    this.hosts.set(host, { ...known, isPublic, proved: sign === "proved", at: this.parts.clock.now() });
    if (this.hosts.size > HOSTS_MAX) this.hosts.delete(this.hosts.keys().next().value ?? "");
    return sign;
  }

  /**
   * Whether a check counts for nothing, since the line is cut. `matters`: whether somebody would be told, or the target
   * would be down; then the line is tried.
   */
  async holds({ line = null, at }: CheckMade, matters: boolean): Promise<boolean> {
    return this.mutes(line) || (line === "failed" && matters && (await this.isCut(at)));
  }

  /** Whether a check with this sign counts for nothing by what is known already. */
  mutes(line: LineSign | null): boolean {
    return this.offline && line !== null && line !== "proved";
  }

  /**
   * Whether the line is cut: none of the hosts that the operator named is reached, or, where none is named, no host
   * outside has answered lately, nor does one now. `at`: a host that answered since then proves the line.
   */
  isCut(at: number): Promise<boolean> {
    if (this.offline) return Promise.resolve(true);
    const now = this.parts.clock.now();
    // A clock that was set back makes no answer stand longer.
    if (this.answer === null || Math.abs(now - this.answer.at) >= AGAIN_MS)
      this.answer = { at: now, cut: this.ask(at, now) };
    return this.answer.cut;
  }

  /** Notes that the line is cut; once. */
  begin(tx: Tx, from: number): void {
    if (this.since !== null) return;
    const { quiet, scheduler, log } = this.parts;
    this.since = from;
    tx.onRollback(() => {
      this.since = null;
    });
    quiet.removeOutages(tx, tx.now - OUTAGES_KEPT_MS);
    quiet.beginOutage(tx, from);
    scheduler.enqueue(tx, LOOK, "", tx.now + AGAIN_MS, null);
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
    const { quiet, scheduler, log } = this.parts;
    const answer = this.answer;
    const back = this.back;
    this.since = null;
    this.answer = null;
    this.back = tx.now;
    tx.onRollback(() => {
      this.since = from;
      this.answer = answer;
      this.back = back;
    });
    quiet.endOutage(tx, tx.now);
    scheduler.cancel(tx, LOOK, "");
    const began: Return = { from, to: tx.now, project: 0, monitor: 0 };
    scheduler.enqueue(tx, RETURN, String(from), tx.now, began);
    tx.afterCommit(() => log.info("this server's own line is back", { seconds: (began.to - from) / 1_000 }));
  }

  private async ask(at: number, now: number): Promise<boolean> {
    const { observerTargets } = this.parts;
    if (observerTargets.length > 0) return !(await this.reachesAny(observerTargets.map(ofOperator)));
    const outside = [...this.hosts.values()].filter(({ isPublic }) => isPublic);
    const seenMs = Math.max(SEEN_MS_MIN, Math.min(...outside.map(({ intervalMs }) => intervalMs)));
    const recent = outside.filter((host) => host.at >= now - seenMs);
    if (recent.length < HOSTS_MIN) return false;
    // Those that are checked more rarely are asked too: three dead hosts of one user say nothing about all others.
    const proofs = outside.filter(({ proved }) => proved);
    if (proofs.some((host) => host.at >= at)) return false;
    // These answered before the line can have been cut. The latest stand last.
    return !(await this.reachesAny(proofs.slice(-ASKED_MAX)));
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
    const outside = [...this.hosts.values()].filter(({ isPublic }) => isPublic);
    this.turn += 1;
    const host = outside[this.turn % outside.length];
    if (host !== undefined) return this.reachesAny([host]);
    // After a start, until the first of them is checked, nothing is known of any; where none is checked, nothing ever is.
    return Promise.resolve(this.parts.quiet.checkedAfter(0, 1).length === 0);
  }

  private isPublic(host: string, outcome: OutboundOutcome): boolean {
    const addresses = outcome.answered ? [outcome.address] : outcome.addresses;
    if (addresses.length === 0) return this.hosts.get(host)?.isPublic ?? true;
    return addresses.every((address) => isPublicAddress(address));
  }

  /** Tells some projects of an outage, or moves the checks of some monitors up; and what is left then. */
  private slice(from: Return, at: number): { next: Return | null; work: (tx: Tx) => void } {
    const { quiet, tell, checkAt, changes } = this.parts;
    const projects: number[] = [];
    for (let project = from.project; projects.length < SLICE.projects; projects.push(project)) {
      project = quiet.projectAfter(project);
      if (project === 0) break;
    }
    if (projects.length > 0) {
      const work = (tx: Tx): void => {
        for (const project of projects) {
          tell(tx, project, { from: from.from, to: from.to });
          changes.inProject(tx, project, "pulse");
        }
      };
      return { next: { ...from, project: projects.at(-1) ?? 0 }, work };
    }
    const monitors = quiet.checkedAfter(from.monitor, SLICE.monitors);
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

function signOf(outcome: OutboundOutcome): LineSign {
  if (outcome.answered) return "proved";
  return LINE_FAILURES.has(outcome.failure.kind) ? "failed" : "open";
}
