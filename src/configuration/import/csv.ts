import { StartupError } from "../../kernel/errors.ts";

/** Columns of a table: some times as many as exports have. */
const COLUMNS_MAX = 200;

/**
 * Reads comma-separated values as RFC 4180 has them; lines may end with LF alone, and a byte order mark is ignored. Empty lines are
 * left out. @throws StartupError naming the line, for a quoted value that does not end
 */
export function parseCsv(text: string, what: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  let line = 1;
  while (at < text.length) {
    const { value, end, lines } = text[at] === '"' ? quotedAt(text, at, what, line) : plainAt(text, at);
    line += lines;
    row.push(value);
    if (row.length > COLUMNS_MAX)
      throw new StartupError(`${what}: line ${line} has more than ${COLUMNS_MAX} values.`);
    at = end;
    if (text[at] === ",") {
      at += 1;
      if (at === text.length) row.push("");
      continue;
    }
    if (text[at] === "\r") at += 1;
    if (text[at] === "\n") at += 1;
    line += 1;
    if (row.some((cell) => cell.trim() !== "")) rows.push(row);
    row = [];
  }
  if (row.some((cell) => cell.trim() !== "")) rows.push(row);
  return rows;
}

interface Cell {
  readonly value: string;
  /** Where the comma or the end of the line is. */
  readonly end: number;
  /** Line breaks within the value. */
  readonly lines: number;
}

function plainAt(text: string, start: number): Cell {
  let end = start;
  while (end < text.length && text[end] !== "," && text[end] !== "\n" && text[end] !== "\r") end += 1;
  return { value: text.slice(start, end), end, lines: 0 };
}

function quotedAt(text: string, start: number, what: string, line: number): Cell {
  const parts: string[] = [];
  let from = start + 1;
  for (;;) {
    const quote = text.indexOf('"', from);
    if (quote < 0) throw new StartupError(`${what}: the quoted value in line ${line} does not end.`);
    parts.push(text.slice(from, quote));
    if (text[quote + 1] !== '"') {
      const value = parts.join("");
      const rest = plainAt(text, quote + 1);
      return { value: value + rest.value.trimEnd(), end: rest.end, lines: value.split("\n").length - 1 };
    }
    parts.push('"');
    from = quote + 2;
  }
}

/** The rows below the first one as objects, by the names in it: in lower case, with `_` for spaces. */
export function recordsOf([head = [], ...rows]: readonly string[][]): Readonly<Record<string, string>>[] {
  const names = head.map(columnName);
  return rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index] ?? ""])));
}

/** The name of a column: `Started at` is `started_at`. */
export function columnName(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_");
}
