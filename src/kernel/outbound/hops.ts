import type { RequestHeaders } from "./headers.ts";

/**
 * How often an event has been ingested and sent again, by servers that know this header. Each delivery has it, so that a
 * webhook in a circle ends.
 */
export const HOPS_HEADER = "X-Ninefold-Hops";
/** The same as names are stored. */
const STORED_NAME = HOPS_HEADER.toLowerCase();
/** Requests with this many hops are rejected: real chains of servers have two or three. */
export const HOPS_MAX = 8;
/** Response to such a request (RFC 5842, section 7.2). It ends the delivery. */
export const LOOP_DETECTED = 508;

/** The hops that the value of the header names, of several the most; 0 without a number. */
export function hopsOf(value: string | null | undefined): number {
  if (value === null || value === undefined) return 0;
  const named = value.split(",").map((part) => part.trim());
  return Math.max(0, ...named.filter((part) => /^[0-9]{1,9}$/.test(part)).map(Number));
}

/** The header of a delivery. `received`: stored headers, by lower-case name, of the request that it passes on, if any. */
export function hopsHeader(received: RequestHeaders = {}): RequestHeaders {
  return { [HOPS_HEADER]: String(hopsOf(received[STORED_NAME]) + 1) };
}
