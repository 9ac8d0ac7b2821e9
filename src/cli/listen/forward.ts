import type { JsonObject } from "../../api/http-api.ts";
import { sendAttempt } from "../../kernel/outbound/attempt.ts";
import { OutboundClient } from "../../kernel/outbound/client.ts";
import { headerError, type RequestHeaders, withDefaults } from "../../kernel/outbound/headers.ts";
import { hopsHeader } from "../../kernel/outbound/hops.ts";
import type { ListenOptions } from "./options.ts";

/** Headers of an event that are about its way to the bucket: those of the request to the local server are its own. */
const OF_SENDER: ReadonlySet<string> = new Set(["host", "accept-encoding"]);

/** An event of the stream. */
export interface StreamedEvent extends JsonObject {
  readonly id: string;
  readonly method: string;
  /** Path after the bucket's, starting with `/`; may be empty. */
  readonly path: string;
  /** Without `?`. */
  readonly query: string;
  readonly provider: string | null;
  readonly verification: string;
  readonly received_at: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
  /** Null for a body above 1 MiB, whose bytes are at `raw_url`. */
  readonly payload_base64: string | null;
  readonly raw_url?: string;
}

/** The result of an event. */
export interface Forwarded {
  readonly response_status: number | null;
  readonly error: string | null;
  readonly duration_ms: number | null;
}

/** Printed only. */
export const PRINTED: Forwarded = { response_status: null, error: null, duration_ms: null };

/** Headers in which senders name the event type. */
const TYPE_HEADERS = ["x-github-event", "x-shopify-topic"];

/** The event type, if the sender names one. */
export function typeOf({ event_type, headers, payload }: StreamedEvent): string | null {
  if (typeof event_type === "string") return event_type;
  for (const name of TYPE_HEADERS) if (headers[name] !== undefined) return headers[name];
  const { type } = (payload ?? {}) as { readonly type?: unknown };
  return typeof type === "string" ? type : null;
}

/** Whether forwarding failed. */
export function hasFailed({ response_status, error }: Forwarded): boolean {
  return error !== null || (response_status !== null && response_status >= 400);
}

/** A URL with the path and query of the event appended. */
function withPathOf({ path, query }: Pick<StreamedEvent, "path" | "query">, base: string): string {
  const url = new URL(base);
  const above = url.pathname.endsWith("/") && path !== "" ? url.pathname.slice(0, -1) : url.pathname;
  url.pathname = above + path;
  url.search = [url.search.slice(1), query].filter((part) => part !== "").join("&");
  return url.href;
}

/** Forwards events unchanged to a local server. */
export class Forwarding {
  // The user chooses the target, so any address is allowed.
  private readonly outbound = new OutboundClient(["all"], { trustLoopback: true });

  constructor(
    private readonly options: Pick<ListenOptions, "forwardTo" | "headers" | "timeoutMs" | "keepsPath">,
  ) {}

  /** Sends an event once with its original method. `body`: its exact bytes. */
  async hand(event: StreamedEvent, body: Uint8Array, url: string): Promise<Forwarded> {
    const { timeoutMs } = this.options;
    const outcome = await sendAttempt(this.outbound, {
      account: null,
      method: event.method,
      url: this.options.keepsPath ? withPathOf(event, url) : url,
      headers: this.headersOf(event),
      body,
      timeoutMs,
    });
    const duration_ms = outcome.latencyMs;
    if (!outcome.answered) return { response_status: null, error: outcome.failure.message, duration_ms };
    return { response_status: outcome.status, error: null, duration_ms };
  }

  close(): void {
    this.outbound.close();
  }

  /**
   * The original headers, including signatures, except those that cannot be forwarded. Headers of Ninefold override
   * them.
   */
  private headersOf({ id, headers, received_at }: StreamedEvent): RequestHeaders {
    const sendable = Object.entries(headers).filter(
      ([name, value]) => !OF_SENDER.has(name.toLowerCase()) && headerError(name, value) === null,
    );
    const ours = {
      "X-Svc-Event-Id": id,
      "X-Svc-Timestamp": String(Date.parse(received_at)),
      ...hopsHeader(headers),
    };
    return withDefaults(ours, withDefaults(this.options.headers, Object.fromEntries(sendable)));
  }
}
