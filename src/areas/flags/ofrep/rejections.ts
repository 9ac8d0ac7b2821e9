import { isNestedDeeper } from "../../../json-text.ts";
import { type ApiError, echoed } from "../../../kernel/errors.ts";
import type { RejectedCall } from "../../../kernel/http/access/caller.ts";
import { type BodyLimits, SMALL_BODY_BYTES_MAX } from "../../../kernel/http/requests/body.ts";

/** Levels of objects and arrays in a context, itself included: what is deeper, no condition of a flag looks for. */
export const CONTEXT_LEVELS_MAX = 8;
/** The bounds of a body: the context, and what stands around it. */
export const CONTEXT_BODY: BodyLimits = { bytesMax: SMALL_BODY_BYTES_MAX, levelsMax: CONTEXT_LEVELS_MAX + 1 };

/** Refusals that are the same in every protocol. */
const PLAIN_STATUSES: ReadonlySet<number> = new Set([401, 403, 429]);

/**
 * What OFREP's clients look for in a refusal: without `errorCode`, and the flag's `key` where it is about one, they take the
 * answer for one of somebody else.
 */
export function ofrepExtras(error: ApiError, call: RejectedCall): Readonly<Record<string, string>> {
  if (PLAIN_STATUSES.has(error.status)) return {};
  return {
    ...keyIn(call.request.url),
    errorCode: errorCodeOf(error, call.bodyText),
    errorDetails: error.message,
  };
}

function errorCodeOf({ code, details }: ApiError, bodyText: string): string {
  if (code === "gate.feature_not_found") return "FLAG_NOT_FOUND";
  if (code !== "validation_error") return "GENERAL";
  const isUnread = Object.hasOwn(details.fields ?? {}, "body");
  return isUnread && !isNestedDeeper(bodyText, CONTEXT_BODY.levelsMax) ? "PARSE_ERROR" : "INVALID_CONTEXT";
}

/** What stands before the key in the path of a single evaluation. */
const BEFORE_KEY = "/evaluate/flags/";

function keyIn(url: string): { key?: string } {
  const begin = url.indexOf(BEFORE_KEY);
  if (begin < 0) return {};
  const [key = ""] = url.slice(begin + BEFORE_KEY.length).split("?", 1);
  try {
    return { key: echoed(decodeURIComponent(key)) };
  } catch {
    return { key: echoed(key) };
  }
}
