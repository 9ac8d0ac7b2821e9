import type { Benchmark, Finding, Measurement, Requirement } from "./benchmark.ts";
import { RIVALS } from "./responses.ts";

/** Measurements of one row, one per round. */
export interface Series {
  readonly name: string;
  readonly connections: number;
  readonly rounds: Measurement[];
}

/** All series, by {@link seriesKey}. */
export type Results = ReadonlyMap<string, Series>;

/** Minimum throughput of a server that has just started, relative to a warm one. */
const COLD_PART_MIN = 0.7;

/**
 * The name of the series that a row is compared with. The servers of this repository are measured for each row
 * separately.
 */
export function rivalName(to: string, row: string): string {
  return RIVALS.some((rival) => rival === to) ? `${row}, ${to}` : to;
}

/** The finding of a measurement that needs the executable, where there is none. */
export function noExecutable(what: string): Finding {
  return { what, measured: "there is no executable: scripts/build", required: "-", ok: null };
}

/** The name of a row's series on a server that has just started. */
export function coldName(row: string): string {
  return `${row}, cold`;
}

/** The key of a series in {@link Results}. */
export function seriesKey(name: string, connections: number): string {
  return `${name} @ ${connections}`;
}

/** The middle value, or the mean of the two middle ones if their number is even. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

export function mediansOf(series: Series): Measurement {
  const middle = (pick: (one: Measurement) => number | null): number | null => {
    const values = series.rounds.map(pick).filter((value) => value !== null);
    return values.length === 0 ? null : median(values);
  };
  return {
    perSecond: median(series.rounds.map((one) => one.perSecond)),
    p50Ms: middle((one) => one.p50Ms),
    p99Ms: middle((one) => one.p99Ms),
  };
}

/** Compares a row's results on a warm server with its requirements, and those on a cold server with the warm ones. */
export function findingsOf({ name, connections, requires }: Benchmark, results: Results): Finding[] {
  return [
    ...requires.flatMap((requirement) =>
      requirement.connections.map((count) => findingOf(name, requirement, count, results)),
    ),
    ...connections.flatMap((count) => coldFindings(name, count, results)),
  ];
}

function coldFindings(name: string, connections: number, results: Results): Finding[] {
  const cold = results.get(seriesKey(coldName(name), connections));
  if (cold === undefined) return [];
  const ratio = pairedRatio(cold, results.get(seriesKey(name, connections)));
  return [
    {
      what: `${name}, ${connections} connections: cold to warm`,
      measured: ratio === null ? "–" : `× ${ratio.toFixed(2)}`,
      required: `≥ ${COLD_PART_MIN.toFixed(2)}`,
      ok: ratio === null ? null : ratio >= COLD_PART_MIN,
    },
  ];
}

function findingOf(name: string, requirement: Requirement, connections: number, results: Results): Finding {
  const own = results.get(seriesKey(name, connections));
  const what = `${name}, ${connections} connections`;
  if (requirement.kind === "p99") {
    const { atMostMs } = requirement;
    const measured = own === undefined ? null : mediansOf(own).p99Ms;
    return {
      what: `${what}: p99`,
      measured: measured === null ? "–" : `${measured.toFixed(1)} ms`,
      required: `≤ ${atMostMs} ms`,
      ok: measured === null ? null : measured <= atMostMs,
    };
  }
  const { to, atLeast } = requirement;
  const ratio = pairedRatio(own, results.get(seriesKey(rivalName(to, name), connections)));
  return {
    what: `${what}: to ${to}`,
    measured: ratio === null ? "–" : `× ${ratio.toFixed(2)}`,
    required: atLeast === 0 ? "" : `≥ ${atLeast.toFixed(2)}`,
    ok: ratio === null || atLeast === 0 ? null : ratio >= atLeast,
  };
}

/** The median of the ratios of the rounds. Both sides of a ratio were measured within seconds of each other. */
function pairedRatio(own: Series | undefined, other: Series | undefined): number | null {
  if (own === undefined || other === undefined || other.rounds.length === 0) return null;
  // There is no ratio to a server that has not responded.
  if (other.rounds.some(({ perSecond }) => perSecond === 0)) return null;
  return median(
    own.rounds.map((one, round) => one.perSecond / (other.rounds[round]?.perSecond ?? Number.NaN)),
  );
}

/** The measurements as a table. */
export function seriesTable(results: Results): string {
  const rows = [...results.values()].map((series) => {
    const { perSecond, p50Ms, p99Ms } = mediansOf(series);
    const all = series.rounds.map((one) => one.perSecond);
    return [
      series.name,
      String(series.connections),
      perSecond.toFixed(0),
      `${Math.min(...all).toFixed(0)} – ${Math.max(...all).toFixed(0)}`,
      p50Ms === null ? "–" : p50Ms.toFixed(2),
      p99Ms === null ? "–" : p99Ms.toFixed(2),
    ];
  });
  return table(["", "connections", "per second", "lowest – highest", "p50 ms", "p99 ms"], rows);
}

/** The results and their requirements as a table. */
export function findingsTable(findings: readonly Finding[]): string {
  const verdict = (ok: boolean | null): string => (ok === null ? "" : ok ? "ok" : "MISSED");
  const rows = findings.map(({ what, measured, required, ok }) => [what, measured, required, verdict(ok)]);
  return table(["", "measured", "required", ""], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column] ?? "")].map((text) => text.length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("   ")
      .trimEnd();
  return [line(head), ...rows.map(line)].join("\n");
}
