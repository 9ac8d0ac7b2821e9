import type { Cancel } from "../../kernel/clock.ts";
import type { Call } from "../../kernel/http/call.ts";
import { hasScope } from "../../kernel/http/caller.ts";
import { type EventStream, EventStreams } from "../../kernel/http/event-stream.ts";
import type { Kernel } from "../../kernel/kernel.ts";
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

/** The streams of changes. */
export class ChangeStreams {
  private readonly streams: EventStreams;

  constructor(private readonly deps: StreamDeps) {
    this.streams = new EventStreams({
      streamsMax: STREAMS_MAX,
      perCredentialMax: STREAMS_PER_CREDENTIAL_MAX,
      heartbeatMs: HEARTBEAT_MS,
      heartbeat: ": still here\n\n",
      after: (delayMs, run) => deps.clock.after(delayMs, run),
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
      begin: BEGIN,
      lookAgain: () => call.lookAgain(),
      attach: (stream) => {
        const telling = new Telling(this.deps, call, stream);
        const listened = { accountRef: account.ref, projectRef: project.ref };
        const leave = this.deps.changes.listen(listened, (area, id) => telling.note(area, id));
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

  note(area: string, id: string | null): void {
    if (!hasScope(this.call.caller, `${area}:read`)) return;
    add(this.changed, area, id);
    this.cancelMessage ??= this.deps.clock.after(COALESCED_MS, () => {
      this.cancelMessage = null;
      const { changed } = this;
      this.changed = new Map();
      this.stream.send(message(this.deps.clock.now(), changed));
    });
  }

  stop(): void {
    this.cancelMessage?.();
  }
}
