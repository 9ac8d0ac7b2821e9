import { type Comment, type Node, parseSync, visitorKeys } from "oxc-parser";

/** One file of the tree, its path relative to the root and written with forward slashes. */
export interface SourceText {
  readonly path: string;
  readonly text: string;
}

/** One violation of a rule. */
export interface Violation {
  readonly path: string;
  readonly line: number;
  readonly rule: string;
  readonly message: string;
}

/** A parsed TypeScript file. */
export interface Module extends SourceText {
  readonly root: Node;
  readonly comments: readonly Comment[];
  readonly syntaxErrors: readonly { readonly offset: number; readonly message: string }[];
  /** The line, counted from 1, of an offset in the text. */
  lineAt(offset: number): number;
}

/** Context of a visited node: the parent, the parent's key for this node, and whether this is type syntax. */
export interface Place {
  readonly parent: Node | undefined;
  readonly key: string;
  readonly inType: boolean;
}

export type Visit = (node: Node, place: Place) => void;

/** Parses one file; syntax errors are in `syntaxErrors`. */
export function parseModule(source: SourceText): Module {
  const parsed = parseSync(source.path, source.text);
  const starts = lineStarts(source.text);
  return {
    ...source,
    root: parsed.program,
    comments: parsed.comments,
    syntaxErrors: parsed.errors.map((error) => ({
      offset: error.labels[0]?.start ?? 0,
      message: error.message,
    })),
    lineAt: (offset) => lineOf(starts, offset),
  };
}

/** Visits every node of a module, parents before children. */
export function walk(root: Node, visit: Visit): void {
  if (visited.root !== root) {
    visited = { root, nodes: [], places: [] };
    descend(root, { parent: undefined, key: "", inType: false }, visited);
  }
  const { nodes, places } = visited;
  for (const [at, node] of nodes.entries()) visit(node, places[at] as Place);
}

/** All nodes of a module in the order of visits, each with its place. */
interface Visited {
  readonly root: Node | null;
  readonly nodes: Node[];
  readonly places: Place[];
}

/** Those of the module that was walked last: every rule walks the same module, one rule after the other. */
let visited: Visited = { root: null, nodes: [], places: [] };

/** A violation at a node of a module. */
export function violationAt(module: Module, offset: number, rule: string, message: string): Violation {
  return { path: module.path, line: module.lineAt(offset), rule, message };
}

function descend(node: Node, place: Place, into: Visited): void {
  into.nodes.push(node);
  into.places.push(place);
  const inType = place.inType || isTypeSyntax(node);
  for (const key of visitorKeys[node.type] ?? []) {
    const value: unknown = Reflect.get(node, key);
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) descend(child, { parent: node, key, inType }, into);
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

/** TypeScript nodes that contain executed code; every other TS node has only types. */
const RUNNING_TS_NODES: ReadonlySet<string> = new Set([
  "TSAsExpression",
  "TSSatisfiesExpression",
  "TSNonNullExpression",
  "TSTypeAssertion",
  "TSInstantiationExpression",
  "TSParameterProperty",
  "TSEnumDeclaration",
  "TSEnumBody",
  "TSEnumMember",
  "TSModuleDeclaration",
  "TSModuleBlock",
  "TSExportAssignment",
]);

function isTypeSyntax(node: Node): boolean {
  return node.type.startsWith("TS") && !RUNNING_TS_NODES.has(node.type);
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function lineOf(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle;
  }
  return low + 1;
}
