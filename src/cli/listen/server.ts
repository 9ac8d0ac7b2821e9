import { StartupError } from "../../kernel/errors.ts";
import { realTimeout } from "../../kernel/time/clock.ts";
import {
  ask,
  type HttpAnswer,
  type HttpTarget,
  type JsonObject,
  refusal,
  Unanswered,
} from "../api/http-api.ts";
import { printError } from "../output.ts";

/** First wait before reconnecting; it doubles each time up to {@link RETRY_MS_MAX}. */
const RETRY_MS = 500;
/** Longest wait before reconnecting. */
const RETRY_MS_MAX = 15_000;
/** How long the server may take beyond the requested wait. */
const ANSWER_MS = 30_000;

/** Calls that survive a restart of the server: a lost connection is retried forever. */
export class PatientServer {
  private isLost = false;

  constructor(
    private readonly target: HttpTarget,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Sends a request until it is answered; null when the process is told to end. `passable`: a refusal that is an answer.
   * @throws StartupError for a refusal.
   */
  async call(
    method: string,
    path: string,
    { body, waitMs = 0, passable }: { body?: JsonObject; waitMs?: number; passable?: number } = {},
  ): Promise<JsonObject | null> {
    for (let pauseMs = RETRY_MS; !this.signal.aborted; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
      const answer = await this.attempt(method, path, waitMs, body);
      if (answer === null) return null;
      const trouble = typeof answer === "string" ? answer : troubleOf(answer, passable);
      if (typeof answer !== "string" && trouble === null) {
        this.back();
        return answer.body ?? {};
      }
      this.lost(trouble ?? "");
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
  ): Promise<HttpAnswer | string | null> {
    const asked = ask({ ...this.target, timeoutMs: waitMs + ANSWER_MS }, method, path, body);
    return unlessAborted(
      asked.catch((error) => {
        if (error instanceof Unanswered) return error.message;
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
function troubleOf({ status, body }: HttpAnswer, passable?: number): string | null {
  if (status === 429 || status >= 500) return `the server returned status ${status}.`;
  if (status >= 300 && status !== passable) throw refusal(status, body ?? {});
  if (body === null && status !== 204)
    throw new StartupError(`This is not a Ninefold server: it returned ${status} without JSON.`);
  return null;
}
