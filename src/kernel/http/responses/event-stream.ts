import { ApiError } from "../../errors.ts";
import type { Cancel } from "../../time/clock.ts";
import { ConnectionSlots } from "../access/connection-slots.ts";
import type { StreamedCall } from "./text-stream.ts";

/** Headers of every stream of events. */
export const EVENT_STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  // Proxies of nginx's kind would keep messages back until there are many.
  "x-accel-buffering": "no",
};

/**
 * Bytes that a reader may be behind, in addition to the socket's buffer. A reader that reads nothing is disconnected, and
 * starts again when it reconnects.
 */
export const WAITING_BYTES_MAX = 64 * 1024;
/** Seconds that a reader has to take what waits for it once its stream has ended; then its connection is closed. */
const LAST_BYTES_SECONDS = 10;

const UTF8 = new TextEncoder();

/** What streams of one kind have in common. */
export interface EventStreamOptions {
  /** Streams of the server: each holds a connection, and some kilobytes. */
  readonly streamsMax: number;
  /** Streams of one credential. */
  readonly perCredentialMax: number;
  /** A comment goes out so often, and the credential is looked at again: proxies close what stays silent. */
  readonly heartbeatMs: number;
  /** That comment. */
  readonly heartbeat: string;
  /** By which time heartbeats go. */
  readonly after: (delayMs: number, run: () => void) => Cancel;
  /** `Retry-After` when no stream is free. */
  readonly retryAfterSeconds: number;
}

/** The call that a stream of events responds to. */
export interface ListeningCall extends Pick<StreamedCall, "request" | "confirmation"> {
  /** Sets how many seconds it may wait without traffic; 0: without limit. */
  setIdleTimeout(seconds: number): void;
}

/** Somebody who is about to listen. */
export interface EventReader {
  readonly credential: string;
  /** The account that the stream counts for. */
  readonly accountRef: number;
  /** What its stream begins with. */
  readonly begin: string;
  /** Looks whether it may still listen. @throws ApiError */
  readonly reauthorize: () => void;
  /** Hands over the stream once it is open. Returns what is to be done when it has ended. */
  readonly attach: (stream: EventStream) => () => void;
}

/** The open streams of one kind: Server-Sent Events. */
export class EventStreams {
  private readonly open = new Set<EventStream>();
  private readonly counts = new Map<string, number>();
  private readonly places: ConnectionSlots;
  private isStopping = false;

  constructor(private readonly terms: EventStreamOptions) {
    const { streamsMax, retryAfterSeconds } = terms;
    this.places = new ConnectionSlots({ slotsMax: streamsMax, held: "streams", retryAfterSeconds });
  }

  /** Streams that are open. */
  get size(): number {
    return this.open.size;
  }

  /**
   * The body of a response that stays open.
   * @throws ApiError `rate_limit_exceeded`, `service_unavailable` when the server stops.
   */
  begin(call: ListeningCall, reader: EventReader): ReadableStream<Uint8Array> | string {
    if (this.isStopping) throw new ApiError("service_unavailable", "The server is shutting down.");
    // Nobody would ever read it.
    if (call.request.method === "HEAD") return "";
    this.assertSpace(reader);
    // A silent response would time out.
    call.setIdleTimeout(0);
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => this.add(call, reader, controller),
        // The request's signal has reported the cancellation, unless the stream never began.
        cancel: () => {},
      },
      new ByteLengthQueuingStrategy({ highWaterMark: WAITING_BYTES_MAX }),
    );
  }

  /** Ends all streams, and begins no others: the server stops. */
  stop(): void {
    this.isStopping = true;
    for (const stream of [...this.open]) stream.end();
  }

  private add(call: ListeningCall, reader: EventReader, controller: Controller): void {
    const { credential, accountRef } = reader;
    const release = this.places.take(accountRef);
    const stream = new EventStream(this.terms, call, controller, reader, () => {
      release();
      this.open.delete(stream);
      const left = this.countOf(credential) - 1;
      if (left > 0) this.counts.set(credential, left);
      else this.counts.delete(credential);
    });
    this.open.add(stream);
    this.counts.set(credential, this.countOf(credential) + 1);
    try {
      stream.begin();
    } catch (error) {
      stream.end();
      throw error;
    }
  }

  private assertSpace({ credential, accountRef }: EventReader): void {
    const { perCredentialMax, retryAfterSeconds } = this.terms;
    this.places.assertFree(accountRef);
    if (this.countOf(credential) < perCredentialMax) return;
    throw new ApiError(
      "rate_limit_exceeded",
      "Too many streams of this key or session are open. Close one first.",
      { retryAfterSeconds },
    );
  }

  private countOf(credential: string): number {
    return this.counts.get(credential) ?? 0;
  }
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** One client that listens. */
export class EventStream {
  private cancelHeartbeat: Cancel | null = null;
  private leave: (() => void) | null = null;
  private isOver = false;
  /** Bytes that were sent, and those of them that its reader had taken by the last heartbeat. */
  private sent = 0;
  private takenBefore = -1;

  constructor(
    private readonly terms: EventStreamOptions,
    private readonly call: ListeningCall,
    private readonly controller: Controller,
    private readonly reader: EventReader,
    private readonly onEnd: () => void,
  ) {}

  /** Whether nobody listens any more. */
  get hasEnded(): boolean {
    return this.isOver;
  }

  /** Sends what it begins with, and listens from then on. */
  begin(): void {
    this.call.request.signal.addEventListener("abort", () => this.end(), { once: true });
    this.heartbeatLater();
    this.send(this.reader.begin);
    const leave = this.reader.attach(this);
    // The initial messages may have ended it.
    if (this.isOver) leave();
    else this.leave = leave;
  }

  /** Sends a piece of text once it shows nothing that is unconfirmed. A reader that is too far behind is cut off instead. */
  send(text: string): void {
    const { confirmation } = this.call;
    if (confirmation === null) this.sendNow(text);
    else void confirmation.then(() => this.sendNow(text));
  }

  private sendNow(text: string): void {
    if (this.isOver) return;
    const { desiredSize } = this.controller;
    if (desiredSize === null || desiredSize < 0) {
      this.end();
      return;
    }
    const bytes = UTF8.encode(text);
    this.sent += bytes.length;
    this.controller.enqueue(bytes);
  }

  /** Ends the stream if its credential is no longer authorized, for example revoked. Returns whether it continues. */
  reauthorize(): boolean {
    if (this.isOver) return false;
    try {
      this.reader.reauthorize();
      return true;
    } catch {
      // Also when a failing disk prevents the check: the client reconnects, and gets the reason.
      this.end();
      return false;
    }
  }

  /** Ends it. What has been sent still goes out. */
  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.cancelHeartbeat?.();
    this.leave?.();
    this.onEnd();
    this.call.setIdleTimeout(LAST_BYTES_SECONDS);
    try {
      this.controller.close();
    } catch {
      // The client has closed it already.
    }
  }

  /** Whether something has waited since the last heartbeat, and nothing of it was taken. */
  private takesNothing(): boolean {
    const waiting = WAITING_BYTES_MAX - (this.controller.desiredSize ?? WAITING_BYTES_MAX);
    const taken = this.sent - waiting;
    const isStuck = waiting > 0 && taken === this.takenBefore;
    this.takenBefore = taken;
    return isStuck;
  }

  private heartbeatLater(): void {
    const { after, heartbeatMs, heartbeat } = this.terms;
    this.cancelHeartbeat = after(heartbeatMs, () => {
      this.heartbeatLater();
      if (this.takesNothing()) this.end();
      else if (this.reauthorize()) this.send(heartbeat);
    });
  }
}
