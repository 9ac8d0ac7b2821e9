import { useState } from "preact/hooks";
import { formatNumber } from "../core/format.ts";

/** A value at a time in epoch milliseconds; null interrupts the line. */
export interface Point {
  readonly at: number;
  readonly value: number | null;
}

interface LineProps {
  readonly title: string;
  readonly points: readonly Point[];
  readonly unit?: string;
  /** Draws steps: each value holds until the next one. */
  readonly steps?: boolean;
}

const WIDTH = 720;
/** On a phone the chart is drawn smaller, otherwise its labels would be too small to read. */
const NARROW_WIDTH = 360;
const NARROW_SCREEN = "(max-width: 46rem)";
const HEIGHT = 180;
const LEFT = 52;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
/** Most points that are drawn: more would overlap. */
const POINTS_MAX = 500;
const TICKS = 4;
const TABLE_ROWS = 50;

/** A line chart over time with axes, and the same values as a table for screen readers. */
export function LineChart({ title, points: all, unit = "", steps = false }: LineProps) {
  const points = all.slice(-POINTS_MAX);
  const [near, setNear] = useState<Point | null>(null);
  const known = points.filter((point): point is Point & { value: number } => point.value !== null);
  if (known.length < 2)
    return (
      <figure class="line-chart">
        <figcaption>{title}</figcaption>
        <p class="quiet">Not enough data yet.</p>
      </figure>
    );
  const width = matchMedia(NARROW_SCREEN).matches ? NARROW_WIDTH : WIDTH;
  const scale = scaleOf(
    points,
    known.map(({ value }) => value),
    width,
  );
  const pick = (event: PointerEvent & { currentTarget: SVGSVGElement }): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    const nearest = known.reduce((best, one) =>
      Math.abs(scale.x(one.at) - x) < Math.abs(scale.x(best.at) - x) ? one : best,
    );
    setNear(nearest);
  };
  return (
    <figure class="line-chart">
      <figcaption>
        {title}
        <span class="quiet" aria-hidden="true">
          {near?.value === undefined || near.value === null
            ? ""
            : ` · ${formatNumber(near.value)} ${unit} at ${new Date(near.at).toLocaleString("en-GB")}`}
        </span>
      </figcaption>
      <svg
        viewBox={`0 0 ${width} ${HEIGHT}`}
        role="img"
        aria-label={title}
        onPointerMove={pick}
        onPointerLeave={() => setNear(null)}
      >
        {scale.ticks.map((tick) => (
          <g key={tick}>
            <line class="grid" x1={LEFT} x2={width - RIGHT} y1={scale.y(tick)} y2={scale.y(tick)} />
            <text class="axis end" x={LEFT - 8} y={scale.y(tick) + 4}>
              {formatNumber(tick)}
            </text>
          </g>
        ))}
        <text class="axis" x={LEFT} y={HEIGHT - 4}>
          {clock(scale.from, scale.to - scale.from)}
        </text>
        <text class="axis end" x={width - RIGHT} y={HEIGHT - 4}>
          {clock(scale.to, scale.to - scale.from)}
        </text>
        <path
          class="area"
          d={`${pathOf(known, scale, steps)}V${HEIGHT - BOTTOM}H${scale.x(known[0]?.at ?? 0)}Z`}
        />
        <path class="line" d={pathOf(points, scale, steps)} />
        {near === null || near.value === null ? null : (
          <circle cx={scale.x(near.at)} cy={scale.y(near.value)} r="3.5" />
        )}
      </svg>
      <Values title={title} points={known.slice(-TABLE_ROWS)} unit={unit} />
    </figure>
  );
}

function Values({
  title,
  points,
  unit,
}: {
  title: string;
  points: readonly { at: number; value: number }[];
  unit: string;
}) {
  return (
    <div class="unseen">
      <table>
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Value {unit}</th>
          </tr>
        </thead>
        <tbody>
          {points.map(({ at, value }) => (
            <tr key={at}>
              <td>{new Date(at).toISOString()}</td>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Scale {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly number[];
  readonly x: (at: number) => number;
  readonly y: (value: number) => number;
}

function scaleOf(points: readonly Point[], values: readonly number[], width: number): Scale {
  const from = points[0]?.at ?? 0;
  const to = points.at(-1)?.at ?? from;
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  const least = values.reduce((a, b) => Math.min(a, b), 0);
  const step = niceStep((most - least) / TICKS);
  const bottom = Math.floor(least / step) * step;
  const top = Math.max(Math.ceil(most / step) * step, bottom + step);
  const ticks = Array.from({ length: Math.round((top - bottom) / step) + 1 }, (_, at) => bottom + at * step);
  return {
    from,
    to,
    ticks,
    x: (at) => LEFT + ((at - from) / Math.max(1, to - from)) * (width - LEFT - RIGHT),
    y: (value) => TOP + ((top - value) / (top - bottom)) * (HEIGHT - TOP - BOTTOM),
  };
}

/** The next of 1, 2, 5, 10, 20, … */
function niceStep(rough: number): number {
  if (rough <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10) * power;
}

function pathOf(points: readonly Point[], { x, y }: Scale, steps: boolean): string {
  let path = "";
  let isOpen = false;
  for (const { at, value } of points) {
    if (value === null) isOpen = false;
    else {
      const [left, top] = [x(at).toFixed(1), y(value).toFixed(1)];
      path += isOpen ? (steps ? `H${left}V${top}` : `L${left},${top}`) : `M${left},${top}`;
      isOpen = true;
    }
  }
  return path;
}

const DAY_MS = 86_400_000;
/** Below this duration both ends could show the same minute, so seconds are shown. */
const SHORT_MS = 600_000;

function clock(at: number, range: number): string {
  const date = new Date(at);
  return range > 2 * DAY_MS
    ? date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })
    : date.toLocaleTimeString("en-GB", { timeStyle: range < SHORT_MS ? "medium" : "short" });
}
