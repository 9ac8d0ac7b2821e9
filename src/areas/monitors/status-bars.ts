import type { DayRow } from "./day-store.ts";
import { DAY_MS } from "./days.ts";
import { Markup } from "./markup.ts";
import { uptimeOf } from "./status-view.ts";

const GOOD_PERCENT = 99.9;
const FAIR_PERCENT = 95;

/** How an uptime looks: the class of its bar, the colour of its badge. Null: nothing is known. */
export function lookOf(uptime: number | null): "none" | "good" | "fair" | "bad" {
  if (uptime === null) return "none";
  if (uptime >= GOOD_PERCENT) return "good";
  return uptime >= FAIR_PERCENT ? "fair" : "bad";
}

const SHORT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** Dates that are kept written: thousands of bars are on a large page, of 90 days. */
const DATES_MAX = 400;
const dates = new Map<number, string>();

function dateOf(day: number): string {
  const known = dates.get(day);
  if (known !== undefined) return known;
  if (dates.size >= DATES_MAX) dates.clear();
  const date = SHORT.format(day);
  dates.set(day, date);
  return date;
}

/** A stroke for each day, and what it says. Only numbers and words of ours stand in it: nothing is to be escaped. */
export function barsOf(days: readonly (DayRow | null)[], firstDay: number): Markup {
  let strokes = "";
  let bad = 0;
  for (const [index, row] of days.entries()) {
    const uptime = row === null ? null : uptimeOf([row]);
    const look = lookOf(uptime);
    if (look === "bad" || look === "fair") bad += 1;
    const says = `${dateOf(firstDay + index * DAY_MS)}: ${uptime === null ? "no data" : `${uptime}%`}${notesOf(row)}`;
    strokes += `<path class="${look}" d="M${index}.5 0v9"><title>${says}</title></path>`;
  }
  const failures = bad === 0 ? "no day with failures" : `${bad} ${bad === 1 ? "day" : "days"} with failures`;
  const label = days.every((row) => row === null) ? "no data" : failures;
  return new Markup(
    `<svg class="bars" role="img" aria-label="${days.length} days: ${label}" viewBox="0 0 ${days.length} 9" preserveAspectRatio="none">${strokes}</svg>\n`,
  );
}

/** For how long nothing was counted, in minutes. */
function notesOf(row: DayRow | null): string {
  if (row === null) return "";
  const minutes = (ms: number): number => Math.ceil(ms / 60_000);
  const maintained = row.maintenanceMs > 0 ? `, ${minutes(row.maintenanceMs)} min of maintenance` : "";
  return row.observerMs > 0 ? `${maintained}, not observed for ${minutes(row.observerMs)} min` : maintained;
}
