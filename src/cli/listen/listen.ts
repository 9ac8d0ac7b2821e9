import type { JsonObject } from "../../api/http-api.ts";
import { DEFAULT_URL, readClientSettings } from "../../config/sources.ts";
import { StartupError } from "../../kernel/errors.ts";
import { createSystemClock, realTimeout } from "../../kernel/time/clock.ts";
import { pathSegment } from "../api.ts";
import type { Arguments } from "../arguments.ts";
import { interruption, oneLine, print, printError } from "../output.ts";
import { formatDuration } from "../progress.ts";
import { type Forwarded, Forwarding, hasFailed, PRINTED, type StreamedEvent, typeOf } from "./forward.ts";
import { type ListenOptions, listenOptions, readCursor, writeCursor } from "./options.ts";
import { RetryingServer, unlessAborted } from "./server.ts";

/** How long the server waits for an event: short enough for every proxy. */
const WAIT_MS = 25_000;
/** Events per request. */
const PAGE_LIMIT = 100;
/** How long the end of a session waits for a server that does not respond. */
const LAST_CALL_MS = 10_000;
/** Providers with timestamps in their signatures, and the age from which their libraries reject them. */
const DATED: ReadonlySet<string | null> = new Set(["stripe", "svix"]);
const DATED_MS = 5 * 60 * 1000;

/** `ninefold listen`: forwards a bucket's events to a local server. */
export async function listen(args: Arguments): Promise<number> {
  const options = listenOptions(args);
  const target = readClientSettings({ url: args.text("--url") });
  if (target.key === null)
    throw new StartupError("Set NINEFOLD_API_KEY or NINEFOLD_API_KEY_FILE to call the server.");
  const signal = interruption();
  const server = new RetryingServer(target, signal);
  const { bucketId } = options;
  if (bucketId !== null)
    return new Session(options, server, signal, { bucketId, url: target.url ?? DEFAULT_URL }).run();
  const bucket = await server.call("POST", "/v1/catch/buckets", { body: { delivery: "pull" } });
  if (bucket === null) return 0;
  const id = String(bucket["id"]);
  printError(`Created for this session: ${bucket["ingest_url"]}`);
  try {
    return await new Session(options, server, signal, { bucketId: id, url: target.url ?? DEFAULT_URL }).run();
  } finally {
    // With its own signal: the session's is already aborted.
    const ending = new AbortController();
    realTimeout(LAST_CALL_MS, () => ending.abort());
    const last = new RetryingServer(target, ending.signal);
    await last.call("DELETE", `/v1/catch/buckets/${pathSegment("BUCKET", id)}`, { passable: 404 });
  }
}

/** From the first event to the last. */
class Session {
  private readonly path: string;
  private readonly bucketId: string;
  /** Address of the bucket in the console. */
  private readonly console: string;
  private readonly handing: Forwarding;
  private handled = 0;
  private failed = 0;
  private isHinted = false;

  constructor(
    private readonly options: ListenOptions,
    private readonly server: RetryingServer,
    private readonly signal: AbortSignal,
    of: { readonly bucketId: string; readonly url: string },
  ) {
    const { bucketId } = of;
    this.bucketId = bucketId;
    this.console = `${of.url.replace(/\/$/, "")}/dashboard/#/catch/${encodeURIComponent(bucketId)}`;
    this.path = `/v1/catch/${pathSegment("BUCKET", bucketId)}`;
    this.handing = new Forwarding(options);
  }

  /** Resolves to the exit code. */
  async run(): Promise<number> {
    try {
      const cursor = await this.begin();
      if (cursor !== null) await this.follow(cursor);
    } finally {
      this.handing.close();
    }
    const { once } = this.options;
    return once !== null && this.handled >= once && this.failed > 0 ? 1 : 0;
  }

  /** The start position; null if the session has ended. */
  private async begin(): Promise<string | null> {
    const { acknowledges, resume, after, forwardTo } = this.options;
    if (acknowledges) {
      const bucket = await this.server.call(
        "GET",
        `/v1/catch/buckets/${pathSegment("BUCKET", this.bucketId)}`,
      );
      if (bucket === null) return null;
      if (bucket["delivery"] !== "pull")
        throw new StartupError(
          `--ack requires a bucket with the delivery pull, and ${this.bucketId} forwards its events.`,
        );
    }
    const stored = resume === null ? null : readCursor(resume);
    // Stored immediately, so that no event before the first handled one is missed.
    const now = stored === null && after === "now" ? await this.page(after, 0) : null;
    if (this.signal.aborted) return null;
    const cursor = stored ?? (now === null ? after : String(now["cursor"]));
    this.keep(cursor);
    const where = forwardTo === null ? "" : `, forwarding to ${forwardTo}`;
    // For people only: scripts read events from standard output.
    if (process.stderr.isTTY) printError(`Listening to ${this.bucketId}${where}. Press Ctrl-C to stop.`);
    return cursor;
  }

  private page(after: string, waitMs: number): Promise<JsonObject | null> {
    const query = `after=${encodeURIComponent(after)}&wait_ms=${waitMs}&limit=${PAGE_LIMIT}`;
    return this.server.call("GET", `${this.path}/stream?${query}`, { waitMs });
  }

