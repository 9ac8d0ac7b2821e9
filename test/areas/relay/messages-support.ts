import { beforeEach, expect } from "bun:test";
import { type RelayStage, relayStage } from "./support.ts";

/** An endpoint as it is read. */
export interface EndpointView {
  readonly endpoint_id: string;
  readonly state: string;
  readonly health: Readonly<Record<string, unknown>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly [field: string]: unknown;
}

/** Requests for endpoints and messages. */
export class Messaging {
  constructor(private readonly stage: RelayStage) {}

  /** Creates an endpoint at a path of the sink. */
  async endpoint(path: string, terms: object = {}): Promise<string> {
    const body = { url: this.stage.sink.url(path), ...terms };
    const answer = await this.stage.account.post("/v1/relay/endpoints", body);
    expect(answer.status, answer.text).toBe(201);
    return String(answer.body["endpoint_id"]);
  }

  /** Sends a message. Returns its deliveries' ids by endpoint. */
  async send(payload: object = { n: 1 }, change: object = {}): Promise<Record<string, string>> {
    const body = { event_type: "invoice.paid", payload, ...change };
    const answer = await this.stage.account.post("/v1/relay/messages", body);
    expect(answer.status, answer.text).toBe(201);
    const deliveries = answer.body["deliveries"] as { relay_id: string; endpoint_id: string }[];
    return Object.fromEntries(deliveries.map(({ endpoint_id, relay_id }) => [endpoint_id, relay_id]));
  }

  /** The paths of requests since the last call, sorted. */
  takenPaths(): string[] {
    return this.stage.sink
      .take()
      .map(({ path }) => path)
      .sort();
  }

  /** The members `n` of the payloads received at a path since the last call, in order. */
  takenNumbers(path = "/a"): number[] {
    const received = this.stage.sink.take().filter((one) => one.path === path);
    return received.map(({ body }) => (JSON.parse(body) as { data: { n: number } }).data.n);
  }

  async read(endpointId: string): Promise<EndpointView> {
    const { body } = await this.stage.account.get(`/v1/relay/endpoints/${endpointId}`);
    return body as unknown as EndpointView;
  }

  async patch(endpointId: string, change: object): Promise<void> {
    const answer = await this.stage.account.patch(`/v1/relay/endpoints/${endpointId}`, change);
    expect(answer.status, answer.text).toBe(200);
  }

  /** Sends due deliveries, and those that follow immediately. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 6; turn += 1) await this.stage.server.clock.advance(1);
  }
}

/** Sets up a stage and its messages for the tests of the file that calls it. Deliveries of a test end before the next one. */
export function messagingStage(environment: Readonly<Record<string, string>> = {}): {
  readonly stage: RelayStage;
  readonly messaging: Messaging;
} {
  beforeEach(() => messaging.settle());
  const stage = relayStage(environment);
  const messaging = new Messaging(stage);
  return { stage, messaging };
}
