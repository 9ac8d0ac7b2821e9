import type { BodyField } from "../../../client/generated/bodies.ts";
import { MINUTE_MS } from "../core/format.ts";
import { inUtc } from "../core/times.ts";

/** How a value of a request body is entered as text. */
export interface Kind {
  readonly show: (value: unknown) => string;
  /** Undefined for an empty text. @throws Error for a text that is not a value */
  readonly read: (text: string) => unknown;
  /** Attributes of the input. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** A multi-line field with this many rows. */
  readonly rows?: number;
  readonly mono?: boolean;
  /** Factor and name of the unit in which a number is entered. */
  readonly unit?: readonly [factor: number, name: string];
  readonly hint?: string;
}

const asText = (value: unknown): string => (value === null || value === undefined ? "" : String(value));

export const TEXT: Kind = { show: asText, read: (text) => text.trim() };

function numberIn(factor: number, name: string): Kind {
  return {
    show: (value) => (value === null || value === undefined ? "" : String(Number(value) / factor)),
    read: (text) => Math.round(Number(text) * factor),
    input: { type: "number", step: factor === 1 ? 1 : "any" },
    ...(name === "" ? {} : { unit: [factor, name] as const }),
  };
}

const NUMBER = numberIn(1, "");
export const SECONDS = numberIn(1_000, "seconds");
export const MINUTES = numberIn(60_000, "minutes");
export const MILLISECONDS: Kind = { ...NUMBER, unit: [1, "milliseconds"] };
export const HOURS: Kind = { ...NUMBER, unit: [1, "hours"] };

/** Words separated by commas or spaces. */
export function wordsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "");
}
const joined =
  (by: string) =>
  (value: unknown): string =>
    Array.isArray(value) ? value.join(by) : asText(value);
export const WORDS: Kind = { show: joined(", "), read: wordsOf, hint: "Separated by commas." };
export const LINES: Kind = { show: joined("\n"), read: wordsOf, rows: 2, hint: "One per line." };

/** Texts with blanks in them. */
export const TEXT_LINES: Kind = {
  show: joined("\n"),
  read: (text) => text.split("\n").flatMap((line) => line.trim() || []),
  rows: 3,
  hint: "One per line.",
};

/** A secret is never shown again. */
export const SECRET: Kind = { ...TEXT, show: () => "", input: { type: "password" }, mono: true };

/** @throws Error for a text that is not JSON */
export const JSON_VALUE: Kind = {
  show: (value) => (value === null || value === undefined ? "" : JSON.stringify(value, null, 2)),
  read: (text) => {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
    throw new Error("Enter an object or an array.");
  },
  rows: 4,
  mono: true,
};

/** Headers, one per line. @throws Error for a line that is not a header */
export function headersIn(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      if (colon < 1) throw new Error(`"${line}" is not a header. Use the form Name: value.`);
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
}

const HEADERS: Kind = {
  show: (value) =>
    Object.entries(value ?? {})
      .map(([name, text]) => `${name}: ${text}`)
      .join("\n"),
  read: headersIn,
  input: { placeholder: "X-Shop: 42" },
  rows: 2,
  mono: true,
  hint: "One per line.",
};

/** Input for an empty list of retries; an empty field means the default. */
const NO_RETRIES = "none";

export const RETRIES: Kind = {
  show: (value) => (Array.isArray(value) && value.length === 0 ? NO_RETRIES : joined(", ")(value)),
  read: (text) => wordsOf(text).filter((word) => word !== NO_RETRIES),
  input: { placeholder: "1s, 5s, 25s" },
  hint: `Delays separated by commas; ${NO_RETRIES} for no retries. Leave empty for the default.`,
};

/** A time for a `datetime-local` field, in the time zone that the reader chose. */
export function localTime(value: unknown): string {
  const at = typeof value === "number" ? value : Date.parse(asText(value));
  if (Number.isNaN(at)) return "";
  const zone = inUtc.value ? 0 : new Date(at).getTimezoneOffset() * MINUTE_MS;
  return new Date(at - zone).toISOString().slice(0, "2026-03-10T12:00".length);
}

/** The time of such a field as RFC 3339; empty for no time. */
export function rfcTime(local: string): string {
  const at = Date.parse(inUtc.value && local !== "" ? `${local}Z` : local);
  return Number.isNaN(at) ? "" : new Date(at).toISOString();
}

const TIME: Kind = { show: localTime, read: rfcTime, input: { type: "datetime-local" } };

/** The usual kind of a field. */
export function kindOf(name: string, { type, format }: BodyField): Kind {
  if (type === "integer" || type === "number") return NUMBER;
  if (name.endsWith("headers")) return HEADERS;
  if (type === "object") return JSON_VALUE;
  if (name.endsWith("retry_schedule")) return RETRIES;
  if (type === "array") return WORDS;
  if (format === "date-time" || name.endsWith("_at")) return TIME;
  if (format === "email") return { ...TEXT, input: { type: "email" } };
  return /(^|_)url$/.test(name) ? { ...TEXT, input: { type: "url" } } : TEXT;
}

/** What is wrong with an entered text; empty for a valid one. Browsers check the bounds of numbers and lengths. */
export function problemOf({ read }: Kind, { pattern, items, example }: BodyField, text: string): string {
  if (text.trim() === "") return "";
  let value: unknown;
  try {
    value = read(text);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const hint = example === undefined ? "" : ` Example: ${example}`;
  if (pattern !== undefined && !pattern.test(String(value)))
    return `This value has an unexpected format.${hint}`;
  const isWrong = (item: unknown): boolean => items?.test(String(item)) === false;
  const wrong: unknown = Array.isArray(value) ? value.find(isWrong) : undefined;
  return wrong === undefined ? "" : `"${wrong}" has an unexpected format.${hint}`;
}
