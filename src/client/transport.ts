import { backoffMs, delay, onAbort } from "./abort.ts";
import { errorOf, NinefoldConnectionError, NinefoldError } from "./errors.ts";
import { type FetchLike, type RequestOptions, readRetries, readTimeout, type Settings } from "./options.ts";

/** A request that can be sent more than once. */
export interface WireRequest {
  readonly method: string;
  /** From `/v1`, with the query. */
  readonly path: string;
  readonly body?: string | Uint8Array | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the key is sent. */
  readonly withKey: boolean;
  readonly idempotencyKey?: string | null;
  /** Whether the response is returned as raw bytes. */
  readonly wantsBytes?: true;
  /** Whether it may be retried although it may have been carried out. */
  readonly repeatable: boolean;
}

/** A successful response of the API. */
export interface Answer<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  /** The request's id in the server's log. */
  readonly requestId: string;
  /** The parsed JSON; undefined without a body. */
  readonly body: T;
}

/** Distinct warnings that a client reports: names in requests can be data, and would fill the memory. */
export const WARNINGS_REPORTED_MAX = 100;

/** Sends requests with the key, a timeout and retries. */
export class Transport {
  /** Private, so that printing or serializing the client does not reveal it. */
  readonly #apiKey: string | null;
  private readonly fetch: FetchLike;
  private readonly patientFetch: FetchLike;
  /** Index of the address that worked last. */
  private current = 0;
  /** The warnings that have been reported. */
  private readonly reported = new Set<string>();

  constructor(
    readonly settings: Settings,
    apiKey: string | null,
  ) {
    this.#apiKey = apiKey;
    // Read at each request: tests and instrumentation replace the platform's `fetch`.
    this.fetch = settings.fetch ?? ((url, init) => fetch(url, init));
    this.patientFetch = settings.fetch ?? patientFetch();
  }

  /**
   * Sends a request until there is a response or no retries are left.
   *
   * @throws NinefoldError for an error response; NinefoldConnectionError without a response; the reason of `signal`.
   */
  async send(request: WireRequest, options: RequestOptions): Promise<Answer> {
    const retries = readRetries(options.retries ?? this.settings.retries);
    // While the first attempt is in progress on the server, the client waits up to one timeout for its response
    // without using a retry.
    const patienceMs = options.timeoutMs ?? this.settings.timeoutMs;
    let patientUntil = 0;
    for (let retry = 0; ; ) {
      try {
        return await this.attempt(request, options);
      } catch (error) {
        const isRunning = retry > 0 && isStillRunning(error, request);
        if (isRunning) patientUntil ||= performance.now() + patienceMs;
        const isFree = isRunning && performance.now() < patientUntil;
        const isLeft = retry < retries || isFree;
        const waitMs = isLeft && mayRepeat(error, request) ? waitBefore(isFree ? 0 : retry, error) : null;
        if (waitMs === null) throw error;
        await delay(waitMs, options.signal);
        if (!isFree) retry += 1;
      }
    }
  }

  /** Sends a request once: with several addresses to the first one that can be reached and that leads. */
  async attempt(request: WireRequest, options: RequestOptions): Promise<Answer> {
    const { urls } = this.settings;
    for (let moves = 0; ; moves += 1) {
      const at = this.current;
      try {
        return await this.attemptAt(urls[at] ?? urls[0], request, options);
      } catch (error) {
        this.moveFrom(at, error);
        if (moves + 1 >= urls.length || !wasNotReceived(error)) throw error;
      }
    }
  }

  /** Lets the next attempt go elsewhere, unless another request's failure has done so. */
  private moveFrom(at: number, error: unknown): void {
    if (at !== this.current || !(error instanceof NinefoldError) || !mayBeElsewhere(error)) return;
    const { urls } = this.settings;
    const { leader } = error;
    // The key goes only to addresses that were given to this client.
    const named = leader === null ? -1 : urls.indexOf(leader.replace(/\/$/, ""));
    this.current = named >= 0 ? named : (at + 1) % urls.length;
  }

