import type { Random } from "./random.ts";
import { inParallel } from "./target.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  settled,
  type Target,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const CREDITS = 1_000_000_000;
const READERS = 8;
/** A closed port: a replay fails and leaves the event unchanged. */
const TARGET_URL = "http://127.0.0.1:9/";
/** Shares of the steps that acknowledge an event and that replay a few; the others send one. */
const SHARE_OF_ACKS = 0.4;
const SHARE_OF_REPLAYS = 0.01;
const REPLAYED_AT_ONCE = 20;
/** Longest wait for the end of a replay. */
const REPLAYED_WITHIN_MS = 60_000;

type Result = "delivered" | "failed";

/** The known state of an event's acknowledgement. */
interface Acknowledged {
  readonly result: Result;
  /** Whether the acknowledgement had a response; otherwise it is in doubt. */
  readonly isSure: boolean;
}

/**
 * A bucket whose events are fetched. After every crash its stream has each accepted event, once and in order, after the
 * last read cursor; acknowledged events stay acknowledged; and each replay ends.
 */
export class PullBucketWorkload extends RecordedOfAccount implements Workload {
  readonly name = "pull bucket";
  readonly weight = 3;
  private path = "";
  private cursor = "beginning";
  private sent = 0;
  private accepted = new Set<string>();
  private inDoubt = new Set<number>();
  /** Events without an acknowledgement. */
  private readonly open: string[] = [];
  private acknowledged = new Map<string, Acknowledged>();
  private replays: { readonly id: string; readonly matched: number }[] = [];

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "pull@example.com", CREDITS);
    const created = await this.ask(target, "POST", "/v1/catch/buckets", {
      target_url: TARGET_URL,
      delivery: "pull",
    });
    this.path = `/v1/catch/${created["id"]}`;
    await this.ask(target, "PATCH", `/v1/catch/buckets/${created["id"]}`, { state: "live" });
  }

  act(target: Target, random: Random): Promise<void> {
    if (random.chance(SHARE_OF_REPLAYS) && this.open.length > 0) return this.replay(target);
    if (random.chance(SHARE_OF_ACKS) && this.open.length > 0) return this.acknowledge(target, random);
    return this.send(target);
  }

  async verify(target: Target): Promise<string[]> {
    const problems = await this.followStream(target);
    await inParallel([...this.acknowledged], READERS, async ([id, { result, isSure }]) => {
      const read = { method: "GET", path: `${this.path}/events/${id}`, key: this.key } as const;
      const { status = "not there" } = bodyOf(await target.ask(read));
      if (status === result && !isSure) this.counts.happened += 1;
      const isRight = status === result || (status === "pending" && !isSure);
      if (!isRight) problems.push(`pull bucket: ${id} was acknowledged as ${result} and is ${status}`);
    });
    this.acknowledged = new Map();
    for (const { id, matched } of this.replays.splice(0)) {
      const look = () => this.ask(target, "GET", `${this.path}/replays/${id}`);
      const ended = await settled(REPLAYED_WITHIN_MS, look, (replay) => replay["status"] !== "running");
      const { status, failed, skipped } = ended;
      if (status !== "done" || Number(failed) + Number(skipped) !== matched)
        problems.push(`pull bucket: replay ${id} of ${matched} came to ${JSON.stringify(ended)}`);
    }
    return problems;
  }

  private async send(target: Target): Promise<void> {
    this.sent += 1;
    const number = this.sent;
    this.inDoubt.add(number);
    const response = await this.attempt(target, this.path, { number });
    if (response === null) return;
    this.inDoubt.delete(number);
    // Alternatively, the request exceeded the bucket's limit per minute.
    if (response === "rejected" || response["status"] !== "accepted") return;
    const id = String(response["event_id"]);
    this.accepted.add(id);
    this.open.push(id);
  }

  private async acknowledge(target: Target, random: Random): Promise<void> {
    const [id = ""] = this.open.splice(random.below(this.open.length), 1);
    const result: Result = random.chance(0.5) ? "delivered" : "failed";
    this.acknowledged.set(id, { result, isSure: false });
    const response = await this.attempt(target, `${this.path}/events/${id}/ack`, { result });
    if (response === "rejected") this.acknowledged.delete(id);
    else if (response !== null) this.acknowledged.set(id, { result, isSure: true });
  }

  private async replay(target: Target): Promise<void> {
    const event_ids = this.open.slice(0, REPLAYED_AT_ONCE);
    const response = await this.attempt(target, `${this.path}/replays`, { event_ids, per_second: 100 });
    if (response === null || response === "rejected") return;
    this.replays.push({ id: String(response["replay_id"]), matched: Number(response["matched"]) });
  }

  /** The response to a change; null without one, `rejected` when nothing was changed. */
  private async attempt(
    target: Target,
    path: string,
    body: object,
  ): Promise<Record<string, unknown> | "rejected" | null> {
    const response = await target.send({ method: "POST", path, key: this.key, body });
    if (response === null) {
      this.counts.inDoubt += 1;
      return null;
    }
    // 409: the maximum number of replays is running.
    if (response.status === UNAVAILABLE || response.status === 409) return "rejected";
    if (response.status >= 300) throw new Error(`${path}: ${response.status} ${response.text}`);
    this.counts.acknowledged += 1;
    return bodyOf(response);
  }

  /** Reads on from the last cursor, and compares the events with those accepted since. */
  private async followStream(target: Target): Promise<string[]> {
    const problems: string[] = [];
    for (let last = ""; last !== this.cursor; ) {
      last = this.cursor;
      const page = await this.ask(target, "GET", `${this.path}/stream?after=${last}&wait_ms=0&limit=100`);
      for (const { id, payload } of page["events"] as { id: string; payload: { number: number } }[]) {
        if (this.cursor !== "beginning" && id <= this.cursor)
          problems.push(`pull bucket: ${id} is out of order`);
        this.cursor = id;
        if (this.accepted.delete(id)) continue;
        if (this.inDoubt.has(payload.number)) this.counts.happened += 1;
        else problems.push(`pull bucket: ${id} is there for no reason`);
      }
    }
    for (const id of this.accepted) problems.push(`pull bucket: ${id} was accepted and is not in the stream`);
    this.accepted = new Set();
    this.inDoubt = new Set();
    return problems;
  }
}
