import { html } from "../incidents/markup.ts";
import { uptimeRating } from "./bars.ts";
import { STATE_LABELS } from "./html.ts";
import type { METRICS } from "./schema.ts";
import type { ShownMonitor, ShownState } from "./view.ts";

/** What a badge says. */
export type BadgeMetric = (typeof METRICS)[number];

type Colour = "green" | "amber" | "red" | "grey" | "blue";

/** A badge before it is drawn. */
export interface Badge {
  readonly label: string;
  readonly message: string;
  readonly colour: Colour;
}

/** White text is read well on each of them; the second is shields.io's name. */
const COLOURS: Readonly<Record<Colour, readonly [hex: string, name: string]>> = {
  green: ["#1a7f37", "brightgreen"],
  amber: ["#9a6700", "yellow"],
  red: ["#cf222e", "red"],
  grey: ["#59636e", "lightgrey"],
  blue: ["#0969da", "blue"],
};

const STATES: Readonly<Record<ShownState, Colour>> = {
  up: "green",
  degraded: "amber",
  down: "red",
  maintenance: "blue",
  paused: "grey",
  unknown: "grey",
};
const LOOKS = { good: "green", fair: "amber", bad: "red", none: "grey" } as const;

/** Days before its end from which a certificate is no longer good, and from which it is bad. */
const CERTIFICATE_DAYS = 14;
const CERTIFICATE_DAYS_BAD = 3;
/** Characters of a name that a badge has room for. */
const LABEL_LENGTH_MAX = 40;

/** What a badge is about. */
export interface BadgeInput {
  readonly monitor: ShownMonitor;
  readonly metric: BadgeMetric;
  /** Percent in the metric's time. */
  readonly uptime: number | null;
  /** Days until the certificate ends; null where none is known. */
  readonly certificateDays: number | null;
}

/** What a badge says of a monitor. */
export function badgeOf({ monitor, metric, uptime, certificateDays }: BadgeInput): Badge {
  const { name, state, latencyMs } = monitor;
  const named = (what: string): string => `${cut(name)}${what === "" ? "" : ` ${what}`}`;
  const unknown = { message: "no data", colour: "grey" } as const;
  if (metric === "status")
    return { label: named(""), message: STATE_LABELS[state].toLowerCase(), colour: STATES[state] };
  if (metric === "latency") {
    const label = named("latency");
    return latencyMs === null ? { label, ...unknown } : { label, message: `${latencyMs} ms`, colour: "blue" };
  }
  if (metric === "cert") {
    const label = named("certificate");
    if (certificateDays === null) return { label, ...unknown };
    return { label, message: daysText(certificateDays), colour: certificateColour(certificateDays) };
  }
  const label = named(metric.replace("-", " "));
  if (uptime === null) return { label, ...unknown };
  return { label, message: `${uptime}%`, colour: LOOKS[uptimeRating(uptime)] };
}

function daysText(days: number): string {
  if (days < 0) return "expired";
  return days === 1 ? "1 day" : `${days} days`;
}

function certificateColour(days: number): Colour {
  if (days >= CERTIFICATE_DAYS) return "green";
  return days > CERTIFICATE_DAYS_BAD ? "amber" : "red";
}

function cut(name: string): string {
  const characters = [...name];
  return characters.length <= LABEL_LENGTH_MAX
    ? name
    : `${characters.slice(0, LABEL_LENGTH_MAX - 1).join("")}…`;
}

/** As shields.io's endpoint badge wants it. */
export function badgeJson({ label, message, colour }: Badge): string {
  const isError = message === "no data" ? { isError: true } : {};
  return JSON.stringify({ schemaVersion: 1, label, message, color: COLOURS[colour][1], ...isError });
}

/** Pixels of a character on average in the badge's font and size, and of the room at the ends of a part. */
const CHARACTER_PX = 6.8;
const PADDING_PX = 12;

/** A flat badge. Texts have the length that they are given room for, whatever the font. */
export function badgeSvg({ label, message, colour }: Badge): string {
  const widthOf = (text: string): number => Math.round([...text].length * CHARACTER_PX) + PADDING_PX;
  const [left, right] = [widthOf(label), widthOf(message)];
  const part = (text: string, from: number, width: number) =>
    html`<text x="${from + width / 2}" y="14" textLength="${width - PADDING_PX}" lengthAdjust="spacingAndGlyphs">${text}</text>`;
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" viewBox="0 0 ${left + right} 20" role="img" aria-label="${label}: ${message}">
<title>${label}: ${message}</title>
<clipPath id="r"><rect width="${left + right}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="${left}" height="20" fill="#24292f"/><rect x="${left}" width="${right}" height="20" fill="${COLOURS[colour][0]}"/></g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">${part(label, 0, left)}${part(message, left, right)}</g>
</svg>
`.text;
}
