import { hasScope } from "../../kernel/callers/caller.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { type EventStream, EventStreams } from "../../kernel/http/responses/event-stream.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { SharedChange } from "../../kernel/projects/changes.ts";
import { type Cancel, realTimeout } from "../../kernel/time/clock.ts";
import {
  addChange,
  type Changed,
  COALESCED_MS,
  changesMessage,
  HEARTBEAT_MS,
  STREAMS_MAX,
  STREAMS_PER_CREDENTIAL_MAX,
} from "./domain.ts";

export type StreamDeps = Pick<Kernel, "clock" | "changes" | "metrics">;

/** The start of every stream: the reconnection time of the client, in milliseconds. */
const STREAM_START = "retry: 2000\n\n";

/** The streams of changes. They use real time, also with a test clock. */
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
   * Starts a stream of the changes that the caller can see. Returns its body.
   * @throws ApiError `rate_limit_exceeded`, `service_unavailable` when the server stops.
   */
  begin(call: Call): ReadableStream<Uint8Array> | string {
    const { account, project, credential } = call.caller;
    return this.streams.begin(call, {
      credential,
      accountRef: account.ref,
      begin: STREAM_START,
      reauthorize: () => call.reauthorize(),
      attach: (stream) => {
        const pending = new PendingChanges(this.deps, call, stream);
        const listened = { accountRef: account.ref, projectRef: project.ref };
        const unsubscribe = this.deps.changes.listen(listened, (area, id, shared) =>
          pending.record(area, id, shared),
        );
        return () => {
          unsubscribe();
          pending.stop();
        };
      },
    });
  }

  /** Ends all streams and starts no others. Call when the server stops. */
  stop(): void {
    this.streams.stop();
  }
}

/** The changes since the last message of a stream. */
class PendingChanges {
  private changed: Changed = new Map();
  private cancelMessage: Cancel | null = null;

  constructor(
    private readonly deps: StreamDeps,
    private readonly call: Call,
    private readonly stream: EventStream,
  ) {}

  record(area: string, id: string | null, shared?: SharedChange): void {
    // Revoking, pausing and suspending the caller write audit entries, so a check at these is enough.
    if (area === "audit" && !this.stream.reauthorize()) return;
    if (!hasScope(this.call.caller, `${area}:read`)) return;
    if (shared !== undefined && !this.canSee(area, shared)) return;
    addChange(this.changed, area, id);
    this.cancelMessage ??= realTimeout(COALESCED_MS, () => {
      this.cancelMessage = null;
      const { changed } = this;
      this.changed = new Map();
      if (this.stream.reauthorize()) this.stream.send(changesMessage(this.deps.clock.now(), changed));
    });
  }

  /** Whether the caller can read the changed object: outside its project only credentials of the account can. */
  private canSee(area: string, { projectId }: SharedChange): boolean {
    const { project, projectBound, scopes } = this.call.caller;
    if (projectId === project.id) return true;
    return !projectBound && (area !== "audit" || scopes.has("*"));
  }

  stop(): void {
    this.cancelMessage?.();
  }
}
