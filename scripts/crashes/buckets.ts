import { entriesSince } from "./changes.ts";
import { createAccount } from "./meters.ts";
import type { Random } from "./random.ts";
import { inParallel } from "./target.ts";
import { bodyOf, type Tally, type Target, type TargetRequest, type Workload } from "./workload.ts";

const BUCKETS = 8;
const CREDITS = 1_000_000_000_000;
const READERS = 8;
/** Bodies are up to so much longer at random, so that some rows spill over to pages of their own. */
const PADDING_MAX = 6_000;
/** Of the events that were acknowledged, this part is read back whole. */
const READ_BACK = 0.05;

/** A bucket, what it was sent, and what it is known to hold. */
interface Inbox {
  id: string;
  /** Event ids that were acknowledged since the last look, with the bodies that they stand for. */
  acknowledged: Map<string, string>;
  /** Bodies without an answer, by their number. */
  inDoubt: Map<number, string>;
  /** The newest event seen so far. */
  newest: string;
  events: number;
}

/** Webhooks to many buckets: after every crash each holds every event that was acknowledged, once, as it was sent, and paid. */
export class BucketWorkload implements Workload {
  readonly name = "buckets";
  readonly weight = 6;
  private readonly inboxes: Inbox[] = [];
  private key = "";
  private sent = 0;
  private counts = { acknowledged: 0, inDoubt: 0, happened: 0 };
  private problems: string[] = [];

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "buckets@example.com", CREDITS);
    for (let index = 0; index < BUCKETS; index += 1) {
      const body = { target_url: "https://hooks.example.com/", provider: "github", signing_secret: "secret" };
      const made = await this.ask(target, "POST", "/v1/catch/buckets", body);
      const id = String(made["id"]);
      this.inboxes.push({ id, acknowledged: new Map(), inDoubt: new Map(), newest: "", events: 0 });
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const inbox = random.pick(this.inboxes);
    this.sent += 1;
    const number = this.sent;
    const body = { number, padding: "x".repeat(random.below(PADDING_MAX)) };
    const text = JSON.stringify(body);
    const request: TargetRequest = { method: "POST", path: `/v1/catch/${inbox.id}`, key: this.key, body };
    // In doubt until it is answered: the kill may come in between.
    inbox.inDoubt.set(number, text);
    const answer = await target.send(request);
    if (answer === null) {
      this.counts.inDoubt += 1;
      return;
    }
    this.counts.acknowledged += 1;
    inbox.inDoubt.delete(number);
    const { status, event_id: eventId } = bodyOf(answer);
    if (answer.status === 200 && status === "accepted") inbox.acknowledged.set(String(eventId), text);
    else this.problem(inbox, `unexpected answer ${answer.status} ${answer.text}`);
  }

  async verify(target: Target): Promise<string[]> {
    await inParallel(this.inboxes, READERS, (inbox) => this.verifyInbox(target, inbox));
    await this.verifyCharges(target);
    return this.problems.splice(0);
  }

  takeTally(): Tally {
    const counts = this.counts;
    this.counts = { acknowledged: 0, inDoubt: 0, happened: 0 };
    return counts;
  }

  private async verifyInbox(target: Target, inbox: Inbox): Promise<void> {
    const fresh = await this.takeNew(target, inbox);
    for (const id of fresh) {
      const text = inbox.acknowledged.get(id);
      inbox.acknowledged.delete(id);
      if (text === undefined) await this.explain(target, inbox, id);
      else if (Bun.hash.crc32(id) % 1000 < READ_BACK * 1000) {
        if ((await this.readBack(target, inbox, id)) !== text)
          this.problem(inbox, `${id} is not as it was sent`);
      }
    }
    for (const id of inbox.acknowledged.keys())
      this.problem(inbox, `${id} was acknowledged and is not there`);
    inbox.acknowledged.clear();
    inbox.inDoubt.clear();
    inbox.events += fresh.length;
    const { events } = await this.ask(target, "GET", `/v1/catch/buckets/${inbox.id}`);
    const { failed } = events as { failed: number };
    // Nothing is signed, so every event has failed: the bucket says how many it holds.
    if (failed !== inbox.events) this.problem(inbox, `it counts ${failed} events and holds ${inbox.events}`);
  }

  /** An event that nobody was told of must be one in doubt, and that only once. */
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

  /** Ids of the events that came since the last look. */
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

  /** Charge and event are one transaction: the account has paid for exactly the events that are there. */
  private async verifyCharges(target: Target): Promise<void> {
    const entries = await entriesSince(target, "/v1/meter/history", this.key, 0);
    const paid = entries
      .filter(({ operation }) => operation === "catch.ingest")
      .reduce((sum, { count }) => sum + (count ?? 0), 0);
    const held = this.inboxes.reduce((sum, { events }) => sum + events, 0);
    if (paid !== held) this.problems.push(`buckets: ${held} events are there, ${paid} were paid for`);
  }

  private async ask(
    target: Target,
    method: TargetRequest["method"],
    path: string,
    body?: object,
  ): Promise<Record<string, unknown>> {
    const answer = await target.ask({ method, path, key: this.key, ...(body === undefined ? {} : { body }) });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return bodyOf(answer);
  }

  private problem(inbox: Inbox, what: string): void {
    this.problems.push(`bucket ${inbox.id}: ${what}`);
  }
}
