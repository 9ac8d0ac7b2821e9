import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  settled,
  type Target,
  type TargetRequest,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const CREDITS = 1_000_000_000;
const MIB = 1024 * 1024;
/** Bytes of a body above those of a usual event: up to eight pieces. */
const MORE_BYTES_MAX = MIB;
/** Longest wait for forwards, and for the removal of pieces without an event. */
const SETTLED_WITHIN_MS = 30_000;
/** Retries: a kill between two attempts of an event must not end them. */
const RETRYING = { retry_schedule: ["1s", "1s", "1s", "2s", "2s"] };

/**
 * Webhooks that are stored in pieces, to a live bucket. After every crash it contains every acknowledged event once, with all of its
 * bytes; its target has received exactly these; and no piece is stored without an event.
 */
export class LargeEventWorkload extends RecordedOfAccount implements Workload {
  readonly name = "large events";
  readonly weight = 1;
  private bucketId = "";
  /** Hashes of the bodies that were acknowledged since the last verification, by event. */
  private readonly acknowledged = new Map<string, string>();
  /** Hashes of bodies without a response. */
  private readonly inDoubt = new Set<string>();
  /** Hashes of what the target received, by event. */
  private readonly forwarded = new Map<string, string>();
  private newest = "";
  private sent = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "large@example.com", CREDITS);
    const terms = { target_url: this.listen(), state: "live", ...RETRYING };
    this.bucketId = String((await this.ask(target, "POST", "/v1/catch/buckets", terms))["id"]);
  }

  async act(target: Target, random: Random): Promise<void> {
    this.sent += 1;
    const body = { number: this.sent, padding: "x".repeat(MIB + random.below(MORE_BYTES_MAX)) };
    const hash = hashOf(Buffer.from(JSON.stringify(body)));
    const request: TargetRequest = { method: "POST", path: `/v1/in/${this.bucketId}`, key: this.key, body };
    this.inDoubt.add(hash);
    const response = await target.send(request);
    if (response === null) {
      this.counts.inDoubt += 1;
      return;
    }
    this.inDoubt.delete(hash);
    // Too many at the same time, or a disk that does not write.
    if (response.status === UNAVAILABLE) return;
    this.counts.acknowledged += 1;
    const { status, event_id } = bodyOf(response);
    if (status === "accepted") this.acknowledged.set(String(event_id), hash);
    else this.problems.push(`large events: unexpected response ${response.status} ${response.text}`);
  }

  async verify(target: Target): Promise<string[]> {
    const path = `/v1/catch/${this.bucketId}/events`;
    const fresh = await this.takeNew(target, path);
    for (const id of fresh) {
      const hash = String((await this.ask(target, "GET", `${path}/${id}`))["sha256"]);
      const expected = this.acknowledged.get(id);
      this.acknowledged.delete(id);
      if (expected === undefined && this.inDoubt.delete(hash)) this.counts.happened += 1;
      else if (expected !== hash) this.problems.push(`large events: ${id} is not as it was sent`);
      const raw = await target.ask({ method: "GET", path: `${path}/${id}/raw`, key: this.key });
      if (hashOf(Buffer.from(raw.text)) !== hash)
        this.problems.push(`large events: the bytes of ${id} are not those that were hashed`);
    }
    for (const id of this.acknowledged.keys())
      this.problems.push(`large events: ${id} was acknowledged and is not there`);
    this.acknowledged.clear();
    this.inDoubt.clear();
    await this.verifyForwards(target, path, fresh);
    const orphans = await settled(
      SETTLED_WITHIN_MS,
      async () => orphansIn(target.folder),
      (count) => count === 0,
    );
    if (orphans > 0) this.problems.push(`large events: ${orphans} pieces have no event`);
    return this.problems.splice(0);
  }

  private async verifyForwards(target: Target, path: string, fresh: readonly string[]): Promise<void> {
    const look = async () =>
      (await this.ask(target, "GET", `/v1/catch/buckets/${this.bucketId}`))["events"] as { pending: number };
    const { pending } = await settled(SETTLED_WITHIN_MS, look, (events) => events.pending === 0);
    if (pending > 0) this.problems.push(`large events: ${pending} are still pending`);
    for (const id of fresh) {
      const { sha256 } = await this.ask(target, "GET", `${path}/${id}`);
      if (this.forwarded.get(id) !== sha256)
        this.problems.push(`large events: ${id} was not forwarded as it was sent`);
    }
  }

  private async takeNew(target: Target, path: string): Promise<string[]> {
    const found: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await this.ask(target, "GET", `${path}?limit=100${cursor}`);
      const ids = (page["events"] as { id: string }[]).map(({ id }) => id);
      const fresh = ids.filter((id) => id > this.newest);
      found.push(...fresh);
      if (fresh.length < ids.length || page["cursor"] === null) break;
      cursor = `&cursor=${encodeURIComponent(String(page["cursor"]))}`;
    }
    this.newest = found[0] ?? this.newest;
    return found;
  }

  private listen(): string {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        const id = request.headers.get("x-svc-event-id") ?? "";
        this.forwarded.set(id, hashOf(Buffer.from(await request.arrayBuffer())));
        return new Response(null);
      },
    });
    server.unref();
    return `http://127.0.0.1:${server.port}/`;
  }
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Pieces in the file of a running server that no event has. */
export function orphansIn(folder: string): number {
  const db = new Database(join(folder, "ninefold.db"), { readonly: true });
  try {
    const row = db
      .query(
        "SELECT count(*) AS n FROM catch_pieces WHERE upload NOT IN (SELECT upload FROM catch_payloads WHERE upload IS NOT NULL)",
      )
      .get() as { readonly n: number };
    return row.n;
  } finally {
    db.close();
  }
}
