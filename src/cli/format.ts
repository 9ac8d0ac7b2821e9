/** What is counted. */
export type Unit = "bytes" | "rows";

const KILO = 1000;
const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"] as const;
const SECOND_MS = 1000;
const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;

/** An amount as people read it: `1.2 GB`, `1,234,567 rows`. */
export function formatAmount(amount: number, unit: Unit): string {
  if (unit === "rows") return `${formatCount(amount)} ${Math.round(amount) === 1 ? "row" : "rows"}`;
  let value = amount;
  let index = 0;
  // Rounding must not lead to 1000 of a unit.
  while (index < BYTE_UNITS.length - 1 && Number(value.toPrecision(3)) >= KILO) {
    value /= KILO;
    index += 1;
  }
  const text = index === 0 || value >= 100 ? String(Math.round(value)) : value.toFixed(value >= 10 ? 0 : 1);
  return `${text} ${BYTE_UNITS[index]}`;
}

/** A whole number with commas between its thousands. */
export function formatCount(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** A duration as people read it: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatDuration(durationMs: number): string {
  if (durationMs < 9_950) return `${(durationMs / SECOND_MS).toFixed(1)} s`;
  const seconds = Math.round(durationMs / SECOND_MS);
  if (seconds < MINUTE_S) return `${seconds} s`;
  if (seconds < HOUR_S) return `${Math.floor(seconds / MINUTE_S)} min ${seconds % MINUTE_S} s`;
  return `${Math.floor(seconds / HOUR_S)} h ${Math.floor((seconds % HOUR_S) / MINUTE_S)} min`;
}
