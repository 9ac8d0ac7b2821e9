import type { TSchema } from "@sinclair/typebox";
import { stringify } from "yaml";
import { TEXT_BYTES_MAX } from "../../config/sources.ts";
import { notNull } from "../../kernel/data/schema.ts";
import { StartupError } from "../../kernel/errors.ts";
import { fileName, type Kind } from "../kinds.ts";
import { problemOf } from "../read.ts";

/** Notes of an import: more than a person reads. Further ones are counted. */
export const NOTES_MAX = 1_000;
/** Longest name of an imported resource, in characters: with a number behind it, references accept it. */
const NAME_LENGTH_MAX = 56;

/** A secret: the file refers to an environment variable in its place. */
export class Secret {
  /** `value`: as the source has it, or one of the same form where the source does not tell it. It is never printed. */
  constructor(readonly value: string) {}
}

/** A resource before it is written. */
export interface NewResource {
  readonly section: string;
  /** Wanted name; the resource may get a similar one. */
  readonly name: string;
  /** What notes call it, such as `monitor Shop`. */
  readonly label: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** What an import produces: a configuration file and notes of what could not be carried over. */
export class Draft {
  private readonly sections = new Map<string, Map<string, Readonly<Record<string, unknown>>>>();
  /** By section. */
  private readonly named = new Map<string, Map<string, number>>();
  private readonly variables = new Map<string, number>();
  private readonly lines: string[] = [];
  private omitted = 0;

  constructor(private readonly kinds: readonly Kind[]) {}

  /** The notes, each a line. */
  get notes(): readonly string[] {
    const more = this.omitted === 0 ? [] : [`${this.omitted} more notes are not shown.`];
    return [...this.lines, ...more];
  }

  /** Notes what a field of an object loses. */
  note(label: string, field: string, message: string): void {
    if (this.lines.length < NOTES_MAX) this.lines.push(`${label}: ${field}: ${message}`);
    else this.omitted += 1;
  }

  /** A name that is valid in a section and that no other resource has. */
  nameFor(section: string, wanted: string): string {
    const joint = section === "flags" || section === "status_pages" ? "-" : " ";
    const taken = this.named.get(section) ?? new Map<string, number>();
    this.named.set(section, taken);
    return numbered(taken, validName(section, wanted), joint);
  }

  /**
   * Adds a resource, without the fields that a server would not accept; they are noted. Returns its name; null if it cannot
   * exist without them.
   */
  add({ section, name: wanted, label, values: given }: NewResource): string | null {
    const kind = this.kinds.find((one) => one.section === section);
    if (kind === undefined) throw new Error(`no section ${section}`);
    const name = validName(section, wanted);
    const values = Object.fromEntries(
      Object.entries(given).filter(([, value]) => value !== null && value !== undefined),
    );
    for (;;) {
      const requested = Object.entries(values).map(([field, value]) => [
        field,
        requestedValue(kind.fields.get(field)?.schema, value),
      ]);
      const problem = problemOf(kind, name, Object.fromEntries(requested));
      if (problem === null) break;
      const field = this.fieldOf(kind, problem.pointer);
      if (field === null || values[field] === undefined) {
        this.note(label, field ?? problem.field, `${problem.message}: ${section} has no entry for it`);
        return null;
      }
      this.note(label, field, `${problem.message}: not carried over`);
      delete values[field];
    }
    const own = this.nameFor(section, wanted);
    if (own !== wanted) this.note(label, "name", `is ${own} in ${section}`);
    const resources = this.sections.get(section) ?? new Map();
    resources.set(own, this.written(values, [section, own], label) as Record<string, unknown>);
    this.sections.set(section, resources);
    return own;
  }

  /** The text of the file. @throws StartupError if it is larger than a configuration file may be. */
  text(): string {
    const order = this.kinds.map(({ section }) => section);
    const sections = [...this.sections].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
    const document = {
      ninefold: 1,
      ...Object.fromEntries(sections.map(([section, own]) => [section, Object.fromEntries(own)])),
    };
    const text = stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
    const size = Buffer.byteLength(text);
    if (size <= TEXT_BYTES_MAX) return text;
    throw new StartupError(
      `The configuration has ${size} bytes, and a file at most ${TEXT_BYTES_MAX}. Import it in parts.`,
    );
  }

  private fieldOf({ fields, facts }: Kind, pointer: string): string | null {
    const [first = "", second = ""] = pointer.slice(1).split("/");
    const own = [...fields.values()].find(({ apiName, isFlattened }) =>
      isFlattened ? first === facts.flattened && apiName === second : apiName === first,
    );
    return own?.name ?? null;
  }

  /** A value with references in place of secrets. */
  private written(value: unknown, path: readonly string[], label: string): unknown {
    if (value instanceof Secret) {
      const env = this.variableFor(path);
      const field = path.slice(2).join(".");
      this.note(label, field, `is a secret: set the environment variable ${env} to it`);
      return { env };
    }
    if (Array.isArray(value))
      return value.map((one, index) =>
        one instanceof Secret ? this.written(one, [...path, String(index + 1)], label) : one,
      );
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, this.written(one, [...path, name], label)]),
    );
  }

  private variableFor(path: readonly string[]): string {
    const base = path
      .join("_")
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]+/g, "_");
    return numbered(this.variables, base, "_");
  }
}

/** A name that is not taken: `base`, or `base` with the next free number behind it. `taken` has the last number of each name. */
function numbered(taken: Map<string, number>, base: string, joint: string): string {
  for (;;) {
    const number = (taken.get(base) ?? 0) + 1;
    taken.set(base, number);
    if (number === 1) return base;
    const name = `${base}${joint}${number}`;
    if (taken.has(name)) continue;
    taken.set(name, 1);
    return name;
  }
}

/** A value as a request has it: secrets as texts, and members by their names there. */
function requestedValue(schema: TSchema | undefined, value: unknown): unknown {
  if (value instanceof Secret) return value.value;
  if (typeof value !== "object" || value === null) return value;
  const type = Array.isArray(value) ? "array" : "object";
  const own = schema && notNull(schema).find((one) => one["type"] === type);
  if (Array.isArray(value)) return value.map((one) => requestedValue(own?.["items"], one));
  const properties = Object.entries<TSchema>(own?.["properties"] ?? {});
  const names = new Map(properties.map(([name, one]) => [fileName(name, one), name]));
  const entries = Object.entries(value).map(([name, one]) => {
    const apiName = names.get(name) ?? name;
    return [apiName, requestedValue(own?.["properties"]?.[apiName], one)] as const;
  });
  return Object.fromEntries(entries);
}

function validName(section: string, wanted: string): string {
  if (section === "flags") {
    const key = wanted
      .toLowerCase()
      .replaceAll(/[^a-z0-9_-]+/g, "-")
      .slice(0, NAME_LENGTH_MAX);
    return /^[a-z0-9]/.test(key) && key !== "config" ? key : `flag-${key}`;
  }
  if (section === "status_pages") {
    const words = wanted.toLowerCase().match(/[a-z0-9]+/g) ?? ["page"];
    const slug = words.join("-").slice(0, 40);
    return slug.endsWith("-") ? slug.slice(0, -1) : slug;
  }
  const line = wanted.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ").trim();
  const text = line.slice(0, NAME_LENGTH_MAX).toWellFormed().trim();
  return text === "" ? "unnamed" : text;
}
