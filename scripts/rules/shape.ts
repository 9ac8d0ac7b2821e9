import type { Node } from "oxc-parser";
import { type Module, type Place, type SourceText, type Violation, violationAt, walk } from "./model.ts";
import { BROWSER, inZone } from "./zones.ts";

export const MAX_FILE_LINES = 400;
export const MAX_FUNCTION_LINES = 70;
/** Of the console: a page that needs more shows more than one thing. */
export const MAX_PAGE_LINES = 250;

/** What is written by a script is read by name, not from end to end. */
const GENERATED = "src/client/generated/";

/** Rule 5 for any code file, whatever its language: its length. */
export function checkFileLength(source: SourceText): Violation[] {
  const lines = source.text.split("\n").length - (source.text.endsWith("\n") ? 1 : 0);
  const most = inZone(source.path, BROWSER) ? MAX_PAGE_LINES : MAX_FILE_LINES;
  if (lines <= most || source.path.startsWith(GENERATED)) return [];
  const message = `${lines} lines, ${most} at most; split the file by what its parts know`;
  return [{ path: source.path, line: most + 1, rule: "file-length", message }];
}

/** Rule 5 for TypeScript: function length. */
export function checkShape(module: Module): Violation[] {
  const found: Violation[] = [];
  walk(module.root, (node, place) => {
    const finding = tooLong(module, node, place);
    if (finding) found.push(violationAt(module, node.start, ...finding));
  });
  return found;
}

type Finding = readonly [rule: string, message: string];

const FUNCTIONS: ReadonlySet<string> = new Set([
  "FunctionDeclaration",
  "FunctionExpression",
  "ArrowFunctionExpression",
]);

function tooLong(module: Module, node: Node, place: Place): Finding | undefined {
  if (!FUNCTIONS.has(node.type)) return undefined;
  const lines = module.lineAt(node.end) - module.lineAt(node.start) + 1;
  if (lines <= MAX_FUNCTION_LINES || isTestBlock(module.path, place.parent)) return undefined;
  return [
    "function-length",
    `a function of ${lines} lines, ${MAX_FUNCTION_LINES} at most; give its steps names of their own`,
  ];
}

const TEST_BLOCKS: ReadonlySet<string> = new Set([
  "describe",
  "it",
  "test",
  "beforeAll",
  "beforeEach",
  "afterAll",
  "afterEach",
]);

/** True for the callback of `describe(…)`, `it(…)`, `test.each(…)(…)` and the like. */
function isTestBlock(path: string, parent: Node | undefined): boolean {
  if (!path.startsWith("test/") || parent?.type !== "CallExpression") return false;
  let callee: Node = parent.callee;
  for (;;) {
    if (callee.type === "CallExpression") callee = callee.callee;
    else if (callee.type === "MemberExpression") callee = callee.object;
    else return callee.type === "Identifier" && TEST_BLOCKS.has(callee.name);
  }
}
