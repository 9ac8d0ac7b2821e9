import type { AuditEntry } from "./schema.ts";

/** Rows scanned for one page, which then ends early with a cursor: some milliseconds. */
export const SCANNED_ROWS_MAX = 5_000;
/** Entries in one export. */
export const EXPORT_ROWS_MAX = 1_000_000;
/** Rows read at a time for an export: a millisecond or two, after which other requests run. */
export const EXPORT_SLICE_ROWS = 500;
/** Bytes of `before` and `after` read at a time for an export, and per page: some milliseconds. One entry can be larger. */
export const STEP_BYTES_MAX = 256 * 1024;

const COLUMNS = [
  "sequence",
  "at",
  "action",
  "summary",
  "actor_type",
  "key_id",
  "key_name",
  "user_id",
  "project_id",
  "target_type",
  "target_id",
  "before",
  "after",
  "truncated",
  "ip",
  "user_agent",
  "request_id",
  "owner_id",
  "person_id",
  "person_email",
  "person_name",
  "scheduled_id",
];

/** The format of an export. */
export type ExportFormat = "jsonl" | "csv";

/** Divides entries into steps of at most {@link STEP_BYTES_MAX} bytes, or of one entry. */
export function* splitIntoSteps<Sized extends { readonly bytes: number }>(
  entries: readonly Sized[],
): Generator<readonly [Sized, ...Sized[]]> {
  let step: [Sized, ...Sized[]] | null = null;
  let bytes = 0;
  for (const entry of entries) {
    bytes += entry.bytes;
    if (step !== null && bytes <= STEP_BYTES_MAX) {
      step.push(entry);
      continue;
    }
    if (step !== null) yield step;
    step = [entry];
    bytes = entry.bytes;
  }
  if (step !== null) yield step;
}

/** The text before the entries. */
export function exportHead(format: ExportFormat): string {
  return format === "csv" ? csvLine(COLUMNS) : "";
}

/** An entry as a line of an export. */
export function exportLine(format: ExportFormat, entry: AuditEntry): string {
  if (format === "jsonl") return `${JSON.stringify(entry)}\n`;
  const { actor, target, before, after, truncated = false } = entry;
  return csvLine([
    entry.sequence,
    entry.at,
    entry.action,
    entry.summary,
    actor.type,
    actor.key_id,
    actor.key_name,
    actor.user_id,
    entry.project_id,
    target.type,
    target.id,
    before && JSON.stringify(before),
    after && JSON.stringify(after),
    String(truncated),
    entry.ip,
    entry.user_agent,
    entry.request_id,
    actor.owner_id,
    actor.person_id ?? null,
    actor.email ?? null,
    actor.name ?? null,
    actor.id ?? null,
  ]);
}

/** RFC 4180. */
function csvLine(cells: readonly (string | null)[]): string {
  return `${cells.map((cell) => csvCell(cell ?? "")).join(",")}\r\n`;
}

/** A cell that a spreadsheet would interpret as a formula gets an apostrophe, so that it is text. */
function csvCell(text: string): string {
  const shown = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}
