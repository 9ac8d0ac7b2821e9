import { DAY_MS } from "../core/format.ts";
import { clockText, dayText } from "../core/times.ts";

/** State of a bar: no outage, an outage, or no checks. */
export type SlotTone = "good" | "bad" | "none";

/** A value at a time in epoch milliseconds. Null interrupts the line; a point without a value does not. */
export interface Point {
  readonly at: number;
  readonly value?: number | null;
  /** A second line above the first one: what most single values of the point do not exceed. */
  readonly most?: number | null;
  /** State of the point's bar in the strip above the line, and its text. */
  readonly tone?: SlotTone;
  readonly label?: string;
}

/** A marked period, in epoch milliseconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

/** Height of the plot and its distances from the edges of the chart. */
export const PLOT_HEIGHT = 150;
export const LEFT = 60;
export const RIGHT = 8;
const TICKS = 4;

/** The axes of a chart. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  /** Labelled values; none without a value. */
  readonly ticks: readonly number[];
  readonly x: (at: number) => number;
  readonly y: (value: number) => number;
}

/** The axes of a chart: its times up to the end of the last slot, and values from 0 to a round number. */
export function scaleOf(
  points: readonly Point[],
  slotMs: number,
  { width, top }: { width: number; top: number },
): Scale {
  const from = points[0]?.at ?? 0;
  const to = (points.at(-1)?.at ?? from) + slotMs;
  const values = points.flatMap(({ value, most }) => [value ?? [], most ?? []].flat());
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  const least = values.reduce((a, b) => Math.min(a, b), 0);
  const step = niceStep((most - least) / TICKS);
  const low = Math.floor(least / step) * step;
  const high = Math.max(Math.ceil(most / step) * step, low + step);
  const count = values.length === 0 ? 0 : Math.round((high - low) / step) + 1;
  return {
    from,
    to,
    ticks: Array.from({ length: count }, (_, at) => low + at * step),
    x: (at) => {
      const within = Math.max(from, Math.min(to, at));
      return LEFT + ((within - from) / Math.max(1, to - from)) * (width - LEFT - RIGHT);
    },
    y: (value) => top + ((high - value) / (high - low)) * PLOT_HEIGHT,
  };
}

/** The next of 1, 2, 5, 10, 20, … */
function niceStep(rough: number): number {
  if (rough <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5, 10].find((step) => step * power >= rough) ?? 10) * power;
}

/** The line; a value between two gaps is a dot. */
export function pathOf(points: readonly Point[], { x, y }: Pick<Scale, "x" | "y">, steps: boolean): string {
  let path = "";
  let isOpen = false;
  for (const { at, value } of points) {
    if (value === null) isOpen = false;
    if (typeof value !== "number") continue;
    const [left, top] = [x(at).toFixed(1), y(value).toFixed(1)];
    path += isOpen ? (steps ? `H${left}V${top}` : `L${left},${top}`) : `M${left},${top}h0`;
    isOpen = true;
  }
  return path;
}

/** Below this duration both ends could show the same minute, so seconds are shown. */
const SHORT_MS = 600_000;
const PARTS = 6;

/** Times below the axis: of a week each day, otherwise in six parts; on a phone in three. */
export function timesOf(
  { from, to }: Scale,
  isNarrow: boolean,
  slotMs: number,
): readonly (readonly [at: number, label: string])[] {
  const range = to - from;
  const days = range / DAY_MS;
  const parts = isNarrow ? PARTS / 2 : days > 2 && days < 10 ? Math.round(days) : PARTS;
  return Array.from({ length: parts + 1 }, (_, part) => {
    const at = from + (range * part) / parts;
    return [at, clock(at, range, slotMs)] as const;
  });
}

/** Days are counted in UTC. */
function clock(at: number, range: number, slotMs: number): string {
  return range > 2 * DAY_MS ? dayText(at, slotMs === DAY_MS) : clockText(at, range < SHORT_MS);
}
