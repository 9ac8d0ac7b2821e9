import { invalidField } from "../../kernel/errors.ts";
import {
  HEADER_VALUE_LENGTH_MAX,
  HEADERS_MAX,
  headerFault,
  type RequestHeaders,
} from "../../kernel/outbound/request-head.ts";

/** Set by the delivery itself; a caller's are left out. */
const OWN = /^(x-svc-.*|host|content-length|connection|transfer-encoding)$/i;

/**
 * The headers of a delivery that its caller may set.
 * @throws ApiError `validation_error` for a name or a value that HTTP does not allow, or too many.
 */
export function ownHeaders(given: Readonly<Record<string, string>>): RequestHeaders {
  const entries = Object.entries(given);
  if (entries.length > HEADERS_MAX) throw invalidField("headers", `must be at most ${HEADERS_MAX}`);
  const kept = new Map<string, [name: string, value: string]>();
  for (const [name, value] of entries) {
    const fault = headerFault(name, value);
    if (fault === "name") {
      throw invalidField(
        "headers",
        `must have names of letters, digits and dashes: ${JSON.stringify(name)} is none`,
      );
    }
    if (fault === "value") {
      throw invalidField(
        `headers.${name}`,
        `must be printable ASCII, at most ${HEADER_VALUE_LENGTH_MAX} characters`,
      );
    }
    // The same name in another spelling: the last one holds, as in an object.
    if (!OWN.test(name)) kept.set(name.toLowerCase(), [name, value]);
  }
  return Object.fromEntries(kept.values());
}

/** Headers over defaults; names compare without case. */
export function withDefaults(headers: RequestHeaders, defaults: RequestHeaders): RequestHeaders {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const missing = Object.entries(defaults).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...Object.fromEntries(missing), ...headers };
}
