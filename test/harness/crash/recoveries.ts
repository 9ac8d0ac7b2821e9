import type { HttpResponse } from "../processes/connection.ts";
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

const CREDITS = 1_000_000;
/** A closed port. */
const NOBODY = "http://127.0.0.1:9";
/** Messages of a recovery, and how many it sends per second: it takes more than one run of its job. */
const MESSAGES = 4;
const PER_SECOND = 3;
/** Endpoints, each of which is recovered once between two verifications: fewer than recoveries may run. */
const ENDPOINTS = 8;
/** Longest wait until the recoveries and deliveries of a verification are finished. */
const FINISHED_WITHIN_MS = 60_000;

interface Sent {
  readonly id: string;
  /** Whether it is stored; null while that is in doubt. */
  isStored: boolean | null;
}

/** Messages of one type that no endpoint receives when they are sent. */
interface Missed {
  readonly type: string;
  readonly sent: Sent[];
  /** Requests without a response so far. */
  open: number;
}

/** The recovery of missed messages, in doubt without `resendId`. */
interface Recovery {
  readonly missed: Missed;
  readonly endpoint: string;
  resendId: string | null;
}

/**
 * Recoveries of messages that an endpoint has missed, which have an order key in common. Each sends every one of them in one delivery, also if it was interrupted,
 * or requested again under its key; its counts are those of its deliveries, and the balance is that of its charges.
 */
export class RecoveryWorkload extends RecordedOfAccount implements Workload {
  readonly name = "recoveries";
  readonly weight = 2;
  private readonly arrived = new Set<string>();
  private endpoints: string[] = [];
  private types = 0;
  private missed = this.newMissed();
  private ready: Missed[] = [];
  private recoveries: Recovery[] = [];
  /** Credits that verified messages and deliveries have cost. */
  private spent = 0;

