import type { DayRow } from "../history/day-store.ts";
import { DAY_MS } from "../history/days.ts";
import { Markup } from "../incidents/markup.ts";
import { dayText } from "./dates.ts";
import { percentOf } from "./view.ts";

const GOOD_PERCENT = 99.9;
const FAIR_PERCENT = 95;

/** Rates an uptime: the class of its bar, and the colour of its badge. `none` without checks. */
export function uptimeRating(uptime: number | null): "none" | "good" | "fair" | "bad" {
  if (uptime === null) return "none";
  if (uptime >= GOOD_PERCENT) return "good";
  return uptime >= FAIR_PERCENT ? "fair" : "bad";
}

/** Formats the dates of consecutive days, once for all bars of a page. */
export function datesFrom(firstDay: number, days: number): readonly string[] {
  return Array.from({ length: days }, (_, index) => dayText(firstDay + index * DAY_MS));
}

/**
 * Draws a stroke for each day, with its date and uptime as a tooltip. Most days are good: their strokes have no class, since
 * the markup of bars is most of a large page. It contains numbers and fixed words only, so nothing needs escaping.
 */
export function barsOf(days: readonly (DayRow | null)[], dates: readonly string[]): Markup {
  let strokes = "";
  let failing = 0;
  for (const [index, row] of days.entries()) {
    const uptime = row === null ? null : percentOf(row.checks, row.up);
    const rating = uptimeRating(uptime);
    if (rating === "bad" || rating === "fair") failing += 1;
    const tooltip = uptime === null ? "no data" : `${uptime}%${notesOf(row)}`;
    const className = rating === "good" ? "" : ` class="${rating}"`;
    strokes += `<path${className} d="M${index} 0v9"><title>${dates[index]}: ${tooltip}</title></path>`;
  }
  const failures = `${failing === 0 ? "no" : failing} ${failing < 2 ? "day" : "days"} with failures`;
  const label = days.every((row) => row === null) ? "no data" : failures;
  return new Markup(
    `<svg class="bars" role="img" aria-label="${days.length} days: ${label}" viewBox="-.5 0 ${days.length} 9" preserveAspectRatio="none">${strokes}</svg>\n`,
  );
}

/** Maintenance of the day, and the time for which the server was offline: checks in these times do not count. */
function notesOf(row: DayRow | null): string {
  if (row === null) return "";
  const minutes = (ms: number): number => Math.ceil(ms / 60_000);
  const maintenance = row.maintenanceMs > 0 ? `, ${minutes(row.maintenanceMs)} min of maintenance` : "";
  return row.observerMs > 0 ? `${maintenance}, not observed for ${minutes(row.observerMs)} min` : maintenance;
}
