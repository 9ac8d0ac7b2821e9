import { contentText } from "../../../kernel/data/content.ts";
import type { Below, RequestHeaders } from "../../../kernel/outbound/headers.ts";
import { isPieces, type PieceBody } from "../../../kernel/outbound/piece-body.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { InboundEvent } from "../deliveries/store.ts";

/** The request of an inbound event, which its deliveries repeat. */
export interface EventContent {
  readonly method: string;
  /** What is appended to the endpoint's URL. */
  readonly below: Below | undefined;
  /** Null for a method that has none. */
  readonly body: Uint8Array | PieceBody | null;
  /** Headers of the sender that are forwarded. */
  readonly headers: RequestHeaders;
  /** Headers about the event. */
  readonly eventHeaders: RequestHeaders;
  /** The event's id, which is signed. */
  readonly id: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
}

/** A change of a delivery of an event. */
export interface EventChange {
  /** The attempt that caused it; null for other causes, such as a resend. */
  readonly attempt: { readonly response_status: number | null; readonly error: string | null } | null;
  /** Time of the next attempt, in epoch milliseconds; null when it is not known. */
  readonly retryAt: number | null;
}

/** The area that receives events. */
export interface EventSource {
  /** Whether an event is still stored. */
  has(event: InboundEvent): boolean;
  /** The method that its deliveries have; null when it is deleted. */
  methodOf(event: InboundEvent): string | null;
  /** Credits that a delivery of an event costs, by the size of its body. */
  creditsOf(event: InboundEvent): number;
  /** The request of an event; null when it is deleted. */
  content(event: InboundEvent): EventContent | null;
  /** Called in the unit of work that changes a delivery of an event. */
  changed(tx: Tx, event: InboundEvent, change: EventChange): void;
  /** Ids of some buckets that deliver to an endpoint. */
  bucketsOf(endpointId: string): readonly string[];
  /** Whether a bucket delivers events to an endpoint that contain a secret of their sender. */
  forwardsSecretTo(endpointId: string): boolean;
  /**
   * The bucket that delivers to an endpoint and receives what is sent to `url`; null if there is none. `ownUrls`: starts of
   * this server's URLs.
   */
  loopThrough(endpointId: string, url: string, ownUrls: readonly string[]): string | null;
}

/** The registered source of events: its area sends events through these endpoints, and is built after them. */
export class RegisteredSource {
  private registered: EventSource | null = null;

  /** Registers the source, before the first delivery of an event. */
  register(source: EventSource): void {
    this.registered = source;
  }

  /** The body of an event as text; null when it is deleted, or is not text. */
  textOf(event: InboundEvent): string | null {
    const content = this.current.content(event);
    if (content === null || content.body === null || isPieces(content.body)) return null;
    const { "content-encoding": encoding = null, "content-type": type = null } = content.headers;
    return contentText(content.body, { encoding, type });
  }

  /** The body of an event if it is JSON; null otherwise. */
  jsonOf(event: InboundEvent): string | null {
    const text = this.textOf(event);
    if (text === null) return null;
    try {
      JSON.parse(text);
      return text;
    } catch {
      return null;
    }
  }

  /** @throws Error before it is registered */
  get current(): EventSource {
    if (this.registered === null) throw new Error("no source of events is registered");
    return this.registered;
  }
}
