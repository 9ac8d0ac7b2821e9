import { givenHeaders, type RequestHeaders } from "../../../kernel/outbound/headers.ts";

/**
 * Headers that the delivery sets itself: a caller's values are ignored, also with underscores, which many receivers read
 * as dashes.
 */
const RESERVED_HEADERS =
  /^(x[-_]svc[-_].*|x[-_]ninefold[-_]hops|webhook[-_](?:id|timestamp|signature)|host|content[-_]length|connection|transfer[-_]encoding)$/i;

/** Checks a user's headers and removes the reserved ones. @throws ApiError `validation_error` */
export function withoutReservedHeaders(given: RequestHeaders): RequestHeaders {
  const headers = givenHeaders(given);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !RESERVED_HEADERS.test(name)));
}

/** Headers that every request has; a user may give them other values. */
const DEFAULT_HEADERS = /^(content-type|user-agent)$/i;

/** Whether a request has this header also without headers of a user. */
export function isServerHeader(name: string): boolean {
  return RESERVED_HEADERS.test(name) || DEFAULT_HEADERS.test(name);
}