  private async attemptAt(
    url: string,
    request: WireRequest,
    { signal, timeoutMs }: RequestOptions,
  ): Promise<Answer> {
    signal?.throwIfAborted();
    const within = new Deadline(readTimeout(timeoutMs ?? this.settings.timeoutMs), signal);
    const target = `${request.method} ${url}${request.path.replace(/\?.*/, "")}`;
    try {
      const fetch = within.timeoutMs > PATIENT_FROM_MS ? this.patientFetch : this.fetch;
      const response = await fetch(url + request.path, this.init(request, within.signal));
      if (request.wantsBytes && response.ok) return await bytesOf(response);
      const answer = readAnswer(response, await response.text(), target, request.method === "HEAD");
      this.reportWarnings(answer.body);
      return answer;
    } catch (error) {
      if (error instanceof NinefoldError) throw error;
      if (signal?.aborted) throw signal.reason;
      throw within.passed
        ? timedOut(target, within.timeoutMs)
        : connectionFailed(target, error, originHint(url));
    } finally {
      within.end();
    }
  }

  private reportWarnings(body: unknown): void {
    const { warnings } = (body ?? {}) as { readonly warnings?: unknown };
    if (!Array.isArray(warnings)) return;
    for (const warning of warnings.map(String)) {
      if (this.reported.has(warning) || this.reported.size >= WARNINGS_REPORTED_MAX) continue;
      this.reported.add(warning);
      this.settings.onWarning(warning);
    }
  }

  private init(request: WireRequest, signal: AbortSignal): RequestInit {
    const headers: Record<string, string> = { ...request.headers };
    if (request.withKey && this.#apiKey !== null) headers["Authorization"] = `Bearer ${this.#apiKey}`;
    if (request.idempotencyKey) headers["Idempotency-Key"] = request.idempotencyKey;
    const init: RequestInit = { method: request.method, headers, signal, redirect: "manual" };
    if (request.body !== undefined) init.body = request.body as NonNullable<RequestInit["body"]>;
    return init;
  }
}

/** Aborts after the timeout, or with the caller's signal. */
class Deadline {
  passed = false;
  private readonly controller = new AbortController();
  private readonly timer: ReturnType<typeof setTimeout>;
  private readonly forget: () => void;

