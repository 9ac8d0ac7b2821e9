import { isNestedDeeper } from "../../json-text.ts";
import { errorText, StartupError } from "../../kernel/errors.ts";
import type { Draft } from "./draft.ts";
import type { NoteKind, Subject } from "./notes.ts";

/** Largest input: exports of thousands of objects have some megabytes. */
export const INPUT_BYTES_MAX = 16 * 1024 * 1024;
/** Deepest nesting of an input: targeting of flags is the deepest that occurs. */
export const INPUT_LEVELS_MAX = 64;
/** Longest name that a note shows. */
const SHOWN_LENGTH_MAX = 80;

/** How an import treats what only some products have. */
export interface ImportOptions {
  /** Whether heartbeats keep the ids and tokens of their ping URLs. */
  readonly keepsIds: boolean;
}

/** New ping URLs. */
export const IMPORT_DEFAULTS: ImportOptions = { keepsIds: false };

/** Parses JSON of others, by another function if that is given, with or without a byte order mark. @throws StartupError if it is too large, too deep or no JSON. */
export function parseJson(
  text: string,
  what: string,
  parse: (json: string) => unknown = JSON.parse,
): unknown {
  if (Buffer.byteLength(text) > INPUT_BYTES_MAX)
    throw new StartupError(`${what} is larger than ${INPUT_BYTES_MAX} bytes.`);
  if (isNestedDeeper(text, INPUT_LEVELS_MAX))
    throw new StartupError(`${what} is nested deeper than ${INPUT_LEVELS_MAX} levels.`);
  try {
    return parse(text.startsWith("\uFEFF") ? text.slice(1) : text);
  } catch (error) {
    throw new StartupError(`${what} is not JSON (${errorText(error)}).`);
  }
}

/** Whether a file is JSON and not a table: an object or a list, with or without a byte order mark. */
export function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

/** Whether a value is an object of JSON. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A text for a message, without its end if it is long. */
export function shown(text: string): string {
  return text.length <= SHOWN_LENGTH_MAX ? text : `${text.slice(0, SHOWN_LENGTH_MAX).toWellFormed()}…`;
}

/**
 * An object of another product. Fields that were neither read nor ignored are noted by {@link rest}, so that nothing is lost
 * without a word.
 */
export class SourceObject implements Subject {
  /** What messages call it. */
  label: string;
  private readonly fields: ReadonlyMap<string, unknown>;
  private readonly seen = new Set<string>();

  /** `noun`: what it is, where the label has its name or number, too. @throws StartupError if the value is not an object. */
  constructor(
    readonly draft: Draft,
    label: string,
    value: unknown,
    readonly noun: string = label,
  ) {
    if (!isObject(value)) throw new StartupError(`${label} must be an object.`);
    this.label = label;
    this.fields = new Map(Object.entries(value));
  }

  /** The names of all fields. */
  get names(): readonly string[] {
    return [...this.fields.keys()];
  }

  /** A field that may be anything; null if it is missing. */
  any(name: string): unknown {
    this.seen.add(name);
    return this.fields.get(name) ?? null;
  }

  /** A text; null if it is missing or empty. @throws StartupError for another type. */
  text(name: string): string | null {
    const value = this.any(name);
    if (value === null || value === "") return null;
    if (typeof value === "string") return value;
    throw this.mistyped(name, "a text");
  }

  /** A number; null if it is missing. Texts of digits count, as the forms of some products store them. @throws StartupError */
  number(name: string): number | null {
    const value = this.any(name);
    if (value === null || value === "") return null;
    const number = typeof value === "string" && value.length <= 20 ? Number(value) : value;
    if (typeof number === "number" && Number.isFinite(number)) return number;
    throw this.mistyped(name, "a number");
  }

  /** A switch; false if it is missing. SQLite has 0 and 1. @throws StartupError */
  flag(name: string): boolean {
    const value = this.any(name);
    if (value === null || value === "") return false;
    if (typeof value === "boolean") return value;
    if (value === 0 || value === 1) return value === 1;
    throw this.mistyped(name, "true or false");
  }

  /** A list; empty if it is missing. @throws StartupError */
  list(name: string): readonly unknown[] {
    const value = this.any(name) ?? [];
    if (Array.isArray(value)) return value;
    throw this.mistyped(name, "a list");
  }

  /** A list of texts; empty if it is missing. @throws StartupError */
  texts(name: string): readonly string[] {
    const list = this.list(name);
    if (list.every((item) => typeof item === "string")) return list as readonly string[];
    throw this.mistyped(name, "a list of texts");
  }

  /** The first items of a list that is too long for a field, with a note of the others. */
  limited<T>(field: string, items: readonly T[], itemsMax: number): readonly T[] {
    if (items.length > itemsMax) this.note(field, `only the first ${itemsMax} are carried over`);
    return items.slice(0, itemsMax);
  }

  /** Fields that are state of the other product, or that have no effect on this object. */
  ignore(...names: readonly string[]): void {
    for (const name of names) this.seen.add(name);
  }

  /** Notes that a field of this object is not carried over; `kind`: or what else. */
  note(field: string, message: string, kind?: NoteKind): void {
    this.draft.note(this, shown(field), message, kind);
  }

  /** Notes that this object is not carried over, and which field is the reason. */
  noteLoss(field: string, message: string): void {
    this.note(field, message, "resource");
  }

  /** Notes the path of a ping URL that the resource keeps. */
  noteAddress(path: string): void {
    this.note("ping_url", `keeps its path ${path}: change the host only`, "address");
  }

  /** Notes what is not as it was: `field` and `change` are a sentence. */
  noteChange(field: string, change: string): void {
    this.draft.noteChange(this, shown(field), change);
  }

  /** Notes all fields that have a value and were not read. `defaults`: values without a meaning of their own. */
  rest(defaults: Readonly<Record<string, readonly unknown[]>> = {}): void {
    for (const [name, value] of this.fields) {
      if (this.seen.has(name) || isEmpty(value)) continue;
      if (Object.hasOwn(defaults, name) && defaults[name]?.includes(value) === true) continue;
      this.note(name, "not carried over");
    }
  }

  private mistyped(name: string, expected: string): StartupError {
    return new StartupError(`${this.label}: ${shown(name)} must be ${expected}.`);
  }
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === "" || value === false || value === 0) return true;
  if (typeof value !== "object") return false;
  return Object.keys(value as object).length === 0;
}
