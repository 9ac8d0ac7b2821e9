/** Sends requests: the platform's `fetch`, or a function of the same type. */
export type FetchLike = (url: string, init: RequestInit) => Promise<Response>;

/** Options of a client. */
export interface NinefoldOptions {
  /**
   * The server's address, such as `https://ninefold.example.com`; a path before `/v1` is part of it. Rejected if
   * undefined. With several nodes of a cluster their addresses: a request goes to the one that worked last, and to the next
   * one if that cannot be reached or does not lead.
   */
  readonly url: string | readonly string[] | undefined;
  /** Key for requests; null for requests without one. Rejected if undefined, such as from an unset variable. */
  readonly apiKey: string | null | undefined;
  /** Timeout of an attempt in milliseconds; 30,000 by default. */
  readonly timeoutMs?: number | undefined;
  /** Number of retries; 3 by default, 0 for none. */
  readonly retries?: number | undefined;
  /** Replaces the platform's `fetch`. */
  readonly fetch?: FetchLike | undefined;
  /**
   * Called with each distinct warning of the server, such as an unknown field in a request. By default they are printed by
   * `console.warn`, unless `NODE_ENV` is `production`.
   */
  readonly onWarning?: ((warning: string) => void) | undefined;
}

/** Options of every method, as its last argument. */
export interface RequestOptions {
  /** Aborts the request, its retries and waits; the promise is rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Timeout of an attempt in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** Number of retries. */
  readonly retries?: number | undefined;
}

/** Options of methods that change something, as their last argument. */
export interface ChangeOptions extends RequestOptions {
  /**
   * Repeats with the same key within 24 hours have one effect. By default each call generates a key for its retries.
   * Null sends none; then nothing is retried that may have been carried out.
   */
  readonly idempotencyKey?: string | null | undefined;
}

/** Default timeout of an attempt in milliseconds. */
export const TIMEOUT_MS_DEFAULT = 30_000;
/** Default number of retries. With the waits in between they bridge an outage of about three seconds. */
export const RETRIES_DEFAULT = 3;
/** Longest time that timers support. */
export const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** Validated options without the key. */
export interface Settings {
  /** At least one, without trailing slashes. */
  readonly urls: readonly [string, ...string[]];
  readonly timeoutMs: number;
  readonly retries: number;
  /** Null for the platform's own. */
  readonly fetch: FetchLike | null;
  readonly onWarning: (warning: string) => void;
}

/** Validates options. @throws TypeError for an invalid one. */
export function settingsOf(options: NinefoldOptions): Settings {
  return {
    // JavaScript callers may pass no options.
    urls: readUrls(options?.url),
    timeoutMs: readTimeout(options.timeoutMs ?? TIMEOUT_MS_DEFAULT),
    retries: readRetries(options.retries ?? RETRIES_DEFAULT),
    fetch: options.fetch ?? null,
    onWarning: options.onWarning ?? (isProduction() ? () => {} : printWarning),
  };
}

function isProduction(): boolean {
  const { process } = globalThis as {
    process?: { readonly env?: Readonly<Record<string, string | undefined>> };
  };
  return process?.env?.["NODE_ENV"] === "production";
}

function printWarning(warning: string): void {
  // biome-ignore lint/suspicious/noConsole: a library has no other way to tell its developer
  console.warn(`Ninefold: ${warning}`);
}

function readUrls(urls: string | readonly string[] | undefined): [string, ...string[]] {
  const [first, ...others] = Array.isArray(urls) ? urls : [urls];
  return [readUrl(first), ...others.map(readUrl)];
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
    // A malformed URL may contain a key or password, so the message does not repeat it.
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

/** Format of platform keys, of managed keys that are credentials of the API, and of the tokens of portal links. */
const API_KEY = /^(?:sm|portal)_[A-Za-z0-9]+_[0-9a-f]{8}$/;

/** Validates a key's format. Messages never contain the key. @throws TypeError */
export function readApiKey(key: string | null | undefined): string | null {
  if (key === undefined || key === "")
    throw new TypeError(
      "apiKey is missing: pass the account's key (sm_…), as in new Ninefold({ url, apiKey: process.env.NINEFOLD_API_KEY }), or null for calls that need none",
    );
  if (key === null || (typeof key === "string" && API_KEY.test(key))) return key;
  const found = typeof key === "string" ? lengthOf(key) : typeof key;
  throw new TypeError(`apiKey must be a key such as sm_<letters and digits>_<8 hex digits>; it is ${found}`);
}

/** Characters that the server accepts; surrounding spaces are lost in transit. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** @throws TypeError for an invalid key: without one, retries could repeat the change. */
export function readIdempotencyKey(key: string): string {
  if (typeof key === "string" && IDEMPOTENCY_KEY.test(key) && key.trim() === key) return key;
  throw new TypeError(
    "idempotencyKey must be 1 to 255 printable ASCII characters without spaces around them, or null for none",
  );
}

function lengthOf(text: string): string {
  return `a malformed string of ${text.length} characters`;
}

/** @throws TypeError for an invalid timeout. */
export function readTimeout(timeoutMs: number): number {
  if (timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX) return timeoutMs;
  throw new TypeError(`timeoutMs must be from 1 to ${TIMEOUT_MS_MAX} (milliseconds), not ${timeoutMs}`);
}

/** @throws TypeError for an invalid number. */
export function readRetries(retries: number): number {
  if (Number.isSafeInteger(retries) && retries >= 0) return retries;
  throw new TypeError(`retries must be 0 or a positive integer, not ${retries}`);
}
