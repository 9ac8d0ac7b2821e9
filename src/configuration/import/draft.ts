import type { TSchema } from "@sinclair/typebox";
import { stringify } from "yaml";
import { TEXT_BYTES_MAX } from "../../config/sources.ts";
import { notNull } from "../../kernel/data/schema.ts";
import { StartupError } from "../../kernel/errors.ts";
import { fileName, type Kind } from "../kinds.ts";
import { problemOf } from "../read.ts";
import { numbered, Variables } from "../variables.ts";
import { type NoteKind, Notes, type Subject } from "./notes.ts";

/** Lines of the notes of an import: more than a person reads. Further ones are counted. */
export const NOTES_MAX = 1_000;
/** Longest name of an imported resource, in characters: with a number behind it, references accept it. */
const NAME_LENGTH_MAX = 56;

/** The same of an incident, which nothing refers to. */
const TITLE_LENGTH_MAX = 190;

/** Shortest slug of a status page. */
const SLUG_LENGTH_MIN = 3;

/** A secret: the file refers to an environment variable in its place. */
export class Secret {
  /**
   * `value`: as the source has it, or one of the same form where the source does not contain it. It is never printed, and only
   * the file of variables has it.
   */
  constructor(
    readonly value: string,
    readonly isKnown: boolean = true,
  ) {}

  /** A secret that the source does not contain. `form`: a value of its form. */
  static unknown(form: string): Secret {
    return new Secret(form, false);
  }
}

/** An environment variable that the file reads. */
interface Variable {
  readonly name: string;
  /** What it is for. */
  readonly use: string;
  readonly secret: Secret;
}

/** A resource before it is written. */
export interface NewResource {
  readonly section: string;
  /** Wanted name; the resource may get a similar one. */
  readonly name: string;
  /** What notes are about. */
  readonly subject: Subject;
  readonly values: Readonly<Record<string, unknown>>;
}

/** What an import produces: a configuration file and notes of what could not be carried over. */
export class Draft {
  private readonly sections = new Map<string, Map<string, Readonly<Record<string, unknown>>>>();
  /** By section. */
  private readonly named = new Map<string, Map<string, number>>();
  private readonly variableNames = new Variables();
  private readonly variables: Variable[] = [];
  private readonly written = new Notes(NOTES_MAX);

  constructor(private readonly kinds: readonly Kind[]) {}

  /** The notes, each a line: first what is lost, then what has changed, then the variables to set. */
  get notes(): readonly string[] {
    return this.written.lines;
  }

  /** The variables of the file as a `.env` file, which a shell can read too; those that the source does not contain are empty. */
  get environment(): string {
    return this.variables
      .map(({ name, use, secret }) => `# ${use}\n${name}=${secret.isKnown ? quoted(secret.value) : ""}\n`)
      .join("");
  }

  /** How many variables the file reads, and how many of them the source does not contain. */
  get variableCounts(): { readonly all: number; readonly unknown: number } {
    const unknown = this.variables.filter(({ secret }) => !secret.isKnown).length;
    return { all: this.variables.length, unknown };
  }

  /** Notes what a field of an object loses, or that the object has no counterpart. */
  note(subject: Subject, field: string, message: string, kind: NoteKind = "field"): void {
    this.written.add(kind, subject, `${field}: ${message}`);
  }

  /** Notes what is not as it was: `field` and `change` are a sentence, such as `timeout lowered to 30 s`. */
  noteChange(subject: Subject, field: string, change: string): void {
    this.written.add("change", subject, `${field} ${change}`);
  }

  /** Whether a section has a resource with this name. */
  has(section: string, name: string): boolean {
    return this.sections.get(section)?.has(name) === true;
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
  add({ section, name: wanted, subject, values: given }: NewResource): string | null {
    const kind = this.kinds.find((kind) => kind.section === section);
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
        this.note(
          subject,
          field ?? problem.field,
          `${problem.message}: ${section} has no entry for it`,
          "resource",
        );
        return null;
      }
      this.note(subject, field, `${problem.message}: not carried over`);
      delete values[field];
    }
    const unique = this.nameFor(section, wanted);
    if (unique !== wanted) this.noteChange(subject, "name", `is ${unique} in ${section}`);
    const resources = this.sections.get(section) ?? new Map();
    const place = { section, name: unique, subject };
    resources.set(unique, this.withReferences(values, [], place) as Record<string, unknown>);
    this.sections.set(section, resources);
    return unique;
  }

  /** The text of the file. @throws StartupError if it is larger than a configuration file may be. */
  text(): string {
    const order = this.kinds.map(({ section }) => section);
    const sections = [...this.sections].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
    const document = {
      ninefold: 1,
      ...Object.fromEntries(sections.map(([section, resources]) => [section, Object.fromEntries(resources)])),
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
    const found = [...fields.values()].find(({ apiName, isFlattened }) =>
      isFlattened ? first === facts.flattened && apiName === second : apiName === first,
    );
    return found?.name ?? null;
  }

  /** A value with references in place of secrets. */
  private withReferences(value: unknown, path: readonly (string | number)[], place: Place): unknown {
    if (value instanceof Secret) {
      const env = this.variableNames.nameFor(place.section, place.name, path);
      const field = path.join(".");
      this.variables.push({ name: env, use: `${place.subject.label}: ${field}`, secret: value });
      this.note(place.subject, field, `is a secret: set the environment variable ${env} to it`, "variable");
      return { env };
    }
    if (Array.isArray(value))
      return value.map((item, index) =>
        item instanceof Secret ? this.withReferences(item, [...path, index + 1], place) : item,
      );
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        this.withReferences(member, [...path, name], place),
      ]),
    );
  }
}

/** Where a value stands. */
interface Place {
  readonly section: string;
  /** The name of the resource. */
  readonly name: string;
  readonly subject: Subject;
}

/** A value of a `.env` file: as it is, or as a shell quotes it. */
function quoted(value: string): string {
  return /^[\w./:@%+,=-]*$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

/** A value as a request has it: secrets as texts, and members by their names there. */
function requestedValue(schema: TSchema | undefined, value: unknown): unknown {
  if (value instanceof Secret) return value.value;
  if (typeof value !== "object" || value === null) return value;
  const type = Array.isArray(value) ? "array" : "object";
  const typed = schema && notNull(schema).find((member) => member["type"] === type);
  if (Array.isArray(value)) return value.map((item) => requestedValue(typed?.["items"], item));
  const properties = Object.entries<TSchema>(typed?.["properties"] ?? {});
  const names = new Map(properties.map(([name, property]) => [fileName(name, property), name]));
  const entries = Object.entries(value).map(([name, member]) => {
    const apiName = names.get(name) ?? name;
    return [apiName, requestedValue(typed?.["properties"]?.[apiName], member)] as const;
  });
  return Object.fromEntries(entries);
}

function validName(section: string, wanted: string): string {
  // Messages refer to their type by its name.
  if (section === "event_types") return wanted;
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
    const trimmed = slug.endsWith("-") ? slug.slice(0, -1) : slug;
    return trimmed.length < SLUG_LENGTH_MIN ? `page-${trimmed}` : trimmed;
  }
  const line = wanted.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ").trim();
  const lengthMax = section === "incidents" ? TITLE_LENGTH_MAX : NAME_LENGTH_MAX;
  const text = line.slice(0, lengthMax).toWellFormed().trim();
  return text === "" ? "unnamed" : text;
}
