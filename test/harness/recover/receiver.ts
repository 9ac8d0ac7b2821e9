import type { Random } from "../crash/random.ts";
import type { Arrival } from "./record.ts";

/** Longest time until a response: requests are in flight most of the time, so that kills hit some. */
const RESPONSE_MS_MAX = 200;

/** Start of the ids of messages. */
export const MESSAGE_PREFIX = "message-";

/** A customer's server: it records every request, and rejects some messages. */
export class Receiver {
  /** Requests in the order in which they arrived. */
  readonly arrivals: Arrival[] = [];
  /** Whether it says that its endpoint is gone, and records nothing. */
  isGone = true;
  readonly url: string;
  private readonly server: Bun.Server<undefined>;

  /** `number`: from 0; each has an address of its own, since Ninefold limits the concurrent requests to a host. */
  constructor(number: number, rejectedIds: ReadonlySet<string>, random: Random) {
    const hostname = `127.0.0.${number + 1}`;
    this.server = Bun.serve({
      hostname,
      port: 0,
      fetch: async (request) => {
        if (this.isGone) return new Response(null, { status: 410 });
        const id = request.headers.get("webhook-id") ?? "";
        // A test event, which is accepted.
        if (!id.startsWith(MESSAGE_PREFIX)) return new Response(null);
        const isRejected = rejectedIds.has(id);
        this.arrivals.push({ id, at: performance.now(), isRejected });
        await Bun.sleep(random.below(RESPONSE_MS_MAX + 1));
        return new Response(null, { status: isRejected ? 500 : 200 });
      },
    });
    this.url = `http://${hostname}:${this.server.port}/`;
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }
}
