import type { HttpResponse } from "../processes/connection.ts";
import { entriesSince } from "./changes.ts";
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
/** Endpoints that each event goes to. */
const ENDPOINTS = 3;
/** The first endpoint receives the events in order by key. */
const ORDERED = "/0";
const ORDER_KEYS = 32;
/** A closed port. */
const NOBODY = "http://127.0.0.1:9";
/** Longest wait for due deliveries: those interrupted by a kill are repeated at the start. */
const DELIVERED_WITHIN_MS = 30_000;
/** Share of the events whose first attempt each endpoint rejects. */
const REJECTED_FIRST = 0.1;
/** Share of the steps that replay an event, and that pause the bucket or set it live. */
const REPLAYED = 0.1;
const SWITCHED = 0.03;

/** The body of an event. */
interface Numbered {
  readonly number: number;
  readonly key: number;
}

/** An event in a response. */
interface Shown {
  readonly id: string;
  readonly status: string;
  readonly attempts: number;
  readonly payload: Numbered;
  readonly deliveries: readonly { readonly endpoint_id: string; readonly status: string }[];
}

/** A replay of an event, which is repeated under its key if its response was lost. */
interface Replay {
  readonly eventId: string;
  readonly request: TargetRequest;
}

/**
 * Webhooks to a bucket whose targets are endpoints, with replays and pauses. After every crash each acknowledged event exists
 * once, and has exactly one delivery to each endpoint, and one more for each replay: a kill never leaves a part of them. The first
 * endpoint receives those of an order key one after another, each after the one before was accepted.
 */
export class TargetBucketWorkload extends RecordedOfAccount implements Workload {
  readonly name = "target buckets";
  readonly weight = 3;
  private bucketId = "";
  private sent = 0;
  /** Ids acknowledged since the last verification, by the number in their body. */
  private acknowledged = new Map<number, string>();
  private readonly inDoubt = new Set<number>();
  /** Number of replays by event, since the start. */
  private readonly replayed = new Map<string, number>();
  private repeats: Replay[] = [];
  private replays = 0;
  /** Events and endpoints that the receiver has seen. */
  private readonly arrived = new Set<string>();
  /** Deliveries to the ordered endpoint since the last verification, in the order of their first arrival, and keys whose last one was rejected. */
  private readonly arrivedOfKey = new Map<number, string[]>();
  private readonly rejectedOfKey = new Set<number>();
  private orderedId = "";
  private newestOrdered = "";
  private newest = "";
  private events = 0;
  private deliveries = 0;

