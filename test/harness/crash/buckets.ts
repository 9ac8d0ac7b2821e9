import { entriesSince } from "./changes.ts";
import type { Random } from "./random.ts";
import { inParallel } from "./target.ts";
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

const BUCKETS = 8;
/** Longest wait for pending events: attempts interrupted by a kill are repeated at the start. */
const FORWARDED_WITHIN_MS = 30_000;
const CREDITS = 1_000_000_000_000;
const READERS = 8;
/** Maximum of random additional bytes of a body, so that some rows use overflow pages. */
const PADDING_MAX = 6_000;
/** Share of acknowledged events that are read completely. */
const READ_BACK = 0.05;

/** Repeats are detected by their number; without a secret nothing is verified. */
const NOTICING = {
  provider: "custom",
  signature: { header: "x-signature", algorithm: "hmac-sha256", template: "{body}", event_id: "/number" },
  deduplicate_hours: 168,
};

/** Retries of live buckets: a kill between two attempts of an event must not end them. */
const RETRYING = { retry_schedule: ["1s", "1s", "1s", "2s", "2s"] };
/** Share of the events whose first attempt the target rejects. */
const REJECTED_FIRST = 0.1;

/** The target of buckets that do not forward. */
const NOWHERE = "http://127.0.0.1:9/";

function isReadBack(id: string): boolean {
  return Bun.hash.crc32(id) % 1000 < READ_BACK * 1000;
}

interface Counts {
  readonly pending: number;
  readonly delivered: number;
  readonly failed: number;
}

/** A bucket with the sent and the stored events. */
interface Inbox {
  id: string;
  /** Whether it forwards its events; others get events with invalid signatures. */
  live: boolean;
  /** Event ids acknowledged since the last verification, with their bodies. */
  acknowledged: Map<string, string>;
  /** Bodies without a response, by their number. */
  inDoubt: Map<number, string>;
  /** The newest event seen so far. */
  newest: string;
  events: number;
}

/**
 * Webhooks to several buckets, half of them live. After every crash each contains every acknowledged event once,
 * unchanged and charged; and events of a live bucket have reached its target.
 */
export class BucketWorkload extends RecordedOfAccount implements Workload {
  readonly name = "buckets";
  readonly weight = 6;
  private readonly inboxes: Inbox[] = [];
  /** Events that reached the target. */
  private readonly forwarded = new Set<string>();
  private sent = 0;
  private readonly forwards: boolean;

