import { LOCAL, type Outage, type RunRecord, type Span, type WatchedMonitor } from "./record.ts";
import { lastWith, lengthOf, outside, within } from "./spans.ts";

/** The history has whole seconds. */
const ROUNDING_MS = 1_000;
/** Silence of a probe after which it is reported. */
const OFFLINE_MS = 120_000;

/** What a run has shown. */
export interface Verdict {
  readonly problems: readonly string[];
  /** Longest time between two checks in which the checker could have checked, in milliseconds: as targets and as the history show. */
  readonly longestSeenMs: number;
  readonly longestStoredMs: number;
  /** Longest time from the start of an outage to its alert, and from its end to the recovery, in milliseconds. */
  readonly longestDownMs: number;
  readonly longestUpMs: number;
  /** Long outages, short ones, and those short ones that caused alerts. */
  readonly outages: number;
  readonly blips: number;
  readonly blipsAlerted: number;
  /** Alerts, and attempts that repeated one. */
  readonly alerts: number;
  readonly repeated: number;
  readonly seen: number;
  readonly stored: number;
}

/** A period in which a checker must not lose a check. */
interface Watch extends Span {
  /** When it was able to check. */
  readonly able: readonly Span[];
}

/**
 * Judges a run by these rules:
 * - A checker loses a check if it is able to check for longer than the interval and the slack, and does not.
 * - The server is able while it is ready. What its kills leave undone counts together.
 * - A probe is able while it runs and has its list, or can reach the server to get it. Each life counts for itself: it checks
 *   everything again. A partition of its link is no excuse once it has its list.
 * - The history shows the same, but for results that a kill took from a probe: those that it had no time to send.
 * - Each long outage causes one alert and one recovery, a short one as many of each, or none, and nothing else causes any. An alert that
 *   arrives again has the same id.
 * - A probe is reported as offline only if it was silent for two minutes.
 */
export function judge(record: RunRecord): Verdict {
  return new Judge(record).verdict();
}

class Judge {
  private readonly problems: string[] = [];
  private readonly longest = { seen: 0, stored: 0, down: 0, up: 0 };
  private readonly counts = { outages: 0, blips: 0, blipsAlerted: 0 };
  private readonly seenWatches = new Map<string, Watch[]>();
  private readonly storedWatches = new Map<string, Watch[]>();

  constructor(private readonly record: RunRecord) {
    for (const name of record.lives.keys()) {
      this.seenWatches.set(name, this.watchesOf(name, false));
      this.storedWatches.set(name, this.watchesOf(name, true));
    }
  }

  verdict(): Verdict {
    const { monitors, alerts } = this.record;
    for (const monitor of monitors) {
      this.judgeSeen(monitor);
      this.judgeStored(monitor);
    }
    const unique = new Map(alerts.toReversed().map((alert) => [alert.id, alert]));
    this.judgeAlerts([...unique.values()].toSorted((left, right) => left.at - right.at));
    return {
      problems: this.problems,
      longestSeenMs: this.longest.seen,
      longestStoredMs: this.longest.stored,
      longestDownMs: this.longest.down,
      longestUpMs: this.longest.up,
      ...this.counts,
      alerts: unique.size,
      repeated: alerts.length - unique.size,
      seen: sumOf(monitors, ({ seen }) => seen.length),
      stored: sumOf(monitors, ({ history }) => sumOf([...history.values()], (times) => times.length)),
    };
  }

  /** What the targets of monitors with one checker saw. */
  private judgeSeen({ id, checkers, seesAll, seen }: WatchedMonitor): void {
    const [checker = ""] = checkers;
    if (checkers.length > 1 || !seesAll) return;
    const longest = this.judgeTimes(`${id}: its target was not checked`, checker, seen, this.seenWatches, 0);
    this.longest.seen = Math.max(this.longest.seen, longest);
  }

  private judgeStored({ id, checkers, seesAll, seen, history }: WatchedMonitor): void {
    for (const checker of checkers) {
      const times = history.get(checker) ?? [];
      const text = `${id}: its history has no check`;
      const longest = this.judgeTimes(text, checker, times, this.storedWatches, ROUNDING_MS);
      this.longest.stored = Math.max(this.longest.stored, longest);
    }
    const stored = sumOf([...history.values()], (times) => times.length);
    if (seesAll && stored > seen.length)
      this.problems.push(`${id}: the history has ${stored} checks, and its target saw ${seen.length}`);
  }

