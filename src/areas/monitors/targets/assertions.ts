import {
  compareNumbers,
  isExactNumber,
  isNestedDeeper,
  JSON_LEVELS_MAX,
  parseNearly,
} from "../../../json-text.ts";
import { atJsonPath, readJsonPath } from "../json-path.ts";
import { type Assertions, type JsonOp, readsBody, statusRange } from "../options.ts";
import { type CheckedResponse, textOf } from "./body-text.ts";

/** Longest text of a value that an error shows. */
const SHOWN_LENGTH_MAX = 100;

/** Why a response makes its target down; null if it does not. */
export function failureOf(assertions: Assertions, response: CheckedResponse): string | null {
  const { status } = response;
  const { accept_status: accepted } = assertions;
  if (accepted === null && status >= 400) return `the target responded with ${status}`;
  if (accepted !== null && !accepted.some((range) => isWithin(status, range))) return `status: ${status}`;
  return readsBody(assertions) ? bodyFailure(assertions, response) : null;
}

function isWithin(status: number, range: string): boolean {
  const [from, to] = statusRange(range);
  return from <= status && status <= to;
}

const WHERE = "the first 64 KiB";

function bodyFailure(assertions: Assertions, { headers, body, truncated }: CheckedResponse): string | null {
  const { keyword, keyword_absent: absent, keywords_all: all, keywords_any: any } = assertions;
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") return `body: the Content-Encoding ${cut(encoding)} cannot be decoded`;
  const text = textOf(body, headers["content-type"]);
  if (keyword !== null && !text.includes(keyword)) return `keyword: not found in ${WHERE}`;
  const missing = all?.findIndex((word) => !text.includes(word)) ?? -1;
  if (missing >= 0) return `keywords_all: ${shown(all?.[missing])} was not found in ${WHERE}`;
  if (any !== null && !any.some((word) => text.includes(word)))
    return `keywords_any: none of ${any.length} was found in ${WHERE}`;
  if (absent !== null && text.includes(absent)) return `keyword_absent: found in ${WHERE}`;
  return assertions.json_path === null ? null : jsonFailure(assertions, text, truncated);
}

function jsonFailure(
  { json_path: path, json_op: op, json_value: expected }: Assertions,
  text: string,
  truncated: boolean,
): string | null {
  if (truncated) return "json: the body is longer than 64 KiB";
  if (isNestedDeeper(text, JSON_LEVELS_MAX)) return `json: the body has more than ${JSON_LEVELS_MAX} levels`;
  let body: unknown;
  try {
    body = parseNearly(text);
  } catch {
    return "json: the body is not JSON";
  }
  const found = atJsonPath(body, readJsonPath(path ?? "") ?? []);
  if (found === undefined) return `json: there is no ${path}`;
  const { holds, otherwise } = OPERATORS[op ?? "=="];
  if (holds(found, expected)) return null;
  return `json: ${path} is ${shown(found)}, ${otherwise} ${shown(expected)}`;
}

/** A comparison, and the words between the two values in an error. */
interface Operator {
  readonly holds: (found: unknown, expected: unknown) => boolean;
  readonly otherwise: string;
}

/** `holds`: of the order of the two numbers, which is that of all their digits. */
const ordered =
  (holds: (order: number) => boolean): Operator["holds"] =>
  (found, expected) =>
    (typeof found === "number" || isExactNumber(found)) &&
    typeof expected === "number" &&
    holds(compareNumbers(JSON.stringify(found), String(expected)));

/** A number with more digits than a double holds is equal to the text of its digits, as in filters of messages. */
function isEqual(found: unknown, expected: unknown): boolean {
  return isExactNumber(found) ? found.rawJSON === expected : found === expected;
}

const OPERATORS: Readonly<Record<JsonOp, Operator>> = {
  "==": { holds: isEqual, otherwise: "not" },
  "!=": { holds: (found, expected) => !isEqual(found, expected), otherwise: "not other than" },
  "<": { holds: ordered((order) => order < 0), otherwise: "not below" },
  "<=": { holds: ordered((order) => order <= 0), otherwise: "not at most" },
  ">": { holds: ordered((order) => order > 0), otherwise: "not above" },
  ">=": { holds: ordered((order) => order >= 0), otherwise: "not at least" },
  contains: {
    holds: (found, expected) =>
      Array.isArray(found)
        ? found.some((item) => isEqual(item, expected))
        : typeof found === "string" && typeof expected === "string" && found.includes(expected),
    otherwise: "without",
  },
  exists: { holds: () => true, otherwise: "" },
};

function shown(value: unknown): string {
  return cut(JSON.stringify(value));
}

/** Cuts between characters, not within surrogate pairs. */
function cut(text: string): string {
  if (text.length <= SHOWN_LENGTH_MAX) return text;
  return `${[...text.slice(0, 2 * SHOWN_LENGTH_MAX)].slice(0, SHOWN_LENGTH_MAX).join("")}…`;
}
