import { Markup } from "../../../kernel/data/markup.ts";
import { DAY_MS, HOUR_MS } from "../../../kernel/time/units.ts";
import { uptimeOf } from "../domain.ts";
import type { PageDay } from "../ports.ts";
import { clockText, dayText } from "./dates.ts";

const GOOD_PERCENT = 99.9;
const FAIR_PERCENT = 95;

/** Rates an uptime, for the colour of its badge. `none` without checks. */
export function uptimeRating(uptime: number | null): "none" | "good" | "fair" | "bad" {
  if (uptime === null) return "none";
  if (uptime >= GOOD_PERCENT) return "good";
  return uptime >= FAIR_PERCENT ? "fair" : "bad";
}

/** Shares of a period, in percent, up to which an outage has the shades 1 to 4; a longer one has the fifth. */
const SHADES_UNTIL = [1, 5, 20, 50] as const;

/** Shade of a bar by the share of the outage: 0 for none, 1 for the weakest, 5 for the strongest. */
export function shadeOf(uptime: number): number {
  const share = 100 - uptime;
  if (share <= 0) return 0;
  const found = SHADES_UNTIL.findIndex((until) => share <= until);
  return found < 0 ? SHADES_UNTIL.length + 1 : found + 1;
}

/** Formats the dates of consecutive days, once for all bars of a page. */
export function datesFrom(firstDay: number, days: number): readonly string[] {
  return Array.from({ length: days }, (_, index) => dayText(firstDay + index * DAY_MS));
}

/**
 * Draws a stroke for each day, with its date and uptime as a tooltip. Most days are good: their strokes have no class, since
 * the markup of bars is most of a large page. It contains numbers and fixed words only, so nothing needs escaping.
 */
export function barsOf(days: readonly (PageDay | null)[], dates: readonly string[]): Markup {
  return draw("day", dates, (index) => {
    const row = days[index] ?? null;
    const uptime = row === null ? null : uptimeOf([row]);
    return { uptime, notes: notesOf(row) };
  });
}

/** Formats the starts of consecutive hours, once for all bars of a page. */
export function hoursFrom(firstHour: number, hours: number): readonly string[] {
  return Array.from({ length: hours }, (_, index) => clockText(firstHour + index * HOUR_MS));
}

/** Draws a stroke for each hour of the last day, like {@link barsOf}. */
export function hourBarsOf(uptimes: readonly (number | null)[], hours: readonly string[]): Markup {
  return draw("hour", hours, (index) => ({ uptime: uptimes[index] ?? null, notes: "" }));
}

interface Bar {
  /** Percentage of successful checks; null without checks. */
  readonly uptime: number | null;
  readonly notes: string;
}

/** A bar with data has the full height; one without is short. */
function draw(unit: "day" | "hour", labels: readonly string[], barAt: (index: number) => Bar): Markup {
  let strokes = "";
  let failing = 0;
  let known = 0;
  for (const [index, label] of labels.entries()) {
    const { uptime, notes } = barAt(index);
    const shade = uptime === null ? 0 : shadeOf(uptime);
    if (shade > 0) failing += 1;
    if (uptime !== null) known += 1;
    const tooltip = uptime === null ? "no data" : `${uptime}%${notes}`;
    const path = uptime === null ? `M${index} 7v2` : `M${index} 0v9`;
    const className = uptime === null ? ' class="none"' : shade === 0 ? "" : ` class="s${shade}"`;
    strokes += `<path${className} d="${path}"><title>${label}: ${tooltip}</title></path>`;
  }
  const failures = `${failing === 0 ? "no" : failing} ${unit}${failing < 2 ? "" : "s"} with failures`;
  const summary = `${labels.length} ${unit}s: ${known === 0 ? "no data" : failures}`;
  return new Markup(
    `<svg class="bars ${unit}s" role="img" aria-label="${summary}" viewBox="-.5 0 ${labels.length} 9" preserveAspectRatio="none">${strokes}</svg>\n`,
  );
}

/** Maintenance of the day, and the time for which the server was offline: checks in these times do not count. */
function notesOf(row: PageDay | null): string {
  if (row === null) return "";
  const minutes = (ms: number): number => Math.ceil(ms / 60_000);
  const maintenance = row.maintenanceMs > 0 ? `, ${minutes(row.maintenanceMs)} min of maintenance` : "";
  return row.observerMs > 0 ? `${maintenance}, not observed for ${minutes(row.observerMs)} min` : maintenance;
}
