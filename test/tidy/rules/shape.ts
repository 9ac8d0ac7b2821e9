import type { Node } from "oxc-parser";
import { type Module, type Violation, violationAt, walk } from "./model.ts";

/** Maximum statements of one function, without those of nested functions: a longer one does more than one thing. */
export const STATEMENTS_MAX = 40;

/** Literals are written in one piece: spreading one inside another only saves lines, which is the formatter's work. */
export function checkLiterals(module: Module): Violation[] {
  const found: Violation[] = [];
  walk(module.root, (node, { parent }) => {
    const isSpread = node.type === "SpreadElement" && parent?.type === "ObjectExpression";
    if (!(isSpread || node.type === "JSXSpreadAttribute") || node.argument.type !== "ObjectExpression")
      return;
    found.push(violationAt(module, node.start, "literal-spread", "write the properties in one literal"));
  });
  return found;
}

/** A comment documents what follows it: not another comment, the end of a block, or that of the file. */
export function checkDocComments(module: Module): Violation[] {
  return module.comments
    .filter(({ type, value, end }) => {
      const isDoc = type === "Block" && value.startsWith("*");
      return isDoc && DOCUMENTS_NOTHING.test(module.text.slice(end));
    })
    .map(({ start }) =>
      violationAt(
        module,
        start,
        "doc-comment",
        "it documents nothing; move it to its declaration, or delete it",
      ),
    );
}

const DOCUMENTS_NOTHING = /^\s*(?:\/\*\*|[\])}]|$)/;

/** Two flags in a row are confused at the call, where they are `true, false`: an object names them. */
export function checkFlags(module: Module): Violation[] {
  const found: Violation[] = [];
  walk(module.root, (node) => {
    if (!FUNCTIONS.has(node.type) || !("params" in node) || !Array.isArray(node.params)) return;
    const flags = node.params.map((param) => isFlag(param));
    if (flags.some((flag, at) => flag && flags[at + 1] === true))
      found.push(
        violationAt(module, node.start, "flags-in-a-row", "pass the two booleans as members of an object"),
      );
  });
  return found;
}

function isFlag(param: Node): boolean {
  if (param.type === "TSParameterProperty") return isFlag(param.parameter);
  if (param.type === "AssignmentPattern") {
    const { left, right } = param;
    return (right.type === "Literal" && typeof right.value === "boolean") || isFlag(left);
  }
  return param.type === "Identifier" && param.typeAnnotation?.typeAnnotation.type === "TSBooleanKeyword";
}

/** Names that say nothing of what they hold. */
const VAGUE: ReadonlySet<string> = new Set(["one", "own", "given", "made", "none"]);

/** Variables and parameters of the source are named after what they hold. */
export function checkNames(module: Module): Violation[] {
  if (!module.path.startsWith("src/")) return [];
  const found: Violation[] = [];
  walk(module.root, (node, { parent, key }) => {
    if (node.type !== "Identifier" || !VAGUE.has(node.name) || parent === undefined) return;
    const isVariable = parent.type === "VariableDeclarator" && key === "id";
    const isParameter = FUNCTIONS.has(parent.type) && key === "params";
    if (isVariable || isParameter || DESTRUCTURING.has(parent.type))
      found.push(
        violationAt(module, node.start, "vague-name", `"${node.name}"; name it after what it holds`),
      );
  });
  return found;
}

const DESTRUCTURING: ReadonlySet<string> = new Set(["ArrayPattern", "RestElement", "TSParameterProperty"]);

/** Tests and their fixtures; the harnesses and the rules are programs. */
const TESTS = /^test\/(?!harness\/|tidy\/rules\/)/;

/**
 * Rule 5: a function has a limited number of statements. Its length in lines is the formatter's work. Tests are sequences
 * of steps, which read best from top to bottom.
 */
export function checkShape(module: Module): Violation[] {
  if (TESTS.test(module.path)) return [];
  const found: Violation[] = [];
  const open: { node: Node; statements: number }[] = [];
  const close = (offset: number): void => {
    for (let last = open.at(-1); last !== undefined && last.node.end <= offset; last = open.at(-1)) {
      open.pop();
      if (last.statements > STATEMENTS_MAX) {
        const message = `a function of ${last.statements} statements, ${STATEMENTS_MAX} at most; give its steps names of their own`;
        found.push(violationAt(module, last.node.start, "function-statements", message));
      }
    }
  };
  walk(module.root, (node) => {
    close(node.start);
    const current = open.at(-1);
    if (current !== undefined && isStatement(node)) current.statements += 1;
    if (FUNCTIONS.has(node.type)) open.push({ node, statements: 0 });
  });
  close(Number.POSITIVE_INFINITY);
  return found;
}

const FUNCTIONS: ReadonlySet<string> = new Set([
  "FunctionDeclaration",
  "FunctionExpression",
  "ArrowFunctionExpression",
]);

/** A block is part of a statement and does not count. */
function isStatement({ type }: Node): boolean {
  return (type.endsWith("Statement") && type !== "BlockStatement") || type === "VariableDeclaration";
}