  /** Without `forwards` no bucket is live: only requests cause changes. */
  constructor(forwards = true) {
    super();
    this.forwards = forwards;
  }

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "buckets@example.com", CREDITS);
    const target_url = this.forwards ? this.listen() : NOWHERE;
    for (let index = 0; index < BUCKETS; index += 1) {
      const live = this.forwards && index % 2 === 0;
      const secured = { target_url, provider: "github", signing_secret: "secret" };
      const created = await this.ask(
        target,
        "POST",
        "/v1/catch/buckets",
        live ? { target_url, ...NOTICING, ...RETRYING } : secured,
      );
      const id = String(created["id"]);
      await this.ask(target, "PATCH", `/v1/catch/buckets/${id}`, { state: "live" });
      this.inboxes.push({ id, live, acknowledged: new Map(), inDoubt: new Map(), newest: "", events: 0 });
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const inbox = random.pick(this.inboxes);
    this.sent += 1;
    const number = this.sent;
    const body = { number, padding: "x".repeat(random.below(PADDING_MAX)) };
    const text = JSON.stringify(body);
    const request: TargetRequest = { method: "POST", path: `/v1/catch/${inbox.id}`, key: this.key, body };
    // In doubt until it is acknowledged: a kill can happen in between.
    inbox.inDoubt.set(number, text);
    const response = await target.send(request);
    if (response === null) {
      this.counts.inDoubt += 1;
      return;
    }
    inbox.inDoubt.delete(number);
    if (response.status === UNAVAILABLE) return;
    this.counts.acknowledged += 1;
    const { status, event_id: eventId } = bodyOf(response);
    if (response.status === 200 && status === "accepted") inbox.acknowledged.set(String(eventId), text);
    else this.problem(inbox, `unexpected response ${response.status} ${response.text}`);
  }

  async verify(target: Target): Promise<string[]> {
    await inParallel(this.inboxes, READERS, (inbox) => this.verifyInbox(target, inbox));
    await this.verifyCharges(target);
    return this.problems.splice(0);
  }

  private async verifyInbox(target: Target, inbox: Inbox): Promise<void> {
    const fresh = await this.takeNew(target, inbox);
    for (const [index, id] of fresh.entries()) {
      const text = inbox.acknowledged.get(id);
      inbox.acknowledged.delete(id);
      if (text === undefined) await this.explain(target, inbox, id);
      else if (index === 0 || isReadBack(id)) {
        if ((await this.readBack(target, inbox, id)) !== text)
          this.problem(inbox, `${id} is not as it was sent`);
        await this.verifyRepeat(target, inbox, id, text);
      }
    }
    for (const id of inbox.acknowledged.keys())
      this.problem(inbox, `${id} was acknowledged and is not there`);
    inbox.acknowledged.clear();
    inbox.inDoubt.clear();
    inbox.events += fresh.length;
    const { pending, delivered, failed } = await this.settledCounts(target, inbox);
    const expected = inbox.live
      ? { pending: 0, delivered: inbox.events, failed: 0 }
      : { pending: 0, delivered: 0, failed: inbox.events };
    if (pending !== expected.pending || delivered !== expected.delivered || failed !== expected.failed) {
      const counted = `${pending} pending, ${delivered} delivered, ${failed} failed`;
      this.problem(inbox, `it counts ${counted}, and holds ${inbox.events}`);
    }
    for (const id of fresh) {
      if (this.forwarded.has(id) !== inbox.live) {
        this.problem(
          inbox,
          inbox.live ? `${id} was not sent on` : `${id} was sent on though it is not authentic`,
        );
      }
    }
    for (const id of fresh.filter(isReadBack)) await this.verifyAttempts(target, inbox, id);
  }

  /** An event and its deduplication record are one transaction: the bucket does not accept it twice. */
  private async verifyRepeat(target: Target, inbox: Inbox, id: string, text: string): Promise<void> {
    if (!inbox.live) return;
    const { status, event_id } = await this.ask(target, "POST", `/v1/catch/${inbox.id}`, JSON.parse(text));
    if (status !== "duplicate" || event_id !== id)
      this.problem(inbox, `a repeat of ${id} was ${status} as ${event_id}`);
  }

  /** An attempt and its outcome are one transaction: the log has as many attempts as the event counts. */
  private async verifyAttempts(target: Target, inbox: Inbox, id: string): Promise<void> {
    const event = await this.ask(target, "GET", `/v1/catch/${inbox.id}/events/${id}`);
    const log = event["attempt_log"] as { response_status: number | null }[];
    const isDelivered = log.at(-1)?.response_status === 200;
    if (log.length !== event["attempts"] || isDelivered !== inbox.live)
      this.problem(inbox, `${id} counts ${event["attempts"]} attempts, its log has ${JSON.stringify(log)}`);
  }

  /** A bucket's counts after it has forwarded everything. */
  private settledCounts(target: Target, inbox: Inbox): Promise<Counts> {
    const look = async () => (await this.ask(target, "GET", `/v1/catch/buckets/${inbox.id}`))["events"];
    return settled(FORWARDED_WITHIN_MS, look as () => Promise<Counts>, ({ pending }) => pending === 0);
  }

  private listen(): string {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => this.receive(request) });
    server.unref();
    return `http://127.0.0.1:${server.port}/`;
  }

  private receive(request: Request): Response {
    const id = request.headers.get("x-svc-event-id") ?? "";
    const isRejected = !this.forwarded.has(id) && Bun.hash.crc32(id) % 1000 < REJECTED_FIRST * 1000;
    this.forwarded.add(id);
    return new Response(null, { status: isRejected ? 503 : 200 });
  }

  /** An event that was not acknowledged must be one in doubt, and exist once. */
  private async explain(target: Target, inbox: Inbox, id: string): Promise<void> {
    const text = await this.readBack(target, inbox, id);
    const { number } = JSON.parse(text) as { number: number };
    if (inbox.inDoubt.get(number) === text) this.counts.happened += 1;
    else this.problem(inbox, `${id} is there for no reason`);
    inbox.inDoubt.delete(number);
  }

  private async readBack(target: Target, inbox: Inbox, id: string): Promise<string> {
    const event = await this.ask(target, "GET", `/v1/catch/${inbox.id}/events/${id}`);
    return Buffer.from(String(event["payload_base64"]), "base64").toString("utf8");
  }

  /** Ids of the events since the last verification. */
  private async takeNew(target: Target, inbox: Inbox): Promise<string[]> {
    const found: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await this.ask(target, "GET", `/v1/catch/${inbox.id}/events?limit=100${cursor}`);
      const ids = (page["events"] as { id: string }[]).map(({ id }) => id);
      const fresh = ids.filter((id) => id > inbox.newest);
      found.push(...fresh);
      if (fresh.length < ids.length || page["cursor"] === null) break;
      cursor = `&cursor=${encodeURIComponent(String(page["cursor"]))}`;
    }
    if (new Set(found).size < found.length) this.problem(inbox, "an event is listed twice");
    inbox.newest = found[0] ?? inbox.newest;
    return found;
  }

  /** Charge and event are one transaction: the account was charged for exactly the existing events. */
  private async verifyCharges(target: Target): Promise<void> {
    const entries = await entriesSince(target, "/v1/meter/history", this.key, 0);
    const paid = entries
      .filter(({ operation }) => operation === "catch.ingest")
      .reduce((sum, { count }) => sum + (count ?? 0), 0);
    const held = this.inboxes.reduce((sum, { events }) => sum + events, 0);
    if (paid !== held) this.problems.push(`buckets: ${held} events are there, ${paid} were paid for`);
  }

  private problem(inbox: Inbox, what: string): void {
    this.problems.push(`bucket ${inbox.id}: ${what}`);
  }
}