  /** `delivers`: whether deliveries are received here; otherwise each fails, and none is retried. */
  constructor(private readonly delivers = true) {
    super();
  }

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "recoveries@example.com", CREDITS);
    const url = this.delivers ? this.listen() : NOBODY;
    const retry_schedule = this.delivers ? Array(20).fill("1s") : [];
    for (let number = 0; number < ENDPOINTS; number += 1) {
      const body = { url, retry_schedule, event_types: ["none"], disable_after_hours: 0 };
      const { endpoint_id } = await this.ask(target, "POST", "/v1/relay/endpoints", body);
      this.endpoints.push(String(endpoint_id));
    }
  }

  act(target: Target, _random: Random): Promise<void> {
    const missed = this.ready.find(({ open }) => open === 0);
    const endpoint = missed === undefined ? undefined : this.endpoints.pop();
    if (missed === undefined || endpoint === undefined) return this.send(target);
    this.ready = this.ready.filter((one) => one !== missed);
    return this.recover(target, { missed, endpoint, resendId: null });
  }

  async verify(target: Target): Promise<string[]> {
    const problems: string[] = [];
    const ended = this.recoveries.splice(0);
    const stored = new Map<Missed, number>();
    for (const missed of [...ended.map((one) => one.missed), ...this.ready, this.missed])
      stored.set(missed, await this.resolve(target, missed, problems));
    for (const recovery of ended) {
      const { missed, endpoint } = recovery;
      problems.push(...(await this.problemsOf(target, recovery, stored.get(missed) ?? 0)));
      this.spent += 2 * (stored.get(missed) ?? 0);
      this.endpoints.unshift(endpoint);
    }
    const waiting = [...this.ready, this.missed].reduce((sum, item) => sum + (stored.get(item) ?? 0), 0);
    const { balance } = await this.ask(target, "GET", "/v1/meter/balance");
    const expected = CREDITS - this.spent - waiting;
    if (balance !== expected) problems.push(`recoveries: the balance is ${balance}, not ${expected}`);
    return problems;
  }

  private newMissed(): Missed {
    this.types += 1;
    return { type: `missed.${this.types}`, sent: [], open: 0 };
  }

  private listen(): string {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request) => {
        this.arrived.add(request.headers.get("webhook-id") ?? "");
        return new Response(null);
      },
    });
    server.unref();
    return `http://127.0.0.1:${server.port}`;
  }

  private async send(target: Target): Promise<void> {
    const { missed } = this;
    const sent: Sent = { id: `${missed.type.replace(".", "-")}-${missed.sent.length}`, isStored: null };
    missed.sent.push(sent);
    missed.open += 1;
    if (missed.sent.length === MESSAGES) {
      this.ready.push(missed);
      this.missed = this.newMissed();
    }
    const body = { event_type: missed.type, message_id: sent.id, payload: {}, order_key: missed.type };
    const response = await target.send({ method: "POST", path: "/v1/relay/messages", key: this.key, body });
    missed.open -= 1;
    if (response === null) {
      this.counts.inDoubt += 1;
      return;
    }
    if (response.status !== 201 && response.status !== UNAVAILABLE)
      throw new Error(`recoveries: unexpected response ${response.status} ${response.text}`);
    sent.isStored = response.status === 201;
    if (sent.isStored) this.counts.acknowledged += 1;
  }

  /** From now on the endpoint receives the type of the messages, which it has missed. */
  private async recover(target: Target, recovery: Recovery): Promise<void> {
    this.recoveries.push(recovery);
    for (const request of this.requestsOf(recovery)) {
      const response = await target.send(request);
      if (response === null) this.counts.inDoubt += 1;
      if (response === null || response.status === UNAVAILABLE) return;
      this.acknowledge(recovery, response);
    }
  }

  private requestsOf({ missed: { type }, endpoint }: Recovery): TargetRequest[] {
    const path = `/v1/relay/endpoints/${endpoint}`;
    const { key } = this;
    const body = { since: 0, per_second: PER_SECOND };
    return [
      { method: "PATCH", path, key, body: { event_types: [type] } },
      { method: "POST", path: `${path}/recover`, key, body, idempotencyKey: type },
    ];
  }

  private acknowledge(recovery: Recovery, response: HttpResponse): void {
    if (response.status >= 300)
      throw new Error(`recoveries: unexpected response ${response.status} ${response.text}`);
    this.counts.acknowledged += 1;
    if (response.status === 202) recovery.resendId = String(bodyOf(response)["resend_id"]);
  }

  /** Finds out whether messages in doubt are stored. Returns the number of those that are. */
  private async resolve(target: Target, { sent }: Missed, problems: string[]): Promise<number> {
    for (const one of sent) {
      const { status } = await target.ask({
        method: "GET",
        path: `/v1/relay/messages/${one.id}`,
        key: this.key,
      });
      const isThere = status === 200;
      if (one.isStored === null && isThere) this.counts.happened += 1;
      if (one.isStored !== null && one.isStored !== isThere)
        problems.push(`recoveries: message ${one.id} ${isThere ? "got 503, and is there" : "is lost"}`);
      one.isStored = isThere;
    }
    return sent.filter(({ isStored }) => isStored === true).length;
  }

  private async problemsOf(target: Target, recovery: Recovery, stored: number): Promise<string[]> {
    const { missed, endpoint } = recovery;
    if (recovery.resendId === null) {
      // A repeat with its key is safe.
      for (const request of this.requestsOf(recovery)) {
        const response = await target.ask(request);
        if (response.headers.get("idempotent-replayed") === "true") this.counts.happened += 1;
        this.acknowledge(recovery, response);
      }
    }
    const look = () => this.ask(target, "GET", `/v1/relay/resends/${recovery.resendId}`);
    const run = await settled(FINISHED_WITHIN_MS, look, ({ status }) => status !== "running");
    const problems: string[] = [];
    const { status, matched, resent, skipped } = run;
    if (status !== "done" || matched !== stored || resent !== stored || skipped !== 0)
      problems.push(`recoveries: ${JSON.stringify(run)} of ${stored} messages`);
    for (const { id, isStored } of missed.sent) {
      if (isStored !== true) continue;
      const read = () => this.ask(target, "GET", `/v1/relay/messages/${id}`);
      const isOver = (message: Record<string, unknown>) =>
        !this.delivers || deliveriesIn(message).every((one) => one.status === "delivered");
      const deliveries = deliveriesIn(await settled(FINISHED_WITHIN_MS, read, isOver));
      if (deliveries.length !== 1 || deliveries[0]?.endpoint_id !== endpoint || !isOver({ deliveries }))
        problems.push(`recoveries: message ${id} has the deliveries ${JSON.stringify(deliveries)}`);
      if (this.delivers && !this.arrived.has(id)) problems.push(`recoveries: message ${id} has not arrived`);
    }
    return problems;
  }
}

interface Delivery {
  readonly endpoint_id: string;
  readonly status: string;
}

function deliveriesIn(message: Record<string, unknown>): readonly Delivery[] {
  return message["deliveries"] as Delivery[];
}
