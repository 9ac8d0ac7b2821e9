import { ApiError } from "../../kernel/errors.ts";
import { HOUR_MS, MINUTE_MS } from "../../kernel/time/units.ts";

/** Maximum lifetime of a session. */
export const SESSION_MS = 7 * 24 * HOUR_MS;
/** A session without a request for this time expires. */
export const IDLE_MS = 24 * HOUR_MS;
/** Minimum time between two writes of a session's last use. */
export const LAST_USE_WRITE_MS = 5 * MINUTE_MS;
/** Sessions of keys of one account: a new one above this number ends the oldest. */
export const SESSIONS_PER_ACCOUNT_MAX = 20;
/** Sessions of one person: a new one above this number ends the oldest. */
export const SESSIONS_PER_PERSON_MAX = 20;
/** Logins of people from one network within {@link LOGINS_WINDOW_MS}: an office shares an address. */
export const PEOPLE_LOGINS_PER_NETWORK_MAX = 60;
/** Sessions in memory, some hundred bytes each. */
export const SESSIONS_IN_MEMORY_MAX = 20_000;
/** Rejected logins from one network within {@link REJECTED_LOGINS_WINDOW_MS}; further logins are rejected unchecked. */
export const REJECTED_LOGINS_MAX = 10;
/** The window of {@link REJECTED_LOGINS_MAX}. */
export const REJECTED_LOGINS_WINDOW_MS = 10 * MINUTE_MS;
/** Rejected logins from one network are summed into one entry of the audit log per this time. */
export const REJECTED_LOGINS_ENTRY_MS = MINUTE_MS;
/**
 * Networks with their own entry per {@link REJECTED_LOGINS_ENTRY_MS}; all other networks share one. A client can use very
 * many networks, and an entry is stored for a year: this limits the entries to about 15 MB a day.
 */
export const REJECTED_NETWORKS_MAX = 20;
/**
 * Rejected logins of known people of one account that its audit log has within {@link REJECTED_LOGINS_ENTRY_MS}: whoever has
 * one of their addresses at a provider can cause them.
 */
export const REJECTED_PEOPLE_MAX = 10;
/** Logins by key from one network, by key of one account, and of one person, within {@link LOGINS_WINDOW_MS}: a person logs in a few times a day. */
export const LOGINS_MAX = 10;
/** The window of {@link LOGINS_MAX}. */
export const LOGINS_WINDOW_MS = MINUTE_MS;
/** Default lifetime of a login link, in minutes. */
export const LINK_MINUTES = 30;
/** Maximum lifetime of a login link, in minutes. */
export const LINK_MINUTES_MAX = 1_440;
/** How long a login link is valid that was sent by e-mail. */
export const EMAIL_LINK_MS = 15 * MINUTE_MS;
/** Login links to one address, and from one network, within {@link EMAIL_LINKS_WINDOW_MS}: each is a mail. */
export const EMAIL_LINKS_MAX = 5;
/** The window of {@link EMAIL_LINKS_MAX}. */
export const EMAIL_LINKS_WINDOW_MS = HOUR_MS;
/** Random bytes of the token in a cookie or link. */
export const TOKEN_BYTES = 32;
/** Characters of a token: base64url of {@link TOKEN_BYTES}. */
export const TOKEN_LENGTH = 43;

/** The header that pages of this server send with every request. */
const SESSION_HEADER = "x-ninefold-session";

/** Names of the cookie. The prefix `__Host-` (over TLS) means that no other host can set it. */
export function cookieNames(instanceId: string) {
  return { plain: `ninefold_${instanceId}`, secure: `__Host-ninefold_${instanceId}` };
}

/** The header that sets the cookie; with `seconds` 0 it deletes the cookie. */
export function setCookie(name: string, token: string, seconds: number): string {
  const secure = name.startsWith("__Host-") ? "; Secure" : "";
  return `${name}=${token}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}${secure}`;
}

/** The value of the first cookie of this name in a `Cookie` header; null when there is none. */
export function readCookie(header: string | null, name: string): string | null {
  if (header === null) return null;
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return null;
}

/**
 * A browser sends the cookie with every request to this server, also if another page caused it. The cookie is therefore
 * accepted only in requests of this server's pages: other pages cannot set the header without a CORS preflight, which this
 * server does not allow.
 *
 * @throws ApiError `forbidden`
 */
export function assertSameOrigin(headers: Headers, serverOrigin: string): void {
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  const isSameOrigin =
    (site === null || site === "same-origin") && (origin === null || origin === serverOrigin);
  if (isSameOrigin && headers.get(SESSION_HEADER) === "1") return;
  if (site === "same-origin" && origin !== serverOrigin) {
    throw new ApiError(
      "forbidden",
      `This page was not opened at the public URL of the server. Open ${serverOrigin} instead, or correct public_url.`,
    );
  }
  throw new ApiError(
    "forbidden",
    "A session cookie is accepted only in requests of this server's pages, with the header X-Ninefold-Session: 1. Use a key.",
  );
}
