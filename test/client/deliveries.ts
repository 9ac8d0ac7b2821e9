import { afterAll } from "bun:test";
import { type TestServer, useTestServer } from "../support/server.ts";
import { type Received, WebhookSink } from "../support/webhook-sink.ts";

/** A server on a manual clock, and a target for what it delivers. */
export interface Deliveries {
  readonly server: TestServer;
  readonly sink: WebhookSink;
  /** What the sink has got since the last time, once time has moved. */
  delivered(advanceMs: number): Promise<Received>;
  /** When the delivery was made, for the verifier's clock. */
  now(): { now: number };
}

/** For all tests of a file. */
export function useDeliveries(): Deliveries {
  const sink = new WebhookSink();
  const server = useTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  afterAll(() => sink.stop());
  return {
    server,
    sink,
    async delivered(advanceMs) {
      await server.clock.advance(advanceMs);
      const [received, ...more] = sink.received.splice(0);
      if (received === undefined || more.length > 0)
        throw new Error(`${more.length} more deliveries than expected`);
      return received;
    },
    now: () => ({ now: server.clock.now() }),
  };
}
