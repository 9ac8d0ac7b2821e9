import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  settled,
  type Target,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const CREDITS = 1_000_000;
/** Endpoints of each message. */
const ENDPOINTS = 3;
/** A closed port. */
const NOBODY = "http://127.0.0.1:9";
/** Longest wait for due deliveries: those interrupted by a kill are repeated at the start. */
const DELIVERED_WITHIN_MS = 30_000;

/** A requested message. */
interface Sent {
  readonly id: string;
  acknowledged: boolean;
  /** The response said that nothing was changed. */
  rejected: boolean;
}

/**
 * Messages to several endpoints. An acknowledged one arrives at each of them; another one arrives at each of
 * them or at none: a kill never leaves a part of its deliveries.
 */
export class MessageWorkload extends RecordedOfAccount implements Workload {
  readonly name = "messages";
  readonly weight = 2;
  private readonly arrived = new Map<string, Set<string>>();
  private open: Sent[] = [];
  private made = 0;

  /** `delivers`: whether they are sent and received here; otherwise they are pending at paused endpoints. */
  constructor(private readonly delivers = true) {
    super();
  }

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "messages@example.com", CREDITS);
    const origin = this.delivers ? this.listen() : NOBODY;
    for (let number = 0; number < ENDPOINTS; number += 1) {
      const state = this.delivers ? "live" : "paused";
      const body = { url: `${origin}/${number}`, state, retry_schedule: Array(20).fill("1s") };
      await this.ask(target, "POST", "/v1/relay/endpoints", body);
    }
  }

  async act(target: Target, _random: Random): Promise<void> {
    const sent: Sent = { id: `m-${this.made}`, acknowledged: false, rejected: false };
    this.made += 1;
    this.open.push(sent);
    const body = { event_type: "crash.tested", message_id: sent.id, payload: { number: this.made } };
    const response = await target.send({ method: "POST", path: "/v1/relay/messages", key: this.key, body });
    if (response === null) {
      this.counts.inDoubt += 1;
      return;
    }
    sent.rejected = response.status === UNAVAILABLE;
    if (sent.rejected) return;
    if (response.status !== 201)
      throw new Error(`messages: unexpected response ${response.status} ${response.text}`);
    sent.acknowledged = true;
    this.counts.acknowledged += 1;
  }

  async verify(target: Target): Promise<string[]> {
    const problems: string[] = [];
    for (const sent of this.open) problems.push(...(await this.problemsOf(target, sent)));
    this.open = [];
    return problems;
  }

  private listen(): string {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => this.receive(request) });
    server.unref();
    return `http://127.0.0.1:${server.port}`;
  }

  private receive(request: Request): Response {
    const id = request.headers.get("webhook-id") ?? "";
    const at = this.arrived.get(id) ?? new Set<string>();
    this.arrived.set(id, at.add(new URL(request.url).pathname));
    return new Response(null);
  }

  private async problemsOf(target: Target, { id, acknowledged, rejected }: Sent): Promise<string[]> {
    const read = { method: "GET", path: `/v1/relay/messages/${id}`, key: this.key } as const;
    const isOver = (response: HttpResponse) =>
      rejected || !this.delivers || deliveriesIn(response).every(({ status }) => status === "delivered");
    const response = await settled(DELIVERED_WITHIN_MS, () => target.ask(read), isOver);
    if (response.status === 404) return acknowledged ? [`message ${id}: was acknowledged and is lost`] : [];
    if (rejected) return [`message ${id}: got 503, and is there`];
    const deliveries = deliveriesIn(response);
    if (deliveries.length !== ENDPOINTS)
      return [`message ${id}: has ${deliveries.length} deliveries, not ${ENDPOINTS}`];
    if (!isOver(response)) return [`message ${id}: ${JSON.stringify(deliveries)}`];
    if (!acknowledged) this.counts.happened += 1;
    if (!this.delivers) return [];
    const places = this.arrived.get(id)?.size ?? 0;
    return places === ENDPOINTS ? [] : [`message ${id}: arrived at ${places} of ${ENDPOINTS} endpoints`];
  }
}

/** Undefined without such a message. */
function deliveriesIn(response: HttpResponse): readonly { readonly status: string }[] {
  return (bodyOf(response)["deliveries"] ?? []) as { status: string }[];
}
