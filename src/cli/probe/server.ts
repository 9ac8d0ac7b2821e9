import { version } from "../../../package.json" with { type: "json" };
import type { ProbeResult, ProbeResultsAccepted, ProbeWork } from "../../areas/monitors/probes/schema.ts";
import { StartupError } from "../../kernel/errors.ts";
import type { extraAuthorities } from "../../kernel/outbound/authorities.ts";
import { OutboundClient } from "../../kernel/outbound/client.ts";
import { monotonicMs, wallMs } from "../../kernel/time/clock.ts";

/** How long the server waits for a change: short enough for every proxy. */
const WAIT_MS = 25_000;
/** How long the server may take beyond the requested wait. */
const RESPONSE_MS = 20_000;
/** Timeout of a look whether the server takes connections. */
const REACH_MS = 2_000;
/** How long what it has shown counts: when a line fails, many checks fail with it. */
const REACHED_MS = 1_000;
/** Longest response with work: a page of monitors with their bodies. */
const RESPONSE_BYTES_MAX = 8 * 1024 * 1024;

/** Why a request was not accepted. */
export interface Trouble {
  readonly message: string;
  /** Whether the same request may succeed later. */
  readonly isTemporary: boolean;
  /** Shortest wait before the next request, in milliseconds. */
  readonly pauseMs: number;
  /** Whether the server only asks for a pause: nothing is wrong. */
  readonly isPause: boolean;
}

/** A response, or why there is none. */
export type Answer<T> = { readonly body: T } | { readonly trouble: Trouble };

/** The token is not accepted: nothing will change that. */
class TokenRefused extends StartupError {}

/** The server of a probe. At most two requests are open: one waits for work, and one sends results. */
export class ProbeServer {
  private readonly outbound: OutboundClient;
  /** Identifies this process. */
  private readonly run = crypto.randomUUID();
  private reached: { readonly at: number; readonly isReached: Promise<boolean> } | null = null;

  /** `authorities`: who may have issued its certificate; the public authorities if it is empty. */
  constructor(
    readonly url: string,
    private readonly token: string,
    authorities: ReturnType<typeof extraAuthorities> = {},
  ) {
    this.outbound = new OutboundClient(["all"], { ...authorities, trustLoopback: true });
  }

  /** The work after a position, or the next change. @throws TokenRefused */
  work(cursor: string | null, queue: number, waits: boolean): Promise<Answer<ProbeWork>> {
    const waitMs = waits ? WAIT_MS : 0;
    const query = new URLSearchParams({
      wait_ms: String(waitMs),
      version,
      queue: String(queue),
      time_ms: String(wallMs()),
      run: this.run,
      sent_ms: String(Math.round(monotonicMs())),
      ...(cursor === null ? {} : { after: cursor }),
    });
    return this.call<ProbeWork>("GET", `/v1/probe/work?${query}`, null, waitMs + RESPONSE_MS);
  }

  /** Sends results. @throws TokenRefused */
  send(results: readonly ProbeResult[]): Promise<Answer<ProbeResultsAccepted>> {
    return this.call<ProbeResultsAccepted>(
      "POST",
      "/v1/probe/results",
      { results, run: this.run, sent_ms: Math.round(monotonicMs()) },
      RESPONSE_MS,
    );
  }

  /** Whether the server takes connections now: otherwise this machine may be offline. Concurrent callers share the look. */
  isReached(): Promise<boolean> {
    const now = monotonicMs();
    if (this.reached === null || now - this.reached.at >= REACHED_MS) {
      const isReached = this.outbound.reaches(this.url, {
        account: null,
        timeoutMs: REACH_MS,
        anywhere: true,
      });
      this.reached = { at: now, isReached };
    }
    return this.reached.isReached;
  }

  /** Ends all connections. */
  close(): void {
    this.outbound.close();
  }

  private async call<T>(
    method: string,
    path: string,
    body: object | null,
    timeoutMs: number,
  ): Promise<Answer<T>> {
    const outcome = await this.outbound.send({
      account: null,
      method,
      url: `${this.url}${path}`,
      headers: {
        authorization: `Bearer ${this.token}`,
        "user-agent": `ninefold-probe/${version}`,
        ...(body === null ? {} : { "content-type": "application/json" }),
      },
      body: body === null ? null : Buffer.from(JSON.stringify(body)),
      timeoutMs,
      bodyBytesMax: RESPONSE_BYTES_MAX,
      keepsBody: true,
      longerBody: "fail",
      redirectsMax: 0,
      reuseConnection: true,
    });
    if (!outcome.answered) return troubleOf(outcome.failure.message, true);
    const { status, headers: received } = outcome;
    const text = Buffer.from(outcome.body).toString("utf8");
    if (status === 401)
      throw new TokenRefused(
        `${this.url} rejects the token: the probe was deleted, or the token is that of another server. Create a probe there with POST /v1/pulse/probes or in the console, and write its token to the file.`,
      );
    if (status === 200) {
      const parsed = parsedObject(text);
      return parsed === null
        ? troubleOf("this is not a Ninefold server: it returned no JSON", true)
        : { body: parsed as T };
    }
    if (status === 429) {
      const seconds = Number(received["retry-after"] ?? "1") || 1;
      return troubleOf(messageIn(text), true, seconds * 1_000, true);
    }
    // An update takes somebody's time; a suspension ends at once, and votes lapse soon.
    const pauseMs = status === 409 ? 60_000 : status === 403 ? 15_000 : 0;
    // Anything else than these two is of a proxy, or of a node that does not serve: the results are good.
    const isTemporary = status !== 400 && status !== 413;
    const hint =
      status === 404 ? " Check that --url is the address of the server, without a path of its API." : "";
    return troubleOf(`the server returned ${status}: ${messageIn(text)}${hint}`, isTemporary, pauseMs);
  }
}

function troubleOf(
  message: string,
  isTemporary: boolean,
  pauseMs = 0,
  isPause = false,
): { readonly trouble: Trouble } {
  return { trouble: { message, isTemporary, pauseMs, isPause } };
}

function parsedObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/** The message of an error. */
function messageIn(text: string): string {
  const body = parsedObject(text) as { readonly error?: { readonly message?: unknown } } | null;
  const message = body?.error?.message;
  return typeof message === "string" ? message : text.slice(0, 200);
}
