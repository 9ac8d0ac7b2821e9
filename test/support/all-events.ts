import { expect } from "bun:test";
import { ALERT_EVENTS } from "../../src/kernel/data/incident-words.ts";
import type { Client } from "./client.ts";
import { WebhookSink } from "./webhook-sink.ts";

/** A project's default channel, which is told of everything. */
export class AllEvents {
  private readonly sink = new WebhookSink();

  /** Begins to listen to a project. */
  async open(client: Client): Promise<void> {
    const terms = { name: "All", kind: "webhook", default: true, events: ALERT_EVENTS };
    const answer = await client.post("/v1/pulse/channels", { ...terms, config: { url: this.sink.url() } });
    expect(answer.status, answer.text).toBe(201);
  }

  /** What the channel was told since the last call: the whole bodies. */
  takeBodies(): Record<string, unknown>[] {
    return this.sink.take().map(({ body }) => JSON.parse(body));
  }

  /** The same, each by its name and event. */
  take(): string[] {
    return this.takeBodies().map(({ name, event }) => `${name} ${event}`);
  }

  stop(): void {
    this.sink.stop();
  }
}
