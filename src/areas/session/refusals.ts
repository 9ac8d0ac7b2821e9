import type { AuditedRequest, AuditTrail } from "../../kernel/audit/trail.ts";
import { ApiError, errorText } from "../../kernel/errors.ts";
import { networkOf } from "../../kernel/http/access/addresses.ts";
import { AttemptLimiter } from "../../kernel/http/access/guard.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { REFUSALS_MAX, REFUSALS_NOTED_MS, REFUSALS_WINDOW_MS, REFUSING_ADDRESSES_MAX } from "./domain.ts";

/** A request that was refused, as far as its entry tells of it. */
export type RefusedRequest = Pick<AuditedRequest, "requestId" | "requestOrigin"> & {
  readonly clientAddress: string;
};

/** Refused log-ins that wait for their entry. */
interface Waiting {
  count: number;
  last: RefusedRequest;
}

/** Where those of addresses beyond the bound are counted. */
const OTHERS = "others";

/** Bounds refused log-ins by address, and notes them, at most one entry per address and minute. */
export class Refusals {
  private readonly attempts: AttemptLimiter;
  private readonly waiting = new Map<string, Waiting>();

  constructor(
    private readonly kernel: Pick<Kernel, "clock" | "writer" | "log">,
    private readonly trail: AuditTrail,
  ) {
    this.attempts = new AttemptLimiter(kernel.clock, REFUSALS_MAX, REFUSALS_WINDOW_MS);
  }

  /** @throws ApiError `rate_limit_exceeded` for an address that has been refused too often. */
  assertMayTry(clientAddress: string): void {
    const retryAfterSeconds = this.attempts.wait(networkOf(clientAddress));
    if (retryAfterSeconds === 0) return;
    const message = `Too many refused log-ins from this address. Try again in ${retryAfterSeconds} s.`;
    throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds });
  }

  /** Counts a refused log-in. */
  note(request: RefusedRequest): void {
    const network = networkOf(request.clientAddress);
    this.attempts.take(network);
    const isKnown = this.waiting.has(network);
    const name = isKnown || this.waiting.size < REFUSING_ADDRESSES_MAX ? network : OTHERS;
    const waiting = this.waiting.get(name);
    if (waiting !== undefined) {
      waiting.count += 1;
      waiting.last = request;
      return;
    }
    this.waiting.set(name, { count: 1, last: request });
    const { clock } = this.kernel;
    clock.after(REFUSALS_NOTED_MS, () => clock.track(this.write(name)));
  }

  /** Notes what still waits. For the end of the process. */
  async finish(): Promise<void> {
    await Promise.all([...this.waiting.keys()].map((name) => this.write(name)));
  }

  private async write(name: string): Promise<void> {
    const waiting = this.waiting.get(name);
    if (waiting === undefined) return;
    this.waiting.delete(name);
    const { count, last } = waiting;
    const times = count === 1 ? "once" : `${count} times`;
    const where = name === OTHERS ? " from many addresses" : "";
    const change = {
      summary: `Log-in refused ${times}${where}`,
      target: { type: "session", id: "refused" },
      before: null,
      after: { count },
    };
    const { writer, log } = this.kernel;
    try {
      await writer.submit((tx) => this.trail.recordPublic(tx, "session.refused", last, null, change));
    } catch (error) {
      log.warn("refused log-ins stand in no audit log", { count, error: errorText(error) });
    }
  }
}