  /** `delivers`: whether the endpoints receive the events here; otherwise they are paused. */
  constructor(private readonly delivers = true) {
    super();
  }

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "target-buckets@example.com", CREDITS);
    const origin = this.delivers ? this.listen() : NOBODY;
    const targets: object[] = [];
    for (let number = 0; number < ENDPOINTS; number += 1) {
      const body = {
        url: `${origin}/${number}`,
        state: this.delivers ? "live" : "paused",
        retry_schedule: Array(20).fill("1s"),
        order_by: `/${number}` === ORDERED ? "/key" : null,
      };
      const { endpoint_id } = await this.ask(target, "POST", "/v1/relay/endpoints", body);
      if (`/${number}` === ORDERED) this.orderedId = String(endpoint_id);
      targets.push({ endpoint_id });
    }
    const created = await this.ask(target, "POST", "/v1/catch/buckets", { targets });
    this.bucketId = String(created["id"]);
    await this.setState(target, "live");
  }

  async act(target: Target, random: Random): Promise<void> {
    const known = [...this.acknowledged.values()];
    if (known.length > 0 && random.chance(REPLAYED)) return this.replay(target, random.pick(known));
    if (random.chance(SWITCHED)) return this.switch(target, random.chance(0.5) ? "paused" : "live");
    this.sent += 1;
    const number = this.sent;
    this.inDoubt.add(number);
    const path = `/v1/catch/${this.bucketId}`;
    const body: Numbered = { number, key: number % ORDER_KEYS };
    const response = await target.send({ method: "POST", path, key: this.key, body });
    if (response === null) {
      this.counts.inDoubt += 1;
      return;
    }
    this.inDoubt.delete(number);
    if (response.status === UNAVAILABLE) return;
    const { status, event_id } = bodyOf(response);
    if (response.status !== 200 || status !== "accepted")
      throw new Error(`target buckets: unexpected response ${response.status} ${response.text}`);
    this.acknowledged.set(number, String(event_id));
    this.counts.acknowledged += 1;
  }

  async verify(target: Target): Promise<string[]> {
    await this.setState(target, "live");
    for (const { eventId, request } of this.repeats.splice(0)) {
      const response = await target.ask(request);
      if (response.headers.get("idempotent-replayed") === "true") this.counts.happened += 1;
      this.acknowledgeReplay(eventId, response);
    }
    const fresh = await this.newEvents(target);
    const seen = new Map<number, string>();
    for (const id of fresh) await this.verifyEvent(target, id, seen);
    for (const [number, id] of this.acknowledged)
      if (seen.get(number) !== id) this.problem(`${id} was acknowledged and is not there`);
    this.acknowledged = new Map();
    this.inDoubt.clear();
    this.events += fresh.length;
    await this.verifyCounts(target);
    await this.verifyCharges(target);
    await this.verifyOrder(target);
    return this.problems.splice(0);
  }

  private async verifyEvent(target: Target, id: string, seen: Map<number, string>): Promise<void> {
    const look = async () =>
      (await this.ask(target, "GET", `/v1/catch/${this.bucketId}/events/${id}`)) as unknown as Shown;
    const isOver = ({ status, deliveries }: Shown) =>
      this.delivers
        ? status === "delivered" && deliveries.every((delivery) => delivery.status === "delivered")
        : deliveries.length > 0;
    // A part of them is a problem that no wait repairs.
    const isWhole = ({ deliveries }: Shown) => deliveries.length % ENDPOINTS === 0;
    const event = await settled(DELIVERED_WITHIN_MS, look, (one) => isOver(one) || !isWhole(one));
    const { number } = event.payload;
    if (!isOver(event)) this.problem(`${id} is ${event.status}: ${JSON.stringify(event.deliveries)}`);
    if (seen.has(number)) this.problem(`${id} is there twice`);
    seen.set(number, id);
    if (!this.acknowledged.has(number)) {
      if (this.inDoubt.has(number)) this.counts.happened += 1;
      else this.problem(`${id} is there for no reason`);
    }
    this.verifyDeliveries(event);
  }

  /** As many deliveries to each endpoint, one for the event and one for each replay. */
  private verifyDeliveries({ id, deliveries }: Shown): void {
    const replays = this.replayed.get(id) ?? 0;
    const rounds = deliveries.length / ENDPOINTS;
    const perEndpoint = Map.groupBy(deliveries, ({ endpoint_id }) => endpoint_id);
    const isEven =
      perEndpoint.size === ENDPOINTS && [...perEndpoint.values()].every((all) => all.length === rounds);
    if (!isEven || rounds !== 1 + replays)
      this.problem(`${id} has ${deliveries.length} deliveries after ${replays} replays`);
    this.deliveries += deliveries.length;
    const places = Array.from({ length: ENDPOINTS }, (_, n) => this.arrived.has(`/${n} ${id}`));
    if (this.delivers && places.includes(false)) this.problem(`${id} has not arrived at every endpoint`);
  }

  private async verifyCounts(target: Target): Promise<void> {
    const { events } = await this.ask(target, "GET", `/v1/catch/buckets/${this.bucketId}`);
    const { pending, delivered, failed } = events as Record<"pending" | "delivered" | "failed", number>;
    const expected = this.delivers ? [0, this.events, 0] : [this.events, 0, 0];
    if (JSON.stringify([pending, delivered, failed]) !== JSON.stringify(expected))
      this.problem(`it counts ${pending}, ${delivered}, ${failed}, and has ${this.events} events`);
  }

  /** An event, its deliveries and their charge are one transaction. */
  private async verifyCharges(target: Target): Promise<void> {
    const entries = await entriesSince(target, "/v1/meter/history", this.key, 0);
    const paid = entries
      .filter(({ operation }) => operation === "catch.ingest" || operation === "catch.events.replay")
      .reduce((sum, { amount }) => sum - Number(amount), 0);
    if (paid !== this.deliveries)
      this.problem(`${this.deliveries} deliveries are there, ${paid} were paid for`);
  }

  private async replay(target: Target, id: string): Promise<void> {
    const read = { method: "GET", path: `/v1/catch/${this.bucketId}/events/${id}`, key: this.key } as const;
    const event = await target.send(read);
    // A replay of an event in the backlog replaces its own deliveries.
    if (event?.status !== 200 || (bodyOf(event) as unknown as Shown).deliveries.length === 0) return;
    this.replays += 1;
    const request: TargetRequest = {
      method: "POST",
      path: `/v1/catch/${this.bucketId}/events/${id}/replay`,
      key: this.key,
      idempotencyKey: `replay-${this.replays}`,
    };
    const response = await target.send(request);
    if (response !== null) {
      this.acknowledgeReplay(id, response);
      return;
    }
    this.counts.inDoubt += 1;
    this.repeats.push({ eventId: id, request });
  }

  private acknowledgeReplay(id: string, response: HttpResponse): void {
    // The bucket is paused.
    if (response.status === UNAVAILABLE || response.status === 400) return;
    if (response.status !== 202)
      throw new Error(`target buckets: unexpected response ${response.status} ${response.text}`);
    this.replayed.set(id, 1 + (this.replayed.get(id) ?? 0));
    this.counts.acknowledged += 1;
  }

  private async switch(target: Target, state: "live" | "paused"): Promise<void> {
    const path = `/v1/catch/buckets/${this.bucketId}`;
    const response = await target.send({ method: "PATCH", path, key: this.key, body: { state } });
    if (response === null) this.counts.inDoubt += 1;
  }

  private async setState(target: Target, state: "live" | "paused"): Promise<void> {
    await this.ask(target, "PATCH", `/v1/catch/buckets/${this.bucketId}`, { state });
  }

  /** Ids of the events since the last verification, oldest first. */
  private async newEvents(target: Target): Promise<string[]> {
    const found: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await this.ask(target, "GET", `/v1/catch/${this.bucketId}/events?limit=100${cursor}`);
      const ids = (page["events"] as { id: string }[]).map(({ id }) => id);
      const fresh = ids.filter((id) => id > this.newest);
      found.push(...fresh);
      if (fresh.length < ids.length || page["cursor"] === null) break;
      cursor = `&cursor=${encodeURIComponent(String(page["cursor"]))}`;
    }
    this.newest = found[0] ?? this.newest;
    return found.reverse();
  }

  private listen(): string {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => this.receive(request) });
    server.unref();
    return `http://127.0.0.1:${server.port}`;
  }

  private async receive(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const place = `${pathname} ${request.headers.get("x-svc-event-id") ?? ""}`;
    const { key } = (await request.json()) as Numbered;
    const isRejected = !this.arrived.has(place) && Bun.hash.crc32(place) % 1000 < REJECTED_FIRST * 1000;
    this.arrived.add(place);
    if (pathname === ORDERED)
      this.checkOrder(key, request.headers.get("x-svc-delivery-id") ?? "", !isRejected);
    return new Response(null, { status: isRejected ? 503 : 200 });
  }

  /** A delivery arrives again if it was rejected, or in flight at a kill; another one follows once it was accepted. */
  private checkOrder(key: number, id: string, isAccepted: boolean): void {
    const ids = this.arrivedOfKey.get(key) ?? [];
    this.arrivedOfKey.set(key, ids);
    const last = ids.at(-1);
    if (id !== last) {
      if (ids.includes(id)) this.problem(`a delivery of the key ${key} arrived again after a later one`);
      if (this.rejectedOfKey.has(key))
        this.problem(`a delivery of the key ${key} overtook one that was rejected`);
      ids.push(id);
    }
    if (isAccepted) this.rejectedOfKey.delete(key);
    else this.rejectedOfKey.add(key);
  }

  /** Those of a key arrived in the order in which they were created. */
  private async verifyOrder(target: Target): Promise<void> {
    const created = new Map<string, number>();
    let newest = this.newestOrdered;
    for (let cursor = ""; ; ) {
      const path = `/v1/relay?endpoint_id=${this.orderedId}&limit=100${cursor}`;
      const page = await this.ask(target, "GET", path);
      const ids = (page["deliveries"] as { relay_id: string }[]).map(({ relay_id }) => relay_id);
      if (created.size === 0) newest = ids[0] ?? newest;
      const known = ids.indexOf(this.newestOrdered);
      for (const id of known < 0 ? ids : ids.slice(0, known)) created.set(id, -created.size);
      if (known >= 0 || page["cursor"] === undefined) break;
      cursor = `&cursor=${encodeURIComponent(String(page["cursor"]))}`;
    }
    this.newestOrdered = newest;
    for (const [key, ids] of this.arrivedOfKey) {
      const places = ids.map((id) => created.get(id) ?? Number.NaN);
      if (places.some((place, at) => at > 0 && !(place > (places[at - 1] ?? 0))))
        this.problem(`the deliveries of the key ${key} arrived in the order ${places.join(", ")}`);
    }
    this.arrivedOfKey.clear();
  }

  private problem(what: string): void {
    this.problems.push(`target bucket: ${what}`);
  }
}
