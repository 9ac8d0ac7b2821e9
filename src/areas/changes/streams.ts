import { hasScope } from "../../kernel/http/access/caller.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { type EventStream, EventStreams } from "../../kernel/http/responses/event-stream.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { SharedChange } from "../../kernel/projects/changes.ts";
import { type Cancel, realTimeout } from "../../kernel/time/clock.ts";
import {
  add,
  type Changed,
  COALESCED_MS,
  HEARTBEAT_MS,
  message,
  STREAMS_MAX,
  STREAMS_PER_CREDENTIAL_MAX,
} from "./domain.ts";

/** What streams are built on. */
export type StreamDeps = Pick<Kernel, "clock" | "changes" | "metrics">;

/** How long a client waits before it comes back, and what begins every stream. */
const BEGIN = "retry: 2000\n\n";

/** The streams of changes. They go by real time, also on a clock that stands: a page shows what is. */
export class ChangeStreams {
  private readonly streams: EventStreams;

  constructor(private readonly deps: StreamDeps) {
    this.streams = new EventStreams({
      streamsMax: STREAMS_MAX,
      perCredentialMax: STREAMS_PER_CREDENTIAL_MAX,
      heartbeatMs: HEARTBEAT_MS,
      heartbeat: ": still here\n\n",
      after: realTimeout,
      retryAfterSeconds: HEARTBEAT_MS / 1000,
    });
    const { streams } = this;
    deps.metrics.number("ninefold_change_streams", "Open streams of changes.", () => streams.size);
  }

  /**
   * The body of a stream that tells the caller what changes.
   * @throws ApiError `rate_limit_exceeded`, `service_unavailable` when the server stops.
   */
  begin(call: Call): ReadableStream<Uint8Array> | string {
    const { account, project, credential } = call.caller;
    return this.streams.begin(call, {
      credential,
      accountRef: account.ref,
      begin: BEGIN,
      reauthorize: () => call.reauthorize(),
      attach: (stream) => {
        const telling = new Telling(this.deps, call, stream);
        const listened = { accountRef: account.ref, projectRef: project.ref };
        const leave = this.deps.changes.listen(listened, (area, id, shared) =>
          telling.note(area, id, shared),
        );
        return () => {
          leave();
          telling.stop();
        };
      },
    });
  }

  /** Ends all streams, and begins no others: the server stops. */
  stop(): void {
    this.streams.stop();
  }
}

/** What has changed since the last message of a stream. */
class Telling {
  private changed: Changed = new Map();
  private cancelMessage: Cancel | null = null;

  constructor(
    private readonly deps: StreamDeps,
    private readonly call: Call,
    private readonly stream: EventStream,
  ) {}

  note(area: string, id: string | null, shared?: SharedChange): void {
    // What ends the caller (its key revoked or paused, its account suspended) has an entry in the audit log.
    if (area === "audit" && !this.stream.reauthorize()) return;
    if (!hasScope(this.call.caller, `${area}:read`)) return;
    if (shared !== undefined && !this.sees(area, shared)) return;
    add(this.changed, area, id);
    this.cancelMessage ??= realTimeout(COALESCED_MS, () => {
      this.cancelMessage = null;
      const { changed } = this;
      this.changed = new Map();
      if (this.stream.reauthorize()) this.stream.send(message(this.deps.clock.now(), changed));
    });
  }

  /** Whether the caller could read what has changed: what is not its project's, credentials of the account alone. */
  private sees(area: string, { projectId }: SharedChange): boolean {
    const { project, projectBound, scopes } = this.call.caller;
    if (projectId === project.id) return true;
    return !projectBound && (area !== "audit" || scopes.has("*"));
  }

  stop(): void {
    this.cancelMessage?.();
  }
}
