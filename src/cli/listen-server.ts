import { StartupError } from "../kernel/errors.ts";
import { realTimeout } from "../kernel/time/clock.ts";
import { ask, type HttpAnswer, type HttpTarget, type JsonObject, refusal, Unanswered } from "./http-api.ts";
import { printError } from "./output.ts";

/** First wait before a lost connection is tried again; doubled each time... */
const RETRY_MS = 500;
/** ...up to this one. */
const RETRY_MS_MAX = 15_000;
/** How long the server may take beyond the wait that it was asked for. */
const ANSWER_MS = 30_000;

/** Calls that outlast a server's restart: a connection that is lost is tried again for ever. */
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

  /** The answer, or why there is none; null when the process is told to end first. */
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
    if (!this.isLost) printError(`Connection lost: ${why} It is tried again until it is back.`);
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

/** What work resolves to, or null as soon as the process is told to end. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const end = () => resolve(null);
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", end));
}

/** Why a request is to be sent again; null for an answer. @throws StartupError for a refusal */
function troubleOf({ status, body }: HttpAnswer, passable?: number): string | null {
  if (status === 429 || status >= 500) return `the server answers with status ${status}.`;
  if (status >= 300 && status !== passable) throw refusal(status, body ?? {});
  if (body === null && status !== 204)
    throw new StartupError(`This is no Ninefold server: it answers ${status} without JSON.`);
  return null;
}
