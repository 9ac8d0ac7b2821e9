import {
  assertAllowedFrom,
  assertStillValid,
  type Caller,
  hasScope,
} from "../../../kernel/callers/caller.ts";
import { bytesToUuid } from "../../../kernel/data/uuid.ts";
import { ApiError } from "../../../kernel/errors.ts";
import type { OpenCall } from "../../../kernel/http/requests/call.ts";
import { EventStreams } from "../../../kernel/http/responses/event-stream.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { monotonicMs, realTimeout } from "../../../kernel/time/clock.ts";
import type { FlagService } from "../service.ts";
import {
  CAPACITY_RETRY_SECONDS,
  eventVersion,
  openingEvent,
  PING_MS,
  STREAMS_MAX,
  STREAMS_PER_KEY_MAX,
} from "./domain.ts";
import { type Listener, Listeners } from "./listeners.ts";
import { type NamedKeys, StreamTokens } from "./tokens.ts";
import { RecentVersions } from "./versions.ts";

export interface OfrepStreamDeps extends Pick<Kernel, "clock" | "ids" | "vault" | "changes" | "metrics"> {
  readonly flags: Pick<FlagService, "version">;
  readonly keys: NamedKeys;
}

/** The streams that notify OFREP's clients of changes. Each project with listeners has one entry. */
export class OfrepStreams {
  private readonly tokens: StreamTokens;
  private readonly recentVersions = new RecentVersions(monotonicMs);
  private readonly streams: EventStreams;
  private readonly projects = new Map<
    number,
    { readonly listeners: Listeners; readonly leave: () => void }
  >();

  constructor(private readonly deps: OfrepStreamDeps) {
    this.tokens = new StreamTokens(deps.vault, deps.keys);
    this.streams = new EventStreams({
      streamsMax: STREAMS_MAX,
      perCredentialMax: STREAMS_PER_KEY_MAX,
      heartbeatMs: PING_MS,
      heartbeat: ": ping\n\n",
      after: realTimeout,
      retryAfterSeconds: CAPACITY_RETRY_SECONDS,
    });
    const { streams } = this;
    deps.metrics.number("ninefold_flag_streams", "Open OFREP streams of flags.", () => streams.size);
  }

  /**
   * Opens a stream and returns its body.
   * @throws ApiError `unauthorized`, `forbidden`, `rate_limit_exceeded`, `service_unavailable`
   */
  begin(
    call: OpenCall,
    query: { token?: string; lastEventId?: string },
  ): ReadableStream<Uint8Array> | string {
    const { ids, flags } = this.deps;
    const name = this.tokens.nameIn(query.token ?? "");
    const from = call.clientAddress;
    const caller = name && this.callerOf(name, from);
    if (name === null || caller === null) {
      throw new ApiError(
        "unauthorized",
        "The token is not valid, or its key is no longer active. Use the token of a new bulk evaluation.",
      );
    }
    const { ref } = caller.project;
    const listener = { keyId: bytesToUuid(name), seesServerOnly: seesServerOnly(caller) };
    const knownVersion =
      eventVersion(call.request.headers.get("last-event-id")) ??
      eventVersion(query.lastEventId) ??
      this.recentVersions.known(nameOf(caller), flags.version(ref, listener));
    return this.streams.begin(call, {
      credential: caller.credential,
      accountRef: caller.account.ref,
      begin: openingEvent(knownVersion, ids.fraction()),
      reauthorize: () => this.assertMayListen(name, from, ref),
      attach: (stream) => this.listen(caller, { ...listener, stream, knownVersion }),
    });
  }

  /** Returns the stream token of a caller; null for a browser session, because the console has another stream. */
  tokenFor(caller: Caller): string | null {
    const token = this.tokens.of(caller);
    if (token === null) return null;
    const version = this.deps.flags.version(caller.project.ref, { seesServerOnly: seesServerOnly(caller) });
    this.recentVersions.note(nameOf(caller), version);
    return token;
  }

  /** Ends all streams and rejects new ones when the server stops. */
  stop(): void {
    this.streams.stop();
  }

  private callerOf(name: Uint8Array, from: string): Caller | null {
    const caller = this.deps.keys.callerOf(name);
    if (caller === null) return null;
    assertStillValid(caller);
    assertAllowedFrom(caller, from);
    return caller;
  }

  /** Also detects a change of the account's default project. */
  private assertMayListen(name: Uint8Array, from: string, projectRef: number): void {
    if (this.callerOf(name, from)?.project.ref === projectRef) return;
    throw new ApiError("unauthorized", "This key is no longer active.");
  }

  private listen(caller: Caller, listener: Listener): () => void {
    const { ref } = caller.project;
    const project = this.projects.get(ref) ?? this.open(caller);
    project.listeners.add(listener);
    return () => {
      project.listeners.remove(listener);
      if (project.listeners.size > 0) return;
      project.leave();
      this.projects.delete(ref);
    };
  }

  private open({ account, project }: Caller) {
    const { changes, clock, flags } = this.deps;
    const listeners = new Listeners(
      (listener) => flags.version(project.ref, listener),
      () => clock.now(),
    );
    const leave = changes.listen({ accountRef: account.ref, projectRef: project.ref }, (area, id) => {
      if (area === "gate") listeners.flagsChanged();
      else if (area === "keys" && id !== null) listeners.keyChanged(id);
      // The end of an account or project is always audited.
      else if (area === "audit") listeners.ownerChanged();
    });
    const opened = { listeners, leave };
    this.projects.set(project.ref, opened);
    return opened;
  }
}

/** Whether a caller can see server-only flags. */
export function seesServerOnly(caller: Caller): boolean {
  return hasScope(caller, "gate:read");
}

/** Identifies the flags that a caller can see. */
function nameOf(caller: Caller): string {
  return `${caller.project.ref}/${seesServerOnly(caller)}`;
}
