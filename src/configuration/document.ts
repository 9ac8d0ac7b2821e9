import {
  type Alias,
  Composer,
  CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  type YAMLMap,
} from "yaml";
import { EXACT_NUMBER_PROBLEM, type ExactNumber, isHeldByDouble } from "../json-text.ts";
import { StartupError } from "../kernel/errors.ts";

/** Deepest nesting of a file: the deepest resource, a flag's rule, has 8 levels. */
export const DEPTH_MAX = 64;
/** Values of a file, aliases followed: a file of the largest size has fewer without them. */
const VALUES_MAX = 200_000;
/** Aliases of a file: one for each of the resources that fit into a file of the largest size. */
export const ALIASES_MAX = 10_000;
/** Documents of a file: each is a project, and an account has fewer. */
export const DOCUMENTS_MAX = 1_000;
/** The key of a mapping whose value is merged into it. */
const MERGE_KEY = "<<";

/** A number that is written with another base than 10. */
const BASED = /^[-+]?0[ox]/;
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

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
  readonly value: string | number | boolean | null | ExactNumber;
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
 * Parses YAML 1.2, with merge keys (`<<: *name`), and JSON, which is a part of it.
 * @throws FileError for a mistake, a duplicate key, and a file that is nested too deeply, has too many documents or aliases,
 * or expands to too many values.
 */
export function parseDocuments(file: string, text: string): FileValue[] {
  assertShallow(file, text);
  const lines = new LineCounter();
  const composer = new Composer({
    version: "1.2",
    prettyErrors: false,
    stringKeys: true,
    // The parser compares each key with all others: below, a map finds the duplicates.
    uniqueKeys: false,
  });
  const conversion = new Conversion(file, lines);
  // One after another: the first mistake ends it.
  return Array.from(composer.compose(tokensOf(file, text, lines)), (document) =>
    conversion.convert(document),
  );
}

/** Lexemes that stand for no text of the file. */
const MARKS: readonly (string | null)[] = ["doc-mode", "flow-error-end", "scalar"];

/** The tokens of a file. What has too many of a kind ends here, before anything is built of it. @throws FileError */
function* tokensOf(file: string, text: string, lines: LineCounter): Generator<CST.Token> {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  const counted = {
    documents: { count: 0, max: DOCUMENTS_MAX },
    aliases: { count: 0, max: ALIASES_MAX },
    // A mapping has two lexemes for each of its values.
    values: { count: 0, max: 2 * VALUES_MAX },
  };
  let offset = 0;
  for (const lexeme of new Lexer().lex(text)) {
    const type = CST.tokenType(lexeme);
    const what = COUNTED.get(type);
    if (what !== undefined) {
      const counter = counted[what];
      counter.count += 1;
      if (counter.count > counter.max) {
        const { line, col } = lines.linePos(offset);
        throw new FileError(file, { line, column: col }, `has more than ${counter.max} ${what}`);
      }
    }
    yield* parser.next(lexeme);
    if (!MARKS.includes(type)) offset += lexeme.length;
  }
  yield* parser.end();
}

/** What a lexeme counts as. A value has at least one of these. */
const COUNTED: ReadonlyMap<string | null, "documents" | "aliases" | "values"> = new Map([
  ["doc-start", "documents"],
  ["doc-end", "documents"],
  ["alias", "aliases"],
  ["scalar", "values"],
  ["single-quoted-scalar", "values"],
  ["double-quoted-scalar", "values"],
  ["comma", "values"],
  ["seq-item-ind", "values"],
  ["explicit-key-ind", "values"],
  ["flow-seq-start", "values"],
  ["flow-map-start", "values"],
  ["flow-seq-end", "values"],
  ["flow-map-end", "values"],
  ["anchor", "values"],
  ["tag", "values"],
]);

/** A value with an anchor, and how much it adds where an alias stands for it. */
interface Anchored {
  readonly value: FileValue;
  readonly values: number;
  readonly height: number;
}

/** Converts the nodes of the documents of a file, within the limits. */
class Conversion {
  private values = 0;
  /** Levels of the deepest value that was converted last. */
  private deepest = 0;
  /** By name; null while the value is being converted. A later anchor replaces one of the same name. */
  private anchors = new Map<string, Anchored | null>();

  constructor(
    private readonly file: string,
    private readonly lines: LineCounter,
  ) {}

  convert({ errors, contents }: Document): FileValue {
    const [mistake] = errors;
    if (mistake !== undefined)
      throw new FileError(
        this.file,
        this.placeOf(mistake.pos[0]),
        `is not YAML: ${mistake.message.split("\n", 1)[0]}`,
      );
    this.anchors = new Map();
    return this.value(contents, 1, { line: 1, column: 1 });
  }

