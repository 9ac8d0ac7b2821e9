import { HOUR_MS, MINUTE_MS } from "../../../kernel/time/units.ts";

/** How long a login at a provider may take. */
export const LOGIN_MS = 10 * MINUTE_MS;
/** Logins of one browser at the same time: one more ends the oldest. Their cookie stays below 4,096 bytes, the limit of browsers. */
export const LOGINS_PER_BROWSER_MAX = 5;
/** Longest address to return to after a login, so that {@link LOGINS_PER_BROWSER_MAX} fit into a cookie; a longer one is the start page. */
export const RETURN_TO_LENGTH_MAX = 512;
/** Used logins in memory. They are valid for minutes, and rejected ones are limited. */
export const USED_LOGINS_MAX = 50_000;
/** How long the metadata of a provider is kept. */
export const METADATA_MS = HOUR_MS;
/** Minimum time between two requests for the keys of a provider: tokens with unknown keys can be sent at any rate. */
export const KEYS_PAUSE_MS = MINUTE_MS;
/** Time and size of each request to a provider. */
export const REQUEST_TIMEOUT_MS = 10_000;
export const RESPONSE_BYTES_MAX = 1024 * 1024;
/** Keys of a provider that are considered: a few are in use at a time. */
export const KEYS_MAX = 100;
/** Logins of one provider that are being verified: each waits for requests to it. */
export const VERIFYING_MAX = 100;
/** Difference between our clock and that of a provider that is tolerated, in seconds. */
export const TOLERANCE_SECONDS = 60;
/** How long ago a person may have confirmed a dangerous action at the provider, in seconds. */
export const STEP_UP_SECONDS = 60;
/** Signatures of ID tokens that are accepted: never without one, and never with a shared secret. */
export const ALGORITHMS: readonly string[] = ["RS256", "PS256", "ES256", "ES384", "EdDSA"];
/**
 * Oldest login at the provider that opens a session, in seconds: that of a session here. Providers say when a person has
 * logged in if they are asked for it.
 */
export const MAX_AGE_SECONDS = 7 * 24 * 3_600;
/** Longest `sub`, as the standard has it. */
export const SUBJECT_LENGTH_MAX = 255;

/** The page after a login that names no other, and the start of those that it can name. */
const HOME = "/dashboard/";

/** Why a login brought nothing, as the login page is told. */
export type LoginError = "denied" | "expired" | "refused" | "provider";

/**
 * The page to return to after a login, within the console; {@link HOME} for anything else. `prefix`: the path under which a proxy
 * serves this server.
 */
export function returnTo(text: string | null, prefix: string): string {
  const url =
    text === null || text.length > RETURN_TO_LENGTH_MAX ? null : URL.parse(text, "http://localhost");
  if (url === null || url.origin !== "http://localhost" || url.username !== "") return HOME;
  const path = url.pathname.startsWith(`${prefix}${HOME}`) ? url.pathname.slice(prefix.length) : url.pathname;
  const page = `${path}${url.search}${url.hash}`;
  return path.startsWith(HOME) && page.length <= RETURN_TO_LENGTH_MAX ? page : HOME;
}
