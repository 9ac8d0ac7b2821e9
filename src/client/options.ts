/** What sends requests: the platform's `fetch`, or one of the same form. */
export type FetchLike = (url: string, init: RequestInit) => Promise<Response>;

/** How to reach the server. */
export interface NinefoldOptions {
  /** The server's address, such as `https://ninefold.example.com`; a path before `/v1` is part of it. Refused when undefined. */
  readonly url: string | undefined;
  /** The key that requests are sent with; null for what needs none. Refused when undefined, as an unset variable is. */
  readonly apiKey: string | null | undefined;
  /** Milliseconds that an attempt may take; 30,000 unless given. */
  readonly timeoutMs?: number | undefined;
  /** How often a request is tried again; 3 unless given, 0 for never. */
  readonly retries?: number | undefined;
  /** Sends requests instead of the platform's `fetch`. */
  readonly fetch?: FetchLike | undefined;
}

/** What every method takes as its last argument. */
export interface RequestOptions {
  /** Ends the request, its retries and its waits; the promise is rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds that an attempt may take. */
  readonly timeoutMs?: number | undefined;
  /** How often it is tried again. */
  readonly retries?: number | undefined;
}

/** What methods that change something take as their last argument. */
export interface ChangeOptions extends RequestOptions {
  /**
   * Makes repeats of this change, by this call or another one within 24 hours, have one effect. Unless given, each call
   * makes its own, for its retries. Null sends none; then nothing is tried again that may have happened.
   */
  readonly idempotencyKey?: string | null | undefined;
}

/** Milliseconds that an attempt may take. */
export const TIMEOUT_MS_DEFAULT = 30_000;
/** How often a request is tried again. With the waits between, an outage of some three seconds passes unseen. */
export const RETRIES_DEFAULT = 3;
/** Longest time that timers can hold. */
export const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** Options but for the key, checked and complete. */
export interface Settings {
  /** Without a slash at its end. */
  readonly url: string;
  readonly timeoutMs: number;
  readonly retries: number;
  /** Null for the platform's own. */
  readonly fetch: FetchLike | null;
}

/** Checks options. @throws TypeError when one cannot work. */
export function settingsOf(options: NinefoldOptions): Settings {
  return {
    // Those who write JavaScript may give no options at all.
    url: readUrl(options?.url),
    timeoutMs: readTimeout(options.timeoutMs ?? TIMEOUT_MS_DEFAULT),
    retries: readRetries(options.retries ?? RETRIES_DEFAULT),
    fetch: options.fetch ?? null,
  };
}

function readUrl(text: string | undefined): string {
  if (text === undefined || text === "")
    throw new TypeError(
      'url is missing: pass the server\'s address, as in new Ninefold({ url: "https://ninefold.example.com", apiKey })',
    );
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    // What a key or a password may stand in is not repeated.
    const found = /sm_|@/.test(text) ? lengthOf(text) : JSON.stringify(text);
    throw new TypeError(`url must be an address such as https://ninefold.example.com, not ${found}`);
  }
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new TypeError(`url must begin with https: or http:, not ${url.protocol}`);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    throw new TypeError("url must be an address without user name, password, ? and #");
  let { pathname } = url;
  while (pathname.endsWith("/")) pathname = pathname.slice(0, -1);
  return url.origin + pathname;
}

/** The form of platform keys, and of managed keys that work as credentials. */
const API_KEY = /^sm_[A-Za-z0-9]+_[0-9a-f]{8}$/;

/** Checks a key's form. Its text stands in no message. @throws TypeError */
export function readApiKey(key: string | null | undefined): string | null {
  if (key === undefined || key === "")
    throw new TypeError(
      "apiKey is missing: pass the account's key (sm_…), as in new Ninefold({ url, apiKey: process.env.NINEFOLD_API_KEY }), or null for calls that need none",
    );
  if (key === null || (typeof key === "string" && API_KEY.test(key))) return key;
  const found = typeof key === "string" ? lengthOf(key) : typeof key;
  throw new TypeError(`apiKey must be a key such as sm_<letters and digits>_<8 hex digits>; it is ${found}`);
}

/** The server takes these, and spaces around them get lost on the way. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** @throws TypeError when it is no key: one that is not sent would have the change repeated without it. */
export function readIdempotencyKey(key: string): string {
  if (typeof key === "string" && IDEMPOTENCY_KEY.test(key) && key.trim() === key) return key;
  throw new TypeError(
    "idempotencyKey must be 1 to 255 printable ASCII characters without spaces around them, or null for none",
  );
}

function lengthOf(text: string): string {
  return `a text of ${text.length} characters in another form`;
}

/** @throws TypeError when it is no time. */
export function readTimeout(timeoutMs: number): number {
  if (timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX) return timeoutMs;
  throw new TypeError(`timeoutMs must be from 1 to ${TIMEOUT_MS_MAX} (milliseconds), not ${timeoutMs}`);
}

/** @throws TypeError when it is no count. */
export function readRetries(retries: number): number {
  if (Number.isSafeInteger(retries) && retries >= 0) return retries;
  throw new TypeError(`retries must be 0 or a positive integer, not ${retries}`);
}
