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
/** A closed port: each attempt fails, and with it a delivery without retries. */
const TARGET_URL = "http://127.0.0.1:9/";
/** Share of the steps that begin a resend of all failed deliveries; the others schedule one, or resend one. */
const SHARE_OF_MANY = 0.04;
const PER_SECOND = 100;
/** Longest wait until no delivery is pending. */
const QUIET_WITHIN_MS = 60_000;

/** A requested resend, of one delivery or of many. */
interface Resend {
  readonly request: TargetRequest;
  readonly isMany: boolean;
}

/**
 * Failed deliveries that are resent, one by one and in bulk. Each resend makes exactly one attempt, even if it was
 * interrupted and requested again under its key, and the count of a bulk resend is the number of its deliveries.
 */
export class ResendWorkload extends RecordedOfAccount implements Workload {
  readonly name = "resends";
  readonly weight = 2;
  private readonly failed: string[] = [];
  private readonly many: string[] = [];
  private inDoubt: Resend[] = [];
  private requested = 0;
  /** Acknowledged resends of a single delivery. */
  private resent = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "resends@example.com", CREDITS);
  }

  act(target: Target, random: Random): Promise<void> {
    const isMany = random.chance(SHARE_OF_MANY);
    if (isMany)
      return this.again(target, this.request("/v1/relay/resend", { since: 0, per_second: PER_SECOND }), true);
    if (this.failed.length === 0 || random.chance(0.5)) return this.schedule(target);
    return this.again(target, this.request(`/v1/relay/${random.pick(this.failed)}/resend`), false);
  }

  async verify(target: Target): Promise<string[]> {
    // A repeat with its key is safe.
    for (const requested of this.inDoubt.splice(0)) {
      const response = await target.ask(requested.request);
      if (response.headers.get("idempotent-replayed") === "true") this.counts.happened += 1;
      this.acknowledge(requested, response);
    }
    const resentOfMany = await this.waitForMany(target);
    const deliveries = await this.quiet(target);
    const attempts = deliveries.reduce((sum, delivery) => sum + delivery.attempts, 0);
    const wanted = deliveries.length + this.resent + resentOfMany;
    const problems = deliveries
      .filter(({ status }) => status !== "failed")
      .map(({ relay_id, status }) => `resends: delivery ${relay_id} is ${status}`);
    if (attempts !== wanted)
      problems.push(`resends: ${attempts} attempts were made where ${wanted} were asked for`);
    return problems;
  }

  private request(path: string, body?: object): TargetRequest {
    this.requested += 1;
    const about = {
      method: "POST",
      path,
      key: this.key,
      idempotencyKey: `resend-${this.requested}`,
    } as const;
    return body === undefined ? about : { ...about, body };
  }

  private async schedule(target: Target): Promise<void> {
    const body = { target_url: TARGET_URL, method: "POST", delay: "0s", retry_schedule: [] };
    const response = await target.send(this.request("/v1/relay", body));
    if (response === null) this.counts.inDoubt += 1;
    if (response?.status !== 201) return;
    this.failed.push(String(bodyOf(response)["relay_id"]));
    this.counts.acknowledged += 1;
  }

  private async again(target: Target, request: TargetRequest, isMany: boolean): Promise<void> {
    const requested: Resend = { request, isMany };
    const response = await target.send(request);
    if (response !== null) {
      if (response.status !== UNAVAILABLE) this.acknowledge(requested, response);
      return;
    }
    this.counts.inDoubt += 1;
    this.inDoubt.push(requested);
  }

  private acknowledge({ isMany }: Resend, response: HttpResponse): void {
    // The delivery was still in progress, or too many resends were running.
    if (response.status === 409) return;
    if (response.status !== 202)
      throw new Error(`resends: unexpected response ${response.status} ${response.text}`);
    this.counts.acknowledged += 1;
    if (isMany) this.many.push(String(bodyOf(response)["resend_id"]));
    else this.resent += 1;
  }

  /** Total number of deliveries that ended bulk resends have sent. */
  private async waitForMany(target: Target): Promise<number> {
    let resent = 0;
    for (const id of this.many) {
      const look = () => this.ask(target, "GET", `/v1/relay/resends/${id}`);
      const ended = await settled(QUIET_WITHIN_MS, look, (resend) => resend["status"] !== "running");
      if (ended["status"] === "running") throw new Error(`resends: ${id} does not come to an end`);
      resent += Number(ended["resent"]);
    }
    return resent;
  }

  /** All deliveries, once none is pending. */
  private async quiet(target: Target): Promise<readonly Delivery[]> {
    for (const status of ["scheduled", "delivering"]) {
      const look = () => this.page(target, `status=${status}&limit=1`);
      const { deliveries } = await settled(QUIET_WITHIN_MS, look, (page) => page.deliveries.length === 0);
      if (deliveries.length > 0) throw new Error(`resends: deliveries are still ${status}`);
    }
    const all: Delivery[] = [];
    for (let cursor = ""; ; ) {
      const page = await this.page(target, `limit=100${cursor}`);
      all.push(...page.deliveries);
      if (page.cursor === undefined) return all;
      cursor = `&cursor=${encodeURIComponent(page.cursor)}`;
    }
  }

  private async page(target: Target, query: string): Promise<{ deliveries: Delivery[]; cursor?: string }> {
    return (await this.ask(target, "GET", `/v1/relay?${query}`)) as never;
  }
}

interface Delivery {
  readonly relay_id: string;
  readonly status: string;
  readonly attempts: number;
}
