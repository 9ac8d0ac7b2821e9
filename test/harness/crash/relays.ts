import { createHmac } from "node:crypto";
import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import { bodyOf, createAccount, RecordedOfAccount, settled, type Target, type Workload } from "./workload.ts";

const CREDITS = 1_000_000;
/** Longest wait for due deliveries: those interrupted by a kill are repeated at the start. */
const DELIVERED_WITHIN_MS = 30_000;
/** Time after its response in which a delivery can be unrecorded: the commit that records it, on a busy disk. */
const RECORDED_WITHIN_MS = 2_000;
/** Maximum response time of the receiver, so that kills hit deliveries in progress. */
const ANSWER_MS_MAX = 40;

/** A received delivery. */
interface Receipt {
  readonly deliveryId: string;
  readonly receivedAt: number;
  respondedAt: number;
  readonly isSigned: boolean;
}

/** A delivery that was requested. */
interface RequestedDelivery {
  readonly number: number;
  relayId: string | null;
}

/**
 * Scheduled deliveries that continuously become due. Acknowledged ones must arrive; a repeat has the same
 * delivery id, and only one in progress at a kill can be repeated.
 */
export class RelayWorkload extends RecordedOfAccount implements Workload {
  readonly name = "relays";
  readonly weight = 4;
  private readonly receipts = new Map<number, Receipt[]>();
  private readonly requested: RequestedDelivery[] = [];
  private open: RequestedDelivery[] = [];
  private readonly kills: { readonly from: number; readonly to: number }[] = [];
  private url = "";
  private lastRespondedAt = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "relays@example.com", CREDITS);
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => this.receive(request) });
    server.unref();
    this.url = `http://127.0.0.1:${server.port}/`;
  }

  act(target: Target, _random: Random): Promise<void> {
    return this.schedule(target, 1);
  }

  /** Schedules a delivery with a delay in seconds. */
  async schedule(target: Target, seconds: number): Promise<void> {
    const requested: RequestedDelivery = { number: this.requested.length, relayId: null };
    this.requested.push(requested);
    this.open.push(requested);
    const payload = { number: requested.number };
    const response = await target.send({
      method: "POST",
      path: "/v1/relay",
      key: this.key,
      body: { target_url: this.url, method: "POST", delay: `${seconds}s`, payload, headers: {} },
    });
    if (response === null) this.counts.inDoubt += 1;
    else this.acknowledge(requested, response);
  }

  /** Records a kill between two times. */
  noteKill(from: number, to: number): void {
    this.kills.push({ from, to });
  }

  /** Deliveries that arrived more than once. */
  get repeated(): number {
    return [...this.receipts.values()].filter(({ length }) => length > 1).length;
  }

  async verify(target: Target): Promise<string[]> {
    this.noteKill(this.lastRespondedAt, Date.now());
    await this.waitForDeliveries(target);
    const problems = this.open.flatMap((requested) => this.problemsOf(requested));
    this.open = [];
    return problems;
  }

  private acknowledge(requested: RequestedDelivery, response: HttpResponse): void {
    if (response.status !== 201)
      throw new Error(`relays: unexpected response ${response.status} ${response.text}`);
    requested.relayId = String(bodyOf(response)["relay_id"]);
    this.lastRespondedAt = Date.now();
    this.counts.acknowledged += 1;
  }

  private async receive(request: Request): Promise<Response> {
    const receivedAt = Date.now();
    const body = await request.text();
    const { number } = JSON.parse(body) as { number: number };
    const signed = (request.headers.get("x-svc-timestamp") ?? "") + body;
    const signature = `sha256=${createHmac("sha256", this.key).update(signed).digest("hex")}`;
    const receipt: Receipt = {
      deliveryId: request.headers.get("x-svc-delivery-id") ?? "",
      receivedAt,
      respondedAt: Number.POSITIVE_INFINITY,
      isSigned: request.headers.get("x-svc-signature") === signature,
    };
    this.receipts.set(number, [...(this.receipts.get(number) ?? []), receipt]);
    await Bun.sleep((number * 7) % ANSWER_MS_MAX);
    receipt.respondedAt = Date.now();
    return new Response(null);
  }

  /** Waits until the server has delivered everything. */
  private async waitForDeliveries(target: Target): Promise<void> {
    for (const status of ["scheduled", "delivering"]) {
      const look = async () =>
        (await this.ask(target, "GET", `/v1/relay?status=${status}&limit=1`))["deliveries"] as unknown[];
      const left = await settled(DELIVERED_WITHIN_MS, look, ({ length }) => length === 0);
      if (left.length > 0) throw new Error(`deliveries are still ${status}: ${JSON.stringify(left)}`);
    }
  }

  private problemsOf({ number, relayId }: RequestedDelivery): string[] {
    const receipts = this.receipts.get(number) ?? [];
    if (relayId !== null && receipts.length === 0)
      return [`delivery ${number}: was acknowledged and is lost`];
    if (relayId === null && receipts.length > 0) this.counts.happened += 1;
    const problems: string[] = [];
    const ids = new Set(receipts.map(({ deliveryId }) => deliveryId));
    if (ids.size > 1 || (relayId !== null && receipts.length > 0 && !ids.has(relayId))) {
      problems.push(`delivery ${number}: came under ${[...ids].join(", ")}, requested as ${relayId}`);
    }
    if (receipts.some(({ isSigned }) => !isSigned)) problems.push(`delivery ${number}: a signature is wrong`);
    for (const receipt of receipts.slice(0, -1)) {
      if (!this.wasInProgressAtKill(receipt))
        problems.push(`delivery ${number}: was repeated without a kill`);
    }
    return problems;
  }

  private wasInProgressAtKill({ receivedAt, respondedAt }: Receipt): boolean {
    return this.kills.some(({ from, to }) => receivedAt <= to && respondedAt + RECORDED_WITHIN_MS >= from);
  }
}