  private async follow(begun: string): Promise<void> {
    for (let cursor = begun; ; ) {
      const page = await this.page(cursor, WAIT_MS);
      if (page === null) return;
      for (const event of page["events"] as readonly StreamedEvent[]) {
        if (this.isSkipped(event)) continue;
        if (!(await this.take(event))) return;
        this.keep(event.id);
        if (this.handled === this.options.once) return;
      }
      const next = String(page["cursor"]);
      if (next !== cursor) this.keep(next);
      cursor = next;
    }
  }

  private keep(cursor: string): void {
    if (this.options.resume !== null) writeCursor(this.options.resume, cursor);
  }

  private isSkipped(event: StreamedEvent): boolean {
    const { eventType, skipsInvalid } = this.options;
    if (skipsInvalid && event.verification === "invalid") return true;
    return eventType !== null && typeOf(event) !== eventType;
  }

  /** Handles an event. Returns whether it was completed. */
  private async take(event: StreamedEvent): Promise<boolean> {
    const { forwardTo, acknowledges } = this.options;
    if (this.signal.aborted) return false;
    const body = forwardTo === null ? null : await this.bytesOf(event);
    if (this.signal.aborted) return false;
    const handing =
      forwardTo === null || body === null
        ? Promise.resolve(PRINTED)
        : this.handing.hand(event, body, forwardTo);
    const handled = await unlessAborted(handing, this.signal);
    if (handled === null) return false;
    this.show(event, handled);
    if (acknowledges) {
      const { response_status, error, duration_ms } = handled;
      const body = {
        result: hasFailed(handled) ? "failed" : "delivered",
        ...(response_status === null ? {} : { response_status }),
        ...(error === null ? {} : { error: error.slice(0, 500) }),
        ...(duration_ms === null ? {} : { duration_ms }),
      };
      // 404: the event was deleted to free space.
      const path = `${this.path}/events/${pathSegment("event", event.id)}/ack`;
      if ((await this.server.call("POST", path, { body, passable: 404 })) === null) return false;
    }
    this.handled += 1;
    if (hasFailed(handled)) this.failed += 1;
    return true;
  }

  /** The exact bytes of an event's body; null when it is deleted, or the process is stopped. */
  private async bytesOf({ payload_base64, raw_url }: StreamedEvent): Promise<Uint8Array | null> {
    if (payload_base64 !== null) return Buffer.from(payload_base64, "base64");
    return raw_url === undefined ? null : await this.server.bytes(raw_url);
  }

  private show(event: StreamedEvent, handled: Forwarded): void {
    const { isJson, prints, forwardTo } = this.options;
    const { id, provider, verification, received_at } = event;
    const event_type = typeOf(event);
    if (isJson) {
      print(`${JSON.stringify({ event_id: id, event_type, verification, ...handled })}\n`);
    } else {
      const { response_status, error, duration_ms } = handled;
      const outcome = forwardTo === null ? [] : [`→ ${response_status ?? error}`, `${duration_ms} ms`];
      const cells = [
        received_at.slice(11, 23),
        id,
        provider ?? "-",
        event_type ?? "-",
        verification,
        ...outcome,
      ];
      print(`${oneLine(cells.join("  "))}\n`);
      // For people only, who want to see what it was and where there is more.
      if (process.stdout.isTTY && prints !== "body")
        for (const line of aboutEvent(event, this.console)) print(`  ${oneLine(line)}\n`);
      if (prints === "headers")
        for (const [name, value] of Object.entries(event.headers))
          print(`  ${oneLine(`${name}: ${value}`)}\n`);
      if (prints === "body") for (const line of bodyOf(event).split("\n")) print(`  ${oneLine(line)}\n`);
    }
    this.hint(event, handled);
  }

  /** Printed once: why a library rejects a valid signature. */
  private hint({ id, provider, received_at }: StreamedEvent, handled: Forwarded): void {
    const ageMs = createSystemClock().now() - Date.parse(received_at);
    if (this.isHinted || !hasFailed(handled) || !DATED.has(provider) || ageMs < DATED_MS) return;
    this.isHinted = true;
    printError(
      `Hint: ${id} was received ${formatDuration(ageMs)} ago, and libraries of ${provider} reject signatures older than 5 min. Increase the tolerance during development.`,
    );
  }
}

/** Longest start of a body in a line. */
const PREVIEW_LENGTH = 100;

/** The method and the start of the body of an event, and its address in the console. `at`: that of its bucket. */
export function aboutEvent(
  event: Pick<StreamedEvent, "id" | "method" | "payload_base64">,
  at: string,
): string[] {
  const start = bodyOf(event)
    .slice(0, 2 * PREVIEW_LENGTH)
    .replaceAll(/\s+/g, " ")
    .trim();
  return [`${event.method} ${start.slice(0, PREVIEW_LENGTH)}`.trim(), `${at}/${event.id}`];
}

function bodyOf({ payload_base64 }: Pick<StreamedEvent, "payload_base64">): string {
  return payload_base64 === null ? "(above 1 MiB)" : Buffer.from(payload_base64, "base64").toString("utf8");
}
