import {
  ask,
  type HttpResponse,
  type HttpTarget,
  type JsonObject,
  NoResponseError,
  rejection,
} from "../../api/http-api.ts";
import { StartupError } from "../../kernel/errors.ts";
import { realTimeout } from "../../kernel/time/clock.ts";
import { printError } from "../output.ts";

/** First wait before reconnecting; it doubles each time up to {@link RETRY_MS_MAX}. */
const RETRY_MS = 500;
/** Longest wait before reconnecting. */
const RETRY_MS_MAX = 15_000;
/** How long the server may take beyond the requested wait. */
const RESPONSE_MS = 30_000;
/** How long a large body may take in addition. */
const BYTES_MS = 5 * 60_000;
const NOT_FOUND = 404;

/** Calls that survive a restart of the server: a lost connection is retried forever. */
export class RetryingServer {
  private isLost = false;

  constructor(
    private readonly target: HttpTarget,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Sends a request until there is a response; null if the process is stopped. `passable`: a status of an error that is returned.
   * @throws StartupError for a rejection.
   */
  async call(
    method: string,
    path: string,
    { body, waitMs = 0, passable }: { body?: JsonObject; waitMs?: number; passable?: number } = {},
  ): Promise<JsonObject | null> {
    for (let pauseMs = RETRY_MS; !this.signal.aborted; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
      const response = await this.attempt(method, path, waitMs, body);
      if (response === null) return null;
      const trouble = typeof response === "string" ? response : problemOf(response, passable);
      if (typeof response !== "string" && trouble === null) {
        this.back();
        return response.body ?? {};
      }
      this.lost(trouble ?? "");
      await this.pause(pauseMs);
    }
    return null;
  }

  /** The bytes at a path; null when there are none any more, or the process is stopped. @throws StartupError as {@link call} */
  async bytes(path: string): Promise<Uint8Array | null> {
    for (let pauseMs = RETRY_MS; !this.signal.aborted; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
      const pieces: Uint8Array[] = [];
      const response = await this.attempt("GET", path, BYTES_MS, undefined, (piece) =>
        pieces.push(piece.slice()),
      );
      if (response === null) return null;
      if (typeof response !== "string" && response.status === 200) {
        this.back();
        return Buffer.concat(pieces);
      }
      const trouble = typeof response === "string" ? response : problemOf(response, NOT_FOUND);
      if (trouble === null) return null;
      this.lost(trouble);
      await this.pause(pauseMs);
    }
    return null;
  }

  /** The response, or why there is none; null when the process is stopped first. */
  private async attempt(
    method: string,
    path: string,
    waitMs: number,
    body?: JsonObject,
    onBody?: (bytes: Uint8Array) => void,
  ): Promise<HttpResponse | string | null> {
    const pending = ask({ ...this.target, timeoutMs: waitMs + RESPONSE_MS }, method, path, body, onBody);
    return unlessAborted(
      pending.catch((error) => {
        if (error instanceof NoResponseError) return error.message;
        throw error;
      }),
      this.signal,
    );
  }

  private lost(why: string): void {
    if (!this.isLost) printError(`Connection lost: ${why} Retrying until it is back.`);
    this.isLost = true;
  }

  private back(): void {
    if (this.isLost) printError("Connection is back.");
    this.isLost = false;
  }

  private pause(ms: number): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = realTimeout(ms, resolve);
    return unlessAborted(promise, this.signal).finally(cancel);
  }
}

/** The result of the work; null as soon as the process is stopped. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const end = () => resolve(null);
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", end));
}

/** Why a request is to be retried; null for a response. @throws StartupError for a rejection */
function problemOf({ status, body }: HttpResponse, passable?: number): string | null {
  if (status === 429 || status >= 500) return `the server returned status ${status}.`;
  if (status >= 300 && status !== passable) throw rejection(status, body ?? {});
  if (body === null && status !== 204)
    throw new StartupError(`This is not a Ninefold server: it returned ${status} without JSON.`);
  return null;
}
