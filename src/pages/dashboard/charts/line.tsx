import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { axisNumber, formatNumber } from "../core/format.ts";
import { exactTime } from "../core/times.ts";
import {
  LEFT,
  PLOT_HEIGHT,
  type Point,
  pathOf,
  RIGHT,
  type Scale,
  type Span,
  scaleOf,
  timesOf,
} from "./axis.ts";
import { STATE_HEIGHTS } from "./bar.ts";

interface LineProps {
  readonly title: string;
  readonly points: readonly Point[];
  readonly unit?: string;
  /** Draws steps: each value holds until the next one. */
  readonly steps?: boolean;
  /** Period of a point: draws a strip of bars above the line, on the same axis. */
  readonly slotMs?: number;
  readonly spans?: readonly Span[];
  readonly actions?: ComponentChildren;
}

const WIDTH = 720;
/** With a strip: as wide as the page. */
const STRIP_WIDTH = 1080;
/** On a phone the chart is drawn smaller, otherwise its labels would be too small to read. */
const NARROW_WIDTH = 360;
const NARROW_SCREEN = "(max-width: 46rem)";
const STRIP_HEIGHT = 22;
const STRIP_GAP = 10;
const TOP = 8;
const BOTTOM = 22;
/** Most points that are drawn: more would overlap. */
const POINTS_MAX = 500;
/** Width of a marked period that has room for its label. */
const LABEL_WIDTH = 60;

/** A line chart over time with axes. The pointer or the arrow keys show its values one by one. */
export function LineChart(props: LineProps) {
  const { title, points: all, unit = "", steps = false, slotMs = 0, spans = [], actions } = props;
  const points = all.slice(-POINTS_MAX);
  const [near, setNear] = useState<number | null>(null);
  const isNarrow = matchMedia(NARROW_SCREEN).matches;
  const width = isNarrow ? NARROW_WIDTH : slotMs > 0 ? STRIP_WIDTH : WIDTH;
  const top = TOP + (slotMs > 0 ? STRIP_HEIGHT + STRIP_GAP : 0);
  const scale = scaleOf(points, slotMs, { width, top });
  const bottom = top + PLOT_HEIGHT;
  const last = points.length - 1;
  const current = points[near ?? last];
  const text = current === undefined ? "No data" : textOf(current, unit);
  const center = (at: number): number => scale.x(at + slotMs / 2);
  const pick = (event: PointerEvent & { currentTarget: HTMLDivElement }): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    const distance = (at: number): number => Math.abs(center(points[at]?.at ?? 0) - x);
    setNear(points.reduce((best, _, at) => (distance(at) < distance(best) ? at : best), 0));
  };
  const press = (event: KeyboardEvent): void => {
    const at = near ?? last;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    setNear(Math.max(0, Math.min(last, to)));
  };
  return (
    <figure class="line-chart">
      <figcaption>
        <span>
          {title}
          <span class="quiet" aria-hidden="true">
            {near === null ? "" : ` · ${text}`}
          </span>
        </span>
        {actions}
      </figcaption>
      <div
        role="slider"
        tabIndex={0}
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, last)}
        aria-valuenow={near ?? Math.max(0, last)}
        aria-valuetext={text}
        onPointerMove={pick}
        onPointerLeave={() => setNear(null)}
        onKeyDown={press}
        onFocus={() => setNear(near ?? last)}
        onBlur={() => setNear(null)}
      >
        <svg viewBox={`0 0 ${width} ${bottom + BOTTOM}`} aria-hidden="true">
          {spans.map(({ from, to, label }) => (
            <g key={from}>
              <rect
                class="span"
                x={scale.x(from)}
                width={Math.max(1, scale.x(to) - scale.x(from))}
                y={top}
                height={PLOT_HEIGHT}
              />
              {scale.x(to) - scale.x(from) < LABEL_WIDTH ? null : (
                <text class="span-label" x={(scale.x(from) + scale.x(to)) / 2} y={top + 14}>
                  {label}
                </text>
              )}
            </g>
          ))}
          {slotMs === 0 ? null : <Strip points={points} x={scale.x} slotMs={slotMs} />}
          {scale.ticks.map((tick, at) => (
            <g key={tick}>
              <line class="grid" x1={LEFT} x2={width - RIGHT} y1={scale.y(tick)} y2={scale.y(tick)} />
              <text class="axis end" x={LEFT - 8} y={scale.y(tick) + 4}>
                {axisNumber(tick)}
                {at === scale.ticks.length - 1 ? ` ${unit}` : ""}
              </text>
            </g>
          ))}
          {timesOf(scale, isNarrow, slotMs).map(([at, label], index, { length }) => (
            <text
              key={at}
              class={`axis ${index === 0 ? "" : index === length - 1 ? "end" : "middle"}`}
              x={scale.x(at)}
              y={bottom + BOTTOM - 4}
            >
              {label}
            </text>
          ))}
          <path
            class="most"
            d={pathOf(
              points.map(({ at, most }) => ({ at, ...(most === undefined ? {} : { value: most }) })),
              { x: center, y: scale.y },
              steps,
            )}
          />
          <path class="line" d={pathOf(points, { x: center, y: scale.y }, steps)} />
          {near === null || current === undefined ? null : (
            <line class="cursor" x1={center(current.at)} x2={center(current.at)} y1={TOP} y2={bottom} />
          )}
        </svg>
      </div>
    </figure>
  );
}

function textOf({ at, value, label }: Point, unit: string): string {
  if (label !== undefined) return label;
  return `${typeof value === "number" ? `${formatNumber(value)} ${unit}` : "no value"} at ${exactTime(at)}`;
}

function Strip({ points, x, slotMs }: { points: readonly Point[]; x: Scale["x"]; slotMs: number }) {
  return points.map(({ at, tone = "none" }) => {
    const height = STATE_HEIGHTS[tone] * STRIP_HEIGHT;
    const width = (x(at + slotMs) - x(at)) * 0.8;
    return (
      <rect key={at} class={tone} x={x(at)} y={TOP + STRIP_HEIGHT - height} width={width} height={height} />
    );
  });
}
