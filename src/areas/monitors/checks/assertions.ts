import { isNestedDeeper, JSON_LEVELS_MAX } from "../../../json-text.ts";
import type { ResponseHeaders } from "../../../kernel/outbound/response-reader.ts";
import { type Assertions, type JsonOp, readsBody, statusRange } from "../options.ts";
import { atJsonPath, readJsonPath } from "./json-path.ts";

/** Longest text of a value that an error shows. */
const SHOWN_LENGTH_MAX = 100;

/** What assertions look at. */
export interface CheckedResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Uint8Array;
  readonly truncated: boolean;
}

/** Why an answer makes its target down; null when it does not. */
export function failureOf(assertions: Assertions, response: CheckedResponse): string | null {
  const { status } = response;
  const { accept_status: accepted } = assertions;
  if (accepted === null && status >= 400) return `the target answered ${status}`;
  if (accepted !== null && !accepted.some((range) => isWithin(status, range))) return `status: ${status}`;
  return readsBody(assertions) ? bodyFailure(assertions, response) : null;
}

function isWithin(status: number, range: string): boolean {
  const [from, to] = statusRange(range);
  return from <= status && status <= to;
}

const WHERE = "the first 64 KiB";

function bodyFailure(assertions: Assertions, { headers, body, truncated }: CheckedResponse): string | null {
  const { keyword, keyword_absent: absent } = assertions;
  const encoding = headers["content-encoding"] ?? "identity";
  // It was asked for as it is. Words are not looked for in what is packed.
  if (encoding !== "identity") return `body: it came packed as ${cut(encoding)}`;
  const text = new TextDecoder().decode(body);
  if (keyword !== null && !text.includes(keyword)) return `keyword: not found in ${WHERE}`;
  if (absent !== null && text.includes(absent)) return `keyword_absent: found in ${WHERE}`;
  return assertions.json_path === null ? null : jsonFailure(assertions, text, truncated);
}

function jsonFailure(
  { json_path: path, json_op: op, json_value: wanted }: Assertions,
  text: string,
  truncated: boolean,
): string | null {
  if (truncated) return "json: the body is longer than 64 KiB";
  if (isNestedDeeper(text, JSON_LEVELS_MAX)) return `json: the body has more than ${JSON_LEVELS_MAX} levels`;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return "json: the body is not JSON";
  }
  const found = atJsonPath(body, readJsonPath(path ?? "") ?? []);
  if (found === undefined) return `json: there is no ${path}`;
  const { holds, otherwise } = OPERATORS[op ?? "=="];
  if (holds(found, wanted)) return null;
  return `json: ${path} is ${shown(found)}, ${otherwise} ${shown(wanted)}`;
}

/** A comparison: whether it holds, and what stands between the two values in an error. */
interface Operator {
  readonly holds: (found: unknown, wanted: unknown) => boolean;
  readonly otherwise: string;
}

const ordered =
  (holds: (found: number, wanted: number) => boolean): Operator["holds"] =>
  (found, wanted) =>
    typeof found === "number" && typeof wanted === "number" && holds(found, wanted);

const OPERATORS: Readonly<Record<JsonOp, Operator>> = {
  "==": { holds: (found, wanted) => found === wanted, otherwise: "not" },
  "!=": { holds: (found, wanted) => found !== wanted, otherwise: "not other than" },
  "<": { holds: ordered((found, wanted) => found < wanted), otherwise: "not below" },
  "<=": { holds: ordered((found, wanted) => found <= wanted), otherwise: "not at most" },
  ">": { holds: ordered((found, wanted) => found > wanted), otherwise: "not above" },
  ">=": { holds: ordered((found, wanted) => found >= wanted), otherwise: "not at least" },
  contains: {
    holds: (found, wanted) =>
      Array.isArray(found)
        ? found.includes(wanted)
        : typeof found === "string" && typeof wanted === "string" && found.includes(wanted),
    otherwise: "without",
  },
  exists: { holds: () => true, otherwise: "" },
};

function shown(value: unknown): string {
  return cut(JSON.stringify(value));
}

/** By whole characters. */
function cut(text: string): string {
  if (text.length <= SHOWN_LENGTH_MAX) return text;
  return `${[...text.slice(0, 2 * SHOWN_LENGTH_MAX)].slice(0, SHOWN_LENGTH_MAX).join("")}…`;
}
