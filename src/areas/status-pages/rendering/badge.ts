import type { ShownState } from "../../../kernel/data/incident-words.ts";
import { html } from "../../../kernel/data/markup.ts";
import { STATE_LABELS } from "../labels.ts";
import type { BADGE_STYLES, METRICS } from "../schema.ts";
import type { ShownMonitor, Summary } from "../view.ts";
import { uptimeRating } from "./bars.ts";

/** Metric that a badge shows. */
export type BadgeMetric = (typeof METRICS)[number];

type Colour = "green" | "amber" | "red" | "grey" | "blue";

/** A badge before it is drawn. */
export interface Badge {
  readonly label: string;
  readonly message: string;
  readonly colour: Colour;
}

/** Colours with enough contrast to white text, and their names at shields.io. */
const COLOURS: Readonly<Record<Colour, readonly [hex: string, name: string]>> = {
  green: ["#1a7f37", "brightgreen"],
  amber: ["#9a6700", "yellow"],
  red: ["#cf222e", "red"],
  grey: ["#59636e", "lightgrey"],
  blue: ["#0969da", "blue"],
};

const STATE_COLOURS: Readonly<Record<ShownState, Colour>> = {
  up: "green",
  degraded: "amber",
  down: "red",
  maintenance: "blue",
  overdue: "amber",
  paused: "grey",
  unknown: "grey",
};
const RATING_COLOURS = { good: "green", fair: "amber", bad: "red", none: "grey" } as const;

/**
 * Days that are left from which a badge is green, and up to which it is red. A registration takes longer to renew than a
 * certificate, and channels are notified 30 days before.
 */
const DAYS = { cert: { green: 14, red: 3 }, domain: { green: 30, red: 7 } } as const;
/** Maximum number of characters of a name on a badge: longer names are shortened. */
const LABEL_LENGTH_MAX = 40;

/** Monitor and metric of a badge, with the metric's values. */
export interface BadgeInput {
  readonly monitor: ShownMonitor;
  readonly metric: BadgeMetric;
  /** Percentage of successful checks in the metric's period; null without checks. */
  readonly uptime: number | null;
  /** Days until the certificate expires; null if no certificate was seen. */
  readonly certificateDays: number | null;
  /** Days until the registration of the domain ends; null if none was seen. */
  readonly domainDays: number | null;
}

/** Composes the label, message and colour of a badge. */
export function badgeOf({ monitor, metric, uptime, certificateDays, domainDays }: BadgeInput): Badge {
  const { name, state, latencyMs } = monitor;
  const withSuffix = (suffix: string): string => `${shortened(name)} ${suffix}`;
  const unknown = { message: "no data", colour: "grey" } as const;
  if (metric === "status")
    return {
      label: shortened(name),
      message: STATE_LABELS[state].toLowerCase(),
      colour: STATE_COLOURS[state],
    };
  if (metric === "latency") {
    const label = withSuffix("latency");
    return latencyMs === null ? { label, ...unknown } : { label, message: `${latencyMs} ms`, colour: "blue" };
  }
  if (metric === "cert" || metric === "domain") {
    const [label, days] =
      metric === "cert"
        ? [withSuffix("certificate"), certificateDays]
        : [withSuffix("registration"), domainDays];
    if (days === null) return { label, ...unknown };
    return { label, message: daysText(days), colour: daysColour(days, DAYS[metric]) };
  }
  const label = withSuffix(metric.replace("-", " "));
  if (uptime === null) return { label, ...unknown };
  return { label, message: `${uptime}%`, colour: RATING_COLOURS[uptimeRating(uptime)] };
}

/** Composes the badge of a page or a group. `name`: title of the page, or name of the group. */
export function summaryBadge(name: string, { state, label }: Summary): Badge {
  return { label: shortened(name), message: label.toLowerCase(), colour: STATE_COLOURS[state] };
}

function daysText(days: number): string {
  if (days < 0) return "expired";
  return days === 1 ? "1 day" : `${days} days`;
}

function daysColour(days: number, { green, red }: (typeof DAYS)[keyof typeof DAYS]): Colour {
  if (days >= green) return "green";
  return days > red ? "amber" : "red";
}

function shortened(name: string): string {
  const characters = [...name];
  return characters.length <= LABEL_LENGTH_MAX
    ? name
    : `${characters.slice(0, LABEL_LENGTH_MAX - 1).join("")}…`;
}

/** Renders a badge as JSON for shields.io's endpoint badge. */
export function badgeJson({ label, message, colour }: Badge): string {
  const isError = message === "no data" ? { isError: true } : {};
  return JSON.stringify({ schemaVersion: 1, label, message, color: COLOURS[colour][1], ...isError });
}

/** Style of a badge's image. */
export type BadgeStyle = (typeof BADGE_STYLES)[number];

/** Sizes in pixels. `character`: average width of a character; `padding`: of each part, both ends together. */
const STYLES = {
  flat: { height: 20, radius: 3, baseline: 14, font: 11, character: 6.8, padding: 12, weight: 400 },
  "flat-square": { height: 20, radius: 0, baseline: 14, font: 11, character: 6.8, padding: 12, weight: 400 },
  "for-the-badge": {
    height: 28,
    radius: 0,
    baseline: 18,
    font: 10,
    character: 8.6,
    padding: 24,
    weight: 700,
  },
} as const satisfies Record<BadgeStyle, object>;

/** Renders a badge as SVG. `textLength` fits the texts into their parts, whatever font the client has. */
export function badgeSvg({ label, message, colour }: Badge, style: BadgeStyle = "flat"): string {
  const { height, radius, baseline, font, character, padding, weight } = STYLES[style];
  const shown = (text: string): string => (style === "for-the-badge" ? text.toUpperCase() : text);
  const widthOf = (text: string): number => Math.round([...text].length * character) + padding;
  const [left, right] = [widthOf(shown(label)), widthOf(shown(message))];
  const part = (text: string, from: number, width: number) =>
    html`<text x="${from + width / 2}" y="${baseline}" textLength="${width - padding}" lengthAdjust="spacingAndGlyphs">${shown(text)}</text>`;
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="${height}" viewBox="0 0 ${left + right} ${height}" role="img" aria-label="${label}: ${message}">
<title>${label}: ${message}</title>
<clipPath id="r"><rect width="${left + right}" height="${height}" rx="${radius}"/></clipPath>
<g clip-path="url(#r)"><rect width="${left}" height="${height}" fill="#24292f"/><rect x="${left}" width="${right}" height="${height}" fill="${COLOURS[colour][0]}"/></g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="${font}"${weight === 400 ? null : html` font-weight="${weight}"`}>${part(label, 0, left)}${part(message, left, right)}</g>
</svg>
`.text;
}
