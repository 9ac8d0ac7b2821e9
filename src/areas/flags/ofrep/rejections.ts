import { isNestedDeeper } from "../../../json-text.ts";
import { type ApiError, echoed } from "../../../kernel/errors.ts";
import { type BodyLimits, type RejectedCall, SMALL_BODY_BYTES_MAX } from "../../../kernel/http/operation.ts";
import { CONTEXT_LEVELS_MAX } from "../evaluation/schema.ts";

/** Limits of a body with a context. */
export const CONTEXT_BODY: BodyLimits = { bytesMax: SMALL_BODY_BYTES_MAX, levelsMax: CONTEXT_LEVELS_MAX + 1 };

/** Statuses of errors without OFREP fields. */
const PLAIN_STATUSES: ReadonlySet<number> = new Set([401, 403, 429]);

/**
 * Returns the error fields of OFREP. Clients reject error responses without `errorCode`, or without the `key` of the flag.
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
  const isUnparsed = Object.hasOwn(details.fields ?? {}, "body");
  return isUnparsed && !isNestedDeeper(bodyText, CONTEXT_BODY.levelsMax) ? "PARSE_ERROR" : "INVALID_CONTEXT";
}

/** Part of the path before the key of an individual evaluation. */
const PATH_BEFORE_KEY = "/evaluate/flags/";

function keyIn(url: string): { key?: string } {
  const begin = url.indexOf(PATH_BEFORE_KEY);
  if (begin < 0) return {};
  const [key = ""] = url.slice(begin + PATH_BEFORE_KEY.length).split("?", 1);
  try {
    return { key: echoed(decodeURIComponent(key)) };
  } catch {
    return { key: echoed(key) };
  }
}
