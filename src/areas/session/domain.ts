import { ApiError } from "../../kernel/errors.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Longest life of a session. */
export const SESSION_MS = 7 * 24 * HOUR_MS;
/** A session that nobody has used for so long is over. */
export const IDLE_MS = 24 * HOUR_MS;
/** The last use of a session is written at most once in this time. */
export const SEEN_WRITE_MS = 5 * MINUTE_MS;
/** Sessions of one account: the oldest goes for the next one. */
export const SESSIONS_PER_ACCOUNT_MAX = 20;
/** Sessions kept in memory, some hundred bytes each. */
export const SESSIONS_IN_MEMORY_MAX = 20_000;
/** Refused log-ins from one client address within {@link REFUSALS_WINDOW_MS}; from then on none is looked at. */
export const REFUSALS_MAX = 10;
/** The window of refused log-ins. */
export const REFUSALS_WINDOW_MS = 10 * MINUTE_MS;
/** Refused log-ins from one address make one entry of the audit log in this time. */
export const REFUSALS_NOTED_MS = MINUTE_MS;
/**
 * Networks whose rejected logins make an entry each in {@link REFUSALS_NOTED_MS}; those of all others make one together.
 * Anyone can have very many networks, and an entry is stored for a year: so they leave some 15 MB a day at most.
 */
export const REFUSING_ADDRESSES_MAX = 20;
/** Logins from one network, and of one account, within {@link LOGINS_WINDOW_MS}: a person logs in a few times a day. */
export const LOGINS_MAX = 10;
/** The window of logins. */
export const LOGINS_WINDOW_MS = MINUTE_MS;
/** Minutes that a link works unless asked otherwise. */
export const LINK_MINUTES = 30;
/** Longest that it can work. */
export const LINK_MINUTES_MAX = 1_440;
/** Random bytes of a cookie and of a link. */
export const TOKEN_BYTES = 32;
/** Characters of a token: base64url of {@link TOKEN_BYTES}. */
export const TOKEN_LENGTH = 43;

/** What pages of this server send with every request. */
const SESSION_HEADER = "x-ninefold-session";
/** Names the project that a session works in. */
export const PROJECT_HEADER = "x-ninefold-project";

/** Names of the cookie: over TLS no other host can set it, and no plain request carries it. */
export function cookieNames(instanceId: string) {
  return { plain: `ninefold_${instanceId}`, secure: `__Host-ninefold_${instanceId}` };
}

/** The header that sets the cookie; for no seconds: that takes it away. */
export function setCookie(name: string, token: string, seconds: number): string {
  const secure = name.startsWith("__Host-") ? "; Secure" : "";
  return `${name}=${token}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}${secure}`;
}

/** The value of the first cookie of this name in a `Cookie` header; null when there is none. */
export function cookieIn(header: string | null, name: string): string | null {
  if (header === null) return null;
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return null;
}

/**
 * A cookie comes along with whatever a browser sends here, whoever made it send that. So it counts only for requests that
 * a page of this very server has made: no other can set the header without being asked first, which is answered no.
 *
 * @throws ApiError `forbidden`
 */
export function assertOwnPage(headers: Headers, ownOrigin: string): void {
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  const isOwn = (site === null || site === "same-origin") && (origin === null || origin === ownOrigin);
  if (isOwn && headers.get(SESSION_HEADER) === "1") return;
  throw new ApiError(
    "forbidden",
    "A session's cookie counts only in requests of this server's own pages, with the header X-Ninefold-Session: 1. Use a key.",
  );
}
