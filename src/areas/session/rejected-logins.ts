import type { AuditedRequest, AuditTrail } from "../../kernel/audit/trail.ts";
import type { LoginMethod } from "../../kernel/callers/caller.ts";
import { networkOf } from "../../kernel/data/addresses.ts";
import { ApiError, errorText } from "../../kernel/errors.ts";
import { AttemptLimiter } from "../../kernel/http/access/guard.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import {
  REJECTED_LOGINS_ENTRY_MS,
  REJECTED_LOGINS_MAX,
  REJECTED_LOGINS_WINDOW_MS,
  REJECTED_NETWORKS_MAX,
  REJECTED_PEOPLE_MAX,
} from "./domain.ts";

/** A rejected request, with what its audit entry contains. */
export type RejectedRequest = Pick<AuditedRequest, "requestId" | "requestOrigin"> & {
  readonly clientAddress: string;
};

/** Rejected logins of a network that are not in the audit log yet. */
interface PendingEntry {
  count: number;
  last: RejectedRequest;
}

/** The name under which networks beyond {@link REJECTED_NETWORKS_MAX} are counted. */
const OTHER_NETWORKS = "others";

/** Limits rejected logins per network and writes them to the audit log, at most one entry per network and minute. */
export class RejectedLogins {
  private readonly attempts: AttemptLimiter;
  private readonly ofAccounts: AttemptLimiter;
  private readonly pending = new Map<string, PendingEntry>();

  constructor(
    private readonly kernel: Pick<Kernel, "clock" | "writer" | "log">,
    private readonly trail: AuditTrail,
  ) {
    this.attempts = new AttemptLimiter(kernel.clock, REJECTED_LOGINS_MAX, REJECTED_LOGINS_WINDOW_MS);
    this.ofAccounts = new AttemptLimiter(kernel.clock, REJECTED_PEOPLE_MAX, REJECTED_LOGINS_ENTRY_MS);
  }

  /** @throws ApiError `rate_limit_exceeded` for an address with too many rejected logins. */
  assertMayAttempt(clientAddress: string): void {
    const retryAfterSeconds = this.attempts.wait(networkOf(clientAddress));
    if (retryAfterSeconds === 0) return;
    const message = `Too many rejected logins from this address. Retry in ${retryAfterSeconds} s.`;
    throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds });
  }

  /** Counts a rejected login. */
  record(request: RejectedRequest): void {
    const network = networkOf(request.clientAddress);
    this.attempts.take(network);
    const isKnown = this.pending.has(network);
    const name = isKnown || this.pending.size < REJECTED_NETWORKS_MAX ? network : OTHER_NETWORKS;
    const pending = this.pending.get(name);
    if (pending !== undefined) {
      pending.count += 1;
      pending.last = request;
      return;
    }
    this.pending.set(name, { count: 1, last: request });
    const { clock } = this.kernel;
    clock.after(REJECTED_LOGINS_ENTRY_MS, () => clock.track(this.write(name)));
  }

  /** Writes a rejected login of a known person to the log of their account, up to a limit. */
  recordPerson(
    request: RejectedRequest,
    account: { readonly ref: number; readonly userId: string },
    person: {
      readonly id: string;
      readonly email: string;
      readonly reason: string;
      readonly method: LoginMethod;
    },
  ): void {
    if (this.ofAccounts.take(account.userId) > 0) return;
    const { id, email, reason, method } = person;
    const change = {
      summary: `Login of ${email} rejected: ${reason}`,
      target: { type: "person", id },
      before: null,
      after: { method, reason },
    };
    const { clock, writer, log } = this.kernel;
    const written = writer.submit((tx) =>
      this.trail.recordPublic(tx, "session.refused", request, account, change),
    );
    clock.track(
      written.catch((error) =>
        log.warn("a rejected login could not be written to the audit log", { error: errorText(error) }),
      ),
    );
  }

  /** Writes all pending entries. Call before the process exits. */
  async finish(): Promise<void> {
    await Promise.all([...this.pending.keys()].map((name) => this.write(name)));
  }

  private async write(name: string): Promise<void> {
    const pending = this.pending.get(name);
    if (pending === undefined) return;
    this.pending.delete(name);
    const { count, last } = pending;
    const times = count === 1 ? "once" : `${count} times`;
    const where = name === OTHER_NETWORKS ? " from many addresses" : "";
    const change = {
      summary: `Login rejected ${times}${where}`,
      target: { type: "session", id: "refused" },
      before: null,
      after: { count },
    };
    const { writer, log } = this.kernel;
    try {
      await writer.submit((tx) => this.trail.recordPublic(tx, "session.refused", last, null, change));
    } catch (error) {
      log.warn("rejected logins could not be written to the audit log", { count, error: errorText(error) });
    }
  }
}
