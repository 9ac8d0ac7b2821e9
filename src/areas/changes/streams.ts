import type { Changes } from "../../kernel/changes.ts";
import type { Cancel, Clock } from "../../kernel/clock.ts";
import { ApiError, refusalBy } from "../../kernel/errors.ts";
import type { Call } from "../../kernel/http/call.ts";
import { hasScope } from "../../kernel/http/caller.ts";
import {
  add,
  type Changed,
  COALESCED_MS,
  HEARTBEAT_MS,
  MESSAGES_BEHIND_MAX,
  message,
  STREAMS_MAX,
  STREAMS_PER_CREDENTIAL_MAX,
} from "./domain.ts";

/** What streams are built on. */
export interface StreamDeps {
  readonly clock: Clock;
  readonly changes: Changes;
}

/** How long a client waits before it comes back, and what begins every stream. */
const BEGIN = "retry: 2000\n\n";
const HEARTBEAT = ": still here\n\n";
const UTF8 = new TextEncoder();

/** The streams that are open. */
export class Streams {
  private readonly open = new Set<Stream>();
  private isStopping = false;

  constructor(private readonly deps: StreamDeps) {}

  /**
   * The body of a stream that tells the caller what changes.
   * @throws ApiError `rate_limit_exceeded`, `service_unavailable` when the server stops.
   */
  begin(call: Call): ReadableStream<Uint8Array> | string {
    if (this.isStopping) throw new ApiError("service_unavailable", "The server is shutting down.");
    // Nobody would ever read it.
    if (call.request.method === "HEAD") return "";
    this.assertRoom(call.caller.credential);
    // A silent answer would be cut.
    call.liftIdleTimeout();
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        const stream = new Stream(this.deps, call, controller, () => this.open.delete(stream));
        this.open.add(stream);
      },
      // What it was cancelled by has been told by the request's signal, but for what never began.
      cancel: () => {},
    });
  }

  /** Ends all streams, and begins no others: the server stops. */
  stop(): void {
    this.isStopping = true;
    for (const stream of [...this.open]) stream.end();
  }

  private assertRoom(credential: string): void {
    const own = [...this.open].filter((stream) => stream.credential === credential).length;
    if (own < STREAMS_PER_CREDENTIAL_MAX && this.open.size < STREAMS_MAX) return;
    const whose = own < STREAMS_PER_CREDENTIAL_MAX ? "this server" : "this key or session";
    throw new ApiError("rate_limit_exceeded", `Too many streams of ${whose} are open. Close one first.`, {
      retryAfterSeconds: HEARTBEAT_MS / 1000,
    });
  }
}

/** One client that listens. */
class Stream {
  readonly credential: string;
  private changed: Changed = new Map();
  private cancelMessage: Cancel | null = null;
  private cancelHeartbeat: Cancel;
  private readonly leave: () => void;
  private hasEnded = false;

  constructor(
    private readonly deps: StreamDeps,
    private readonly call: Call,
    private readonly controller: ReadableStreamDefaultController<Uint8Array>,
    private readonly onEnd: () => void,
  ) {
    const { account, project, credential } = call.caller;
    this.credential = credential;
    this.leave = deps.changes.listen({ accountRef: account.ref, projectRef: project.ref }, (area, id) =>
      this.note(area, id),
    );
    this.cancelHeartbeat = this.heartbeatLater();
    call.request.signal.addEventListener("abort", () => this.end(), { once: true });
    this.send(BEGIN);
  }

  end(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.leave();
    this.cancelHeartbeat();
    this.cancelMessage?.();
    this.onEnd();
    try {
      this.controller.close();
    } catch {
      // The client has closed it already.
    }
  }

  private note(area: string, id: string | null): void {
    if (!hasScope(this.call.caller, `${area}:read`)) return;
    add(this.changed, area, id);
    this.cancelMessage ??= this.deps.clock.after(COALESCED_MS, () => {
      this.cancelMessage = null;
      const { changed } = this;
      this.changed = new Map();
      this.send(message(this.deps.clock.now(), changed));
    });
  }

  private heartbeatLater(): Cancel {
    return this.deps.clock.after(HEARTBEAT_MS, () => {
      this.cancelHeartbeat = this.heartbeatLater();
      // The key may have been revoked, or its account suspended.
      if (refusalBy(() => this.call.lookAgain()) === null) this.send(HEARTBEAT);
      else this.end();
    });
  }

  private send(text: string): void {
    if (this.hasEnded) return;
    const { desiredSize } = this.controller;
    if (desiredSize === null || desiredSize < -MESSAGES_BEHIND_MAX) this.end();
    else this.controller.enqueue(UTF8.encode(text));
  }
}