  /** Looks for times in which a checker should have checked. Returns the longest. `rounding`: how much too early a time may be. */
  private judgeTimes(
    text: string,
    checker: string,
    times: readonly number[],
    watches: ReadonlyMap<string, readonly Watch[]>,
    rounding: number,
  ): number {
    const { intervalMs, slackMs } = this.record;
    const limit = intervalMs + slackMs + rounding;
    const sorted = times.toSorted((left, right) => left - right);
    let [longest, next] = [0, 0];
    for (const { from, to, able } of watches.get(checker) ?? []) {
      let before = from;
      const take = (at: number): void => {
        const ms =
          at - before <= Math.min(longest, limit) ? 0 : lengthOf(within(able, { from: before, to: at }));
        longest = Math.max(longest, ms);
        if (ms > limit)
          this.problems.push(`${text} by ${checker} for ${ms} ms between ${shown(before)} and ${shown(at)}`);
        before = Math.max(before, at);
      };
      while (next > 0 && (sorted[next - 1] ?? 0) >= from - rounding) next -= 1;
      while (next < sorted.length && (sorted[next] ?? 0) < from - rounding) next += 1;
      for (; next < sorted.length && (sorted[next] ?? 0) <= to; next += 1) take(sorted[next] ?? 0);
      take(to);
    }
    return longest;
  }

  /** When a checker must check. `isStored`: without the end of a probe's life, whose results it may not have sent. */
  private watchesOf(name: string, isStored: boolean): Watch[] {
    const { lives, cuts, sendMs, from, to } = this.record;
    const ready = (lives.get(LOCAL) ?? []).flatMap(({ readyAt, to }) =>
      readyAt === null ? [] : [{ from: readyAt, to }],
    );
    if (name === LOCAL) return [{ from, to, able: within(ready, { from, to }) }];
    const reachable = ready.flatMap((span) => outside(cuts.get(name) ?? [], span));
    return (lives.get(name) ?? []).flatMap((life) => {
      const listAt = life.readyAt ?? life.to;
      const able = [
        ...within(reachable, { from: life.from, to: listAt }),
        ...(listAt < life.to ? [{ from: listAt, to: life.to }] : []),
      ];
      const end = isStored && life.to < to ? lastWith(reachable, life, sendMs) : life.to;
      const span = { from: Math.max(life.from, from), to: Math.min(end, to) };
      return span.to > span.from ? [{ ...span, able: within(able, span) }] : [];
    });
  }

  private judgeAlerts(alerts: RunRecord["alerts"]): void {
    const byAbout = Map.groupBy(alerts, ({ about }) => about);
    for (const { id, outages } of this.record.monitors) {
      this.judgeOutages(id, outages, byAbout.get(id) ?? []);
      byAbout.delete(id);
    }
    for (const { event, about, at } of [...byAbout.values()].flat()) {
      const isTrue = event.startsWith("probe.") && this.longestSilence(about, at) >= OFFLINE_MS;
      if (!isTrue) this.problems.push(`${about}: ${event} at ${shown(at)} is false`);
    }
  }

  private judgeOutages(id: string, outages: readonly Outage[], alerts: RunRecord["alerts"]): void {
    const [first] = outages;
    for (const { event, at } of alerts.filter(({ at }) => first === undefined || at < first.from))
      this.problems.push(`${id}: ${event} at ${shown(at)} is false: its target was up`);
    for (const [index, { from, to, isLong }] of outages.entries()) {
      const until = outages[index + 1]?.from ?? Number.POSITIVE_INFINITY;
      const own = alerts.filter(({ event, at }) => at >= from && at < until && !MILD_EVENTS.includes(event));
      const events = own.map(({ event }) => event).join(", ");
      this.counts[isLong ? "outages" : "blips"] += 1;
      if (!isLong && events === "") continue;
      if (!isLong) this.counts.blipsAlerted += 1;
      const isPaired = (isLong ? ONE_PAIR : PAIRS).test(events);
      if (!isPaired) {
        this.problems.push(
          `${id}: the outage from ${shown(from)} to ${shown(to)} caused ${events || "no alert"}`,
        );
        continue;
      }
      const [down, up] = own as [RunRecord["alerts"][number], RunRecord["alerts"][number]];
      this.longest.down = Math.max(this.longest.down, down.at - from);
      this.longest.up = Math.max(this.longest.up, up.at - to);
      if (isLong && up.at < to)
        this.problems.push(`${id}: recovered at ${shown(up.at)}, and was up at ${shown(to)}`);
    }
  }

  /** The longest time up to an instant in which a probe could not call the server. */
  private longestSilence(name: string, until: number): number {
    const { lives, cuts, from } = this.record;
    const servers = (lives.get(LOCAL) ?? []).map((life) => ({ from: life.readyAt ?? life.to, to: life.to }));
    const calling = (lives.get(name) ?? [])
      .flatMap((life) => within(servers, life))
      .flatMap((span) => outside(cuts.get(name) ?? [], span));
    const silences = outside(calling, { from, to: until });
    return Math.max(0, ...silences.map((span) => span.to - span.from));
  }
}

/** Alerts of a long outage, and of a short one, which some see later than others. */
const ONE_PAIR = /^monitor\.down, monitor\.up$/;
const PAIRS = /^monitor\.down, monitor\.up(?:, monitor\.down, monitor\.up)*$/;

/** What some probes see of an outage before others do. */
const MILD_EVENTS: readonly string[] = ["monitor.degraded", "monitor.recovered"];

function sumOf<Item>(items: readonly Item[], count: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + count(item), 0);
}

function shown(at: number): string {
  return Number.isFinite(at) ? new Date(at).toISOString().slice(11, 23) : "the end";
}
