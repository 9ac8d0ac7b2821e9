import { checkCircles } from "./circles.ts";
import { checkExpressions, checkPatterns } from "./expressions.ts";
import { checkGlobals } from "./globals.ts";
import { checkUnusedExports, type Linked } from "./graph.ts";
import { importsOf } from "./imports.ts";
import { checkLayers } from "./layers.ts";
import { type Module, parseModule, type SourceText, type Violation, violationAt } from "./model.ts";
import { checkDocComments, checkFlags, checkLiterals, checkNames, checkShape } from "./shape.ts";
import { checkSqlText } from "./sql.ts";
import { checkCitations, checkWords } from "./words.ts";

/** Checks a whole tree, given as texts, against every house rule. */
export function checkTree(files: readonly SourceText[]): Violation[] {
  const paths = new Set(files.map(({ path }) => path));
  // All rules of a module follow each other, since they walk it together.
  const tree = files.filter(isTypeScript).map((file) => {
    const module = parseModule(file);
    const linked: Linked = { module, imports: importsOf(module, paths) };
    return { ...linked, violations: checkModule(linked) };
  });
  const found = [
    ...files.flatMap(checkWords),
    ...files.flatMap(checkPatterns),
    ...files.filter(isCode).flatMap(checkCitations),
    ...tree.flatMap(({ violations }) => violations),
    ...checkUnusedExports(tree),
    ...checkCircles(tree),
  ];
  return found.sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
}

/** A violation as one line: the place, the rule, and the fix. */
export function describeViolation({ path, line, rule, message }: Violation): string {
  return `${path}:${line} ${rule} — ${message}`;
}

function checkModule({ module, imports }: Linked): Violation[] {
  return [
    ...syntax(module),
    ...checkLayers(module, imports),
    ...checkGlobals(module),
    ...checkSqlText(module),
    ...checkShape(module),
    ...checkLiterals(module),
    ...checkDocComments(module),
    ...checkFlags(module),
    ...checkNames(module),
    ...checkExpressions(module),
  ];
}

function syntax(module: Module): Violation[] {
  return module.syntaxErrors.map(({ offset, message }) => violationAt(module, offset, "syntax", message));
}

const CODE = /^(src|scripts|codegen|bench|test|migrations)\//;

/** Code by its folder and ending; a script without an ending is code too. */
function isCode({ path }: SourceText): boolean {
  return CODE.test(path) && (/\.(ts|tsx|js|mjs|sql|sh)$/.test(path) || /^scripts\/[^.]+$/.test(path));
}

/** Ambient declarations are omitted: they describe modules, but are not modules. */
function isTypeScript({ path }: SourceText): boolean {
  return CODE.test(path) && /\.tsx?$/.test(path) && !path.endsWith(".d.ts");
}