  constructor(
    readonly timeoutMs: number,
    outer: AbortSignal | undefined,
  ) {
    this.forget = onAbort(outer, () => this.controller.abort(outer?.reason));
    this.timer = setTimeout(() => {
      this.passed = true;
      this.controller.abort();
    }, timeoutMs);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  end(): void {
    clearTimeout(this.timer);
    this.forget();
  }
}

/** Content types of text responses other than JSON. */
const TEXT_TYPES = ["application/x-ndjson", "text/csv"];

async function bytesOf(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const body = new Uint8Array(await response.arrayBuffer());
  return { status, headers, requestId: headers.get("x-request-id") ?? "", body };
}

function readAnswer(response: Response, text: string, target: string, isHead: boolean): Answer {
  const { status, headers } = response;
  if (!response.ok) throw errorOf(status, headers, text, target);
  const requestId = headers.get("x-request-id") ?? "";
  if (status === 204 || isHead) return { status, headers, requestId, body: undefined };
  if (TEXT_TYPES.some((type) => headers.get("content-type")?.startsWith(type)))
    return { status, headers, requestId, body: text };
  try {
    return { status, headers, requestId, body: JSON.parse(text) };
  } catch (cause) {
    const message = `${target} returned ${status} with a body that is not JSON`;
    throw new NinefoldError(message, { code: "unexpected_answer", status, requestId, cause });
  }
}

/** Codes of responses that confirm that nothing was done. */
const NOTHING_DONE: readonly string[] = [
  "rate_limit_exceeded",
  "service_unavailable",
  "not_leader",
  "read_only",
];

/** Whether a retry may help and is safe. */
export function mayRepeat(
  error: unknown,
  request: Pick<WireRequest, "repeatable" | "idempotencyKey">,
): boolean {
  if (!(error instanceof NinefoldError)) return false;
  const { status, code, extras } = error;
  // Only the response could not be stored: the request was carried out and charged.
  if (extras["carried_out"] === true) return false;
  // A leader that lost its commit log does not know whether the change stays.
  if (extras["outcome"] === "unknown") return request.repeatable;
  if (NOTHING_DONE.includes(code)) return true;
  if (!request.repeatable) return false;
  if (error instanceof NinefoldConnectionError) return true;
  if (code === "unexpected_answer") return [429, 502, 503, 504].includes(status);
  return isStillRunning(error, request);
}

/** Whether another node may respond. */
function mayBeElsewhere(error: NinefoldError): boolean {
  return error instanceof NinefoldConnectionError || [502, 503, 504].includes(error.status);
}

/** Failures to connect: by Node, by Bun. */
const NOT_CONNECTED: readonly unknown[] = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ConnectionRefused",
  "FailedToOpenSocket",
];

/** Whether a request certainly had no effect: there was no connection, or the node that responded does not lead. */
function wasNotReceived(error: unknown): boolean {
  if (!(error instanceof NinefoldError)) return false;
  if (error.leader !== null) return true;
  const cause = error.cause as { code?: unknown; cause?: { code?: unknown } } | undefined;
  return (
    error.code === "connection_failed" &&
    [cause?.code, cause?.cause?.code].some((code) => NOT_CONNECTED.includes(code))
  );
}

/** Whether the first attempt is still in progress: this conflict alone has a `Retry-After`. */
function isStillRunning(error: unknown, { idempotencyKey }: Pick<WireRequest, "idempotencyKey">): boolean {
  if (!(error instanceof NinefoldError) || !idempotencyKey) return false;
  return error.code === "conflict" && error.retryAfterMs !== null;
}

/** Milliseconds before a retry; null if the server asks for a longer wait than the client accepts. */
export function waitBefore(retry: number, error: unknown): number | null {
  return backoffMs(retry, error instanceof NinefoldError ? error.retryAfterMs : null, Math.random);
}

function timedOut(target: string, timeoutMs: number): NinefoldError {
  return new NinefoldConnectionError(`${target} did not respond within ${timeoutMs} ms`, {
    code: "timed_out",
  });
}

function connectionFailed(target: string, cause: unknown, hint: string): NinefoldError {
  const message = `${target} could not be reached: ${reasonOf(cause)}${hint}`;
  return new NinefoldConnectionError(message, { code: "connection_failed", cause });
}

/** Browsers hide the reason for a blocked response. Other platforms have no `location`. */
function originHint(url: string): string {
  const { location } = globalThis as { location?: { readonly origin: string } };
  if (location === undefined || location.origin === new URL(url).origin) return "";
  return `. If the server is running, it may not allow this origin: start it with --cors-origins ${location.origin}`;
}

/** Node reports "fetch failed" with the reason as its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return `${error.message} (${cause.message === "" && "code" in cause ? cause.code : cause.message})`;
}

/** Above this timeout the platform's `fetch` may give up first: Node's does after 300 s. */
export const PATIENT_FROM_MS = 240_000;
/** Interval of TCP keep-alive, so that NAT devices do not drop the connection. */
const KEEP_ALIVE_MS = 30_000;

/** The part of Node's `process` that is used here. */
interface NodeProcess {
  getBuiltinModule?(name: string): unknown;
}

interface NodeResponse extends AsyncIterable<Uint8Array> {
  readonly statusCode?: number;
  readonly rawHeaders: readonly string[];
}

interface NodeRequest {
  on(event: "socket", listener: (socket: { setKeepAlive(on: boolean, ms: number): void }) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  on(event: "response", listener: (response: NodeResponse) => void): void;
  end(body?: unknown): void;
}

interface NodeHttp {
  request(url: string, options: object): NodeRequest;
}

/** A `fetch` for slow responses. Without Node's modules the platform's own is used. */
export function patientFetch(): FetchLike {
  const { Bun, process } = globalThis as { Bun?: unknown; process?: NodeProcess };
  // Not in the types of other platforms.
  if (Bun !== undefined) return (url, init) => fetch(url, { ...init, timeout: false } as RequestInit);
  // Loaded dynamically, so that bundles for browsers contain nothing of Node.
  const load = process?.getBuiltinModule?.bind(process);
  if (load === undefined) return (url, init) => fetch(url, init);
  return (url, init) =>
    fetchByNode(load(url.startsWith("https:") ? "node:https" : "node:http") as NodeHttp, url, init);
}

/** One request on its own connection, with no timeout but the signal's. */
function fetchByNode(http: NodeHttp, url: string, init: RequestInit): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { method, headers, signal, body } = init;
    const options = { method, headers, agent: false, ...(signal ? { signal } : {}) };
    const request = http.request(url, options);
    request.on("error", reject);
    request.on("socket", (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
    request.on("response", (response) => readWhole(response).then(resolve, reject));
    request.end(body);
  });
}

async function readWhole(response: NodeResponse): Promise<Response> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of response) chunks.push(new Uint8Array(chunk));
  const headers = new Headers();
  const { rawHeaders, statusCode = 0 } = response;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  const bodyless = statusCode === 204 || statusCode === 304;
  return new Response(bodyless ? null : new Blob(chunks), { status: statusCode, headers });
}
