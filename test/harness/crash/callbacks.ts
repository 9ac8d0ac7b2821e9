import type { Random } from "./random.ts";
import {
  createAccount,
  RecordedOfAccount,
  settled,
  type Target,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const CREDITS = 1_000_000;
/** A closed port. */
const NOBODY = "http://127.0.0.1:9";
/** Share of the deliveries that fail. */
const FAILING = 0.3;
/** Deliveries between two verifications: each of them reads all of the account. */
const DELIVERIES_MAX = 60;
/** Longest wait until no delivery and no callback is pending. */
const QUIET_WITHIN_MS = 60_000;

interface Delivery {
  readonly relay_id: string;
  readonly status: string;
  readonly callback_of: string | null;
}

/** A received callback. */
interface Outcome {
  readonly id: string;
  readonly status: string;
}

/** Deliveries with a callback: after every crash each outcome has exactly one, which arrives under one id and says what the outcome is. */
export class CallbackWorkload extends RecordedOfAccount implements Workload {
  readonly name = "callbacks";
  readonly weight = 2;
  private url = NOBODY;
  private readonly acknowledged: string[] = [];
  private readonly outcomes = new Map<string, Outcome[]>();
  private sent = 0;
  /** Deliveries that verifications have seen. */
  private known = 0;

  /** `delivers`: whether deliveries and callbacks are received here; otherwise none arrives. */
  constructor(private readonly delivers = true) {
    super();
  }

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "callbacks@example.com", CREDITS);
    if (this.delivers) this.url = this.listen();
  }

  async act(target: Target, random: Random): Promise<void> {
    const fails = random.chance(FAILING);
    if (this.sent >= DELIVERIES_MAX) return;
    this.sent += 1;
    const response = await target.send({
      method: "POST",
      path: "/v1/relay",
      key: this.key,
      body: {
        target_url: `${this.url}/${fails ? "fails" : "target"}`,
        method: "POST",
        delay: "0s",
        payload: {},
        headers: {},
        retry_schedule: [],
        callback_url: `${this.url}/outcome`,
      },
    });
    if (response?.status === UNAVAILABLE) return;
    if (response === null) {
      this.counts.inDoubt += 1;
      return;
    }
    this.counts.acknowledged += 1;
    if (response.status !== 201) throw new Error(`unexpected response ${response.status} ${response.text}`);
    this.acknowledged.push(String((JSON.parse(response.text) as Delivery).relay_id));
  }

  async verify(target: Target): Promise<string[]> {
    const all = await settled(
      QUIET_WITHIN_MS,
      () => this.askAll<Delivery>(target, "/v1/relay", "deliveries"),
      (deliveries) => deliveries.every((one) => this.isOver(one)),
    );
    const callbacks = new Map<string, Delivery[]>();
    for (const delivery of all) {
      if (delivery.callback_of === null) continue;
      callbacks.set(delivery.callback_of, [...(callbacks.get(delivery.callback_of) ?? []), delivery]);
    }
    const deliveries = all.filter(({ callback_of }) => callback_of === null);
    const problems = deliveries.flatMap((one) => this.problemsOf(one, callbacks.get(one.relay_id) ?? []));
    const ids = new Set(deliveries.map(({ relay_id }) => relay_id));
    for (const id of this.acknowledged) if (!ids.has(id)) problems.push(`delivery ${id} is lost`);
    const { balance } = await this.ask(target, "GET", "/v1/meter/balance");
    const spent = CREDITS - Number(balance);
    if (spent !== all.length)
      problems.push(`${spent} credits were spent on ${all.length} deliveries and callbacks`);
    this.counts.happened += deliveries.length - this.known - this.acknowledged.length;
    this.known = deliveries.length;
    this.acknowledged.length = 0;
    this.sent = 0;
    return problems.map((problem) => `callbacks: ${problem}`);
  }

  private isOver({ status, callback_of }: Delivery): boolean {
    return status === "delivered" || status === "failed" || (callback_of !== null && !this.delivers);
  }

  private problemsOf(delivery: Delivery, callbacks: readonly Delivery[]): string[] {
    const { relay_id, status } = delivery;
    const shown = JSON.stringify({ relay_id, status, callbacks });
    const [callback] = callbacks;
    if (!this.isOver(delivery) || callback === undefined || callbacks.length > 1)
      return [`not one callback: ${shown}`];
    if (!this.delivers) return [];
    const received = this.outcomes.get(relay_id) ?? [];
    // A kill between a callback's response and its record repeats it under the same id.
    const isRight = received.every((one) => one.id === callback.relay_id && one.status === status);
    if (callback.status === "delivered" && received.length > 0 && isRight) return [];
    return [`received ${JSON.stringify(received)} for ${shown}`];
  }

  private listen(): string {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        if (pathname === "/outcome") {
          const { relay_id, status } = (await request.json()) as Delivery;
          const id = request.headers.get("webhook-id") ?? "";
          this.outcomes.set(relay_id, [...(this.outcomes.get(relay_id) ?? []), { id, status }]);
        }
        return new Response(null, { status: pathname === "/fails" ? 400 : 200 });
      },
    });
    server.unref();
    return `http://127.0.0.1:${server.port}`;
  }
}
