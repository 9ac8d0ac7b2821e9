import type { Node } from "oxc-parser";
import { isSafePattern } from "redos-detector";
import { type Module, type SourceText, type Violation, violationAt, walk } from "./model.ts";

/** Maximum number of paths on which one text can match: more of them cost a constant factor that is no longer small. */
const WAYS_MAX = 20;
/**
 * Maximum steps of the search for such paths: linear expressions need far fewer, and no other one may slow tidy down.
 */
const STEPS_MAX = 5_000;
/** The generated file that contains the patterns of all schemas. */
const API_DOCUMENT = "test/golden/openapi.json";

const RULE = "linear-expression";
const CURE = "look at the text by index, or anchor the expression with ^ and let no two parts match the same";

/**
 * The time of every regular expression in the server grows linearly with the text's length: texts come from untrusted
 * clients, and a single expression of quadratic time would block all requests.
 */
export function checkExpressions(module: Module): Violation[] {
  if (!module.path.startsWith("src/")) return [];
  const found: Violation[] = [];
  walk(module.root, (node) => {
    const trouble = troubleOf(node);
    if (trouble !== null) found.push(violationAt(module, node.start, RULE, trouble));
  });
  return found;
}

/** The same for the patterns that the API's schemas hold. */
export function checkPatterns({ path, text }: SourceText): Violation[] {
  if (path !== API_DOCUMENT) return [];
  return text.split("\n").flatMap((content, index) => {
    const [, json] = /^\s*"pattern": ("(?:[^"\\]|\\.)*"),?$/.exec(content) ?? [];
    const trouble = json === undefined ? null : troubleWith(JSON.parse(json), "");
    return trouble === null ? [] : [{ path, line: index + 1, rule: RULE, message: trouble }];
  });
}

function troubleOf(node: Node): string | null {
  if (node.type === "Literal" && "regex" in node) return troubleWith(node.regex.pattern, node.regex.flags);
  const made = node.type === "NewExpression" || node.type === "CallExpression";
  if (!made || node.callee.type !== "Identifier" || node.callee.name !== "RegExp") return null;
  return "an expression that is put together cannot be shown to be linear; write it as a literal";
}

const known = new Map<string, string | null>();

function troubleWith(pattern: string, flags: string): string | null {
  const key = `/${pattern}/${flags}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  const trouble = judge(pattern, flags);
  known.set(key, trouble);
  return trouble;
}

function judge(pattern: string, flags: string): string | null {
  // Nothing is repeated or optional: each position of the text is visited a fixed number of times.
  if (!/[*+?{]/.test(pattern)) return null;
  if (/\(\?<?[=!]/.test(pattern)) return `looks around, which cannot be shown to be linear; ${CURE}`;
  if (/[mv]/.test(flags)) return `has a flag (m, v) with which it cannot be shown to be linear; ${CURE}`;
  const { safe } = isSafePattern(pattern, {
    maxScore: WAYS_MAX,
    maxSteps: STEPS_MAX,
    caseInsensitive: flags.includes("i"),
    unicode: flags.includes("u"),
    dotAll: flags.includes("s"),
  });
  return safe ? null : `may take more than linear time; ${CURE}`;
}
