import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type YAMLMap,
} from "yaml";
import { StartupError } from "../kernel/errors.ts";

/** Deepest nesting of a file: the deepest resource, a flag's rule, has 8 levels. */
export const DEPTH_MAX = 64;
/** Values of a file, aliases followed: a file of the largest size has fewer without them. */
const VALUES_MAX = 200_000;
/** Aliases of a file: each is looked up in the whole document. */
export const ALIASES_MAX = 100;

/** Where something stands in a file, both from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A value of a file with its place. */
export type FileValue = FileMap | FileList | FileScalar;

/** A mapping. */
export interface FileMap {
  readonly kind: "map";
  readonly at: Place;
  readonly entries: ReadonlyMap<string, { readonly at: Place; readonly value: FileValue }>;
}

/** A sequence. */
export interface FileList {
  readonly kind: "list";
  readonly at: Place;
  readonly items: readonly FileValue[];
}

/** Any other value. */
export interface FileScalar {
  readonly kind: "scalar";
  readonly at: Place;
  readonly value: string | number | boolean | null;
  /** As it stands in the file. */
  readonly source: string;
}

/** A mistake in a file: `ninefold.yaml:12:5: …`. */
export class FileError extends StartupError {
  constructor(file: string, { line, column }: Place, message: string) {
    super(`${file}:${line}:${column}: ${message}`);
  }
}

/**
 * Parses YAML 1.2, and JSON, which is a part of it.
 * @throws FileError for a mistake, a duplicate key, and a file that is nested too deeply or expands to too many values.
 */
export function parseDocuments(file: string, text: string): FileValue[] {
  assertShallow(file, text);
  const lines = new LineCounter();
  const options = {
    version: "1.2",
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    // The parser compares each key with all others: below, a map finds the duplicates.
    uniqueKeys: false,
  } as const;
  const documents = [parseAllDocuments(text, options)].flat();
  return documents.map((document) => new Conversion(file, lines, document).convert());
}

/** Converts the nodes of a document, within the limits. */
class Conversion {
  private values = 0;
  private aliases = 0;

  constructor(
    private readonly file: string,
    private readonly lines: LineCounter,
    private readonly document: Document,
  ) {}

  convert(): FileValue {
    const [mistake] = this.document.errors;
    if (mistake !== undefined)
      throw new FileError(
        this.file,
        this.placeOf(mistake.pos[0]),
        `is not YAML: ${mistake.message.split("\n", 1)[0]}`,
      );
    return this.value(this.document.contents, 1, { line: 1, column: 1 });
  }

  /** `from`: the place of what the node belongs to. */
  private value(node: Node | null, depth: number, from: Place): FileValue {
    const at = node?.range ? this.placeOf(node.range[0]) : from;
    this.values += 1;
    if (depth > DEPTH_MAX) throw new FileError(this.file, at, `is nested deeper than ${DEPTH_MAX} levels`);
    if (this.values > VALUES_MAX)
      throw new FileError(this.file, at, `expands to more than ${VALUES_MAX} values`);
    if (isAlias(node)) return this.aliased(node, depth, at);
    if (isMap<Node, Node | null>(node)) return this.map(node, depth, at);
    if (isSeq<Node>(node))
      return { kind: "list", at, items: node.items.map((item) => this.value(item, depth + 1, at)) };
    return this.scalar(node, at);
  }

  private aliased(alias: Alias, depth: number, at: Place): FileValue {
    this.aliases += 1;
    if (this.aliases > ALIASES_MAX)
      throw new FileError(this.file, at, `has more than ${ALIASES_MAX} aliases`);
    return this.value(alias.resolve(this.document) ?? null, depth + 1, at);
  }

  private map({ items }: YAMLMap<Node, Node | null>, depth: number, at: Place): FileMap {
    const entries: Map<string, { at: Place; value: FileValue }> = new Map();
    for (const { key, value } of items) {
      const keyAt = key.range ? this.placeOf(key.range[0]) : at;
      const name = isScalar(key) ? String(key.value) : "";
      if (entries.has(name))
        throw new FileError(this.file, keyAt, `${name} occurs twice: remove one of them`);
      entries.set(name, { at: keyAt, value: this.value(value, depth + 1, keyAt) });
    }
    return { kind: "map", at, entries };
  }

  private scalar(node: Node | null, at: Place): FileScalar {
    const value: unknown = isScalar(node) ? node.value : null;
    const source = isScalar(node) ? (node.source ?? "") : "";
    const isJson = ["boolean", "number", "string"].includes(typeof value) || value === null;
    if (!isJson) throw new FileError(this.file, at, "is no value of JSON");
    return { kind: "scalar", at, value: value as FileScalar["value"], source };
  }

  private placeOf(offset: number): Place {
    const { line, col } = this.lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }
}

/** Brackets nest at most this deep before the parser, which is recursive, sees them. Those in texts count as well. */
const BRACKETS_MAX = 1_000;
/** Spaces at the start of a line: block mappings nest by them. */
const INDENTATION_MAX = 1_000;

/** @throws FileError before the parser would exhaust its stack. */
function assertShallow(file: string, text: string): void {
  let depth = 0;
  let line = 1;
  let start = 0;
  let isIndentation = true;
  let markers = 0;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charCodeAt(at);
    if (sign === 10) {
      line += 1;
      start = at + 1;
      isIndentation = true;
      markers = 0;
      continue;
    }
    if (sign === 0x5b || sign === 0x7b) depth += 1;
    if (sign === 0x5d || sign === 0x7d) depth = Math.max(0, depth - 1);
    // `- - - -` nests as well.
    if (isIndentation && (sign === 0x2d || sign === 0x3f || sign === 0x3a)) markers += 1;
    else if (sign !== 32) isIndentation = false;
    const isTooDeep =
      depth > BRACKETS_MAX || markers > INDENTATION_MAX || (isIndentation && at - start > INDENTATION_MAX);
    if (isTooDeep)
      throw new FileError(
        file,
        { line, column: at - start + 1 },
        `is nested deeper than ${DEPTH_MAX} levels`,
      );
  }
}

/** The plain value, for fields that accept any JSON. */
export function plainOf(value: FileValue): unknown {
  if (value.kind === "scalar") return value.value;
  if (value.kind === "list") return value.items.map(plainOf);
  return Object.fromEntries([...value.entries].map(([name, entry]) => [name, plainOf(entry.value)]));
}
