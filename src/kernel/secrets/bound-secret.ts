import type { Caller } from "../callers/caller.ts";
import { ApiError } from "../errors.ts";

/** A change of a URL to which requests with a stored secret are sent. */
export interface TargetChange {
  /** The field of the URL. */
  readonly field: string;
  /** The URL before and after the change; null for none. */
  readonly before: string | null;
  readonly after: string | null;
  /** The field of the secret. */
  readonly secretField: string;
}

/** Whether a change of a URL leads to another origin: scheme, host and port. */
export function isOtherOrigin(before: string | null, after: string | null): boolean {
  if (after === null || before === after) return false;
  return before === null || URL.parse(before)?.origin !== URL.parse(after)?.origin;
}

/**
 * Rejects another origin for a secret that the request does not contain: a caller who may not read the secret could have it
 * sent to a server of its own. Only the scope `*` gives everything that an account has.
 *
 * @throws ApiError `conflict`
 */
export function assertSecretStays(caller: Caller, { field, before, after, secretField }: TargetChange): void {
  if (caller.scopes.has("*") || !isOtherOrigin(before, after)) return;
  throw movedWithoutSecret(caller, field, secretField);
}

/** The error of a caller who moves a secret that it may not read. */
export function movedWithoutSecret({ portal }: Caller, field: string, secretField: string): ApiError {
  const message =
    portal === undefined
      ? `${field} leads to another origin, to which the stored ${secretField} would be sent. Send ${secretField} again with the new ${field}, or use a key with the scope *.`
      : "The URL cannot be changed to another server: the provider of this page has set headers for this endpoint, which only the present server may receive. Add an endpoint with the new URL, or contact the provider.";
  return new ApiError("conflict", message);
}
