import type { ReceivedAlert } from "./record.ts";

/** The webhook that receives the alerts. */
export class AlertSink {
  readonly received: ReceivedAlert[] = [];
  private readonly waiting = new Map<string, () => void>();
  private readonly server;

  constructor() {
    this.server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        const id = request.headers.get("webhook-id") ?? "";
        const { event, monitor_id, probe } = (await request.json()) as Record<string, string | undefined>;
        const about = monitor_id ?? probe ?? "";
        this.received.push({ id, event: event ?? "", about, at: Date.now() });
        if (event === "monitor.down") this.waiting.get(about)?.();
        return new Response(null);
      },
    });
  }

  get url(): string {
    return this.server.url.href;
  }

  /** Resolves when a monitor is reported as down. */
  nextDown(monitorId: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.waiting.set(monitorId, resolve);
    return promise;
  }

  stop(): void {
    this.server.stop(true);
  }
}