  /** `from`: the place of what the node belongs to. */
  private value(node: Node | null, depth: number, from: Place): FileValue {
    const at = node?.range ? this.placeOf(node.range[0]) : from;
    if (isAlias(node)) return this.aliased(node, depth, at).value;
    const anchor = isMap(node) || isSeq(node) || isScalar(node) ? node.anchor : undefined;
    if (anchor === undefined) return this.plain(node, depth, at);
    this.anchors.set(anchor, null);
    const before = { values: this.values, deepest: this.deepest };
    this.deepest = depth;
    const value = this.plain(node, depth, at);
    const height = this.deepest - depth;
    this.anchors.set(anchor, { value, values: this.values - before.values, height });
    this.deepest = Math.max(this.deepest, before.deepest);
    return value;
  }

  private plain(node: Node | null, depth: number, at: Place): FileValue {
    this.add(1, depth, at);
    if (isMap<Node, Node | null>(node)) return this.map(node, depth, at);
    if (isSeq<Node>(node))
      return { kind: "list", at, items: node.items.map((item) => this.value(item, depth + 1, at)) };
    return this.scalar(node, at);
  }

  /** Counts values that are at most so deep. */
  private add(values: number, deepest: number, at: Place): void {
    this.values += values;
    this.deepest = Math.max(this.deepest, deepest);
    if (deepest > DEPTH_MAX) throw this.tooDeep(at);
    if (this.values > VALUES_MAX)
      throw new FileError(this.file, at, `expands to more than ${VALUES_MAX} values`);
  }

  private tooDeep(at: Place): FileError {
    return new FileError(this.file, at, `is nested deeper than ${DEPTH_MAX} levels`);
  }

  private aliased({ source }: Alias, depth: number, at: Place): Anchored {
    const found = this.anchors.get(source);
    if (found === undefined)
      throw new FileError(this.file, at, `there is no anchor &${source} before this alias`);
    // It contains itself.
    if (found === null) throw this.tooDeep(at);
    this.add(found.values, depth + found.height, at);
    return found;
  }

  private map({ items }: YAMLMap<Node, Node | null>, depth: number, at: Place): FileMap {
    const members: Map<string, { at: Place; value: FileValue }> = new Map();
    const merged: FileMap["entries"][] = [];
    for (const { key, value } of items) {
      const keyAt = key.range ? this.placeOf(key.range[0]) : at;
      const name = isScalar(key) ? String(key.value) : "";
      if (members.has(name))
        throw new FileError(this.file, keyAt, `${name} occurs twice: remove one of them`);
      const converted = this.value(value, depth + 1, keyAt);
      members.set(name, { at: keyAt, value: converted });
      if (isScalar(key) && key.type === "PLAIN" && name === MERGE_KEY) {
        members.delete(name);
        merged.push(...this.sources(converted));
      }
    }
    if (merged.length === 0) return { kind: "map", at, entries: members };
    // Its own fields come first, then those of the first source that has them.
    const entries = new Map([...merged.toReversed(), members].flatMap((entry) => [...entry]));
    return { kind: "map", at, entries };
  }

  /** The fields that a merge key adds. */
  private sources(value: FileValue): FileMap["entries"][] {
    const all = value.kind === "list" ? value.items : [value];
    return all.map((node) => {
      if (node.kind === "map") return node.entries;
      throw new FileError(this.file, value.at, "<< must be a mapping or a list of mappings, such as *name");
    });
  }

  private scalar(node: Node | null, at: Place): FileScalar {
    const value: unknown = isScalar(node) ? node.value : null;
    const source = isScalar(node) ? (node.source ?? "") : "";
    const isJson = ["boolean", "number", "string"].includes(typeof value) || value === null;
    if (!isJson) throw new FileError(this.file, at, "is no value of JSON");
    if (typeof value === "number")
      return { kind: "scalar", at, value: this.number(value, source, at), source };
    return { kind: "scalar", at, value: value as FileScalar["value"], source };
  }

  /** A number with all its digits. */
  private number(value: number, source: string, at: Place): number | ExactNumber {
    const isHeld = BASED.test(source) ? Number.isSafeInteger(value) : isHeldByDouble(source);
    if (isHeld && Number.isFinite(value)) return value;
    if (JSON_NUMBER.test(source)) return JSON.rawJSON(source);
    throw new FileError(this.file, at, `${source} ${EXACT_NUMBER_PROBLEM}, in quotes`);
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
