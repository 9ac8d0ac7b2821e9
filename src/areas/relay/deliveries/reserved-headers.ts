import { echoed, invalidField } from "../../../kernel/errors.ts";
import { givenHeaders, isOwnHeader, type RequestHeaders } from "../../../kernel/outbound/headers.ts";

/**
 * Headers that the delivery sets itself: a caller's values are ignored, also with underscores, which many receivers read
 * as dashes.
 */
const RESERVED_HEADERS =
  /^(x[-_]svc[-_].*|x[-_]ninefold[-_]hops|webhook[-_](?:id|timestamp|signature)|host|content[-_]length|transfer[-_]encoding|accept-encoding)$/i;

function isReserved(name: string): boolean {
  return RESERVED_HEADERS.test(name) || isOwnHeader(name);
}

/** Checks a user's headers and removes the reserved ones. @throws ApiError `validation_error` */
export function withoutReservedHeaders(headers: RequestHeaders): RequestHeaders {
  return givenHeaders(Object.fromEntries(Object.entries(headers).filter(([name]) => !isReserved(name))));
}

/**
 * Checks a file's headers: what would be ignored is no difference that `apply` could ever remove.
 * @throws ApiError `validation_error`
 */
export function assertSendable(headers: RequestHeaders | undefined): void {
  const reserved = Object.keys(headers ?? {}).find(isReserved);
  if (reserved !== undefined)
    throw invalidField(`headers.${reserved}`, "is set by the server itself: omit it");
}

/** Warnings that name the reserved headers that a user gives. */
export function reservedHeaderWarnings(headers: RequestHeaders | undefined): string[] {
  return Object.keys(headers ?? {})
    .filter(isReserved)
    .map((name) => `The header \`${echoed(name)}\` is ignored: the server sets it itself.`);
}

/** Headers that every request has; a user may give them other values. */
const DEFAULT_HEADERS = /^(content-type|user-agent)$/i;

/** Whether a request has this header also without headers of a user. */
export function isServerHeader(name: string): boolean {
  return isReserved(name) || DEFAULT_HEADERS.test(name);
}
