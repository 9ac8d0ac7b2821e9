import type { CallerAccount } from "../../kernel/callers/caller.ts";
import { networkOf } from "../../kernel/data/addresses.ts";
import { ApiError } from "../../kernel/errors.ts";
import { AttemptLimiter } from "../../kernel/http/access/guard.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { LOGINS_MAX, LOGINS_WINDOW_MS, PEOPLE_LOGINS_PER_NETWORK_MAX } from "./domain.ts";

/** Limits successful logins, per network, account and person: each stores a session and an entry of the audit log. */
export class Logins {
  private readonly networks: AttemptLimiter;
  private readonly accounts: AttemptLimiter;
  private readonly people: AttemptLimiter;
  private readonly networksOfPeople: AttemptLimiter;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.networks = new AttemptLimiter(clock, LOGINS_MAX, LOGINS_WINDOW_MS);
    this.accounts = new AttemptLimiter(clock, LOGINS_MAX, LOGINS_WINDOW_MS);
    this.people = new AttemptLimiter(clock, LOGINS_MAX, LOGINS_WINDOW_MS);
    this.networksOfPeople = new AttemptLimiter(clock, PEOPLE_LOGINS_PER_NETWORK_MAX, LOGINS_WINDOW_MS);
  }

  /** Rejects an attempt from a network at its limit, before its key is checked. @throws ApiError `rate_limit_exceeded` */
  assertMayAttempt(clientAddress: string): void {
    assertWithinLimit(this.networks.wait(networkOf(clientAddress)), "from this address");
  }

  /** The same for a login of a person. @throws ApiError `rate_limit_exceeded` */
  assertPersonMayAttempt(clientAddress: string): void {
    assertWithinLimit(this.networksOfPeople.wait(networkOf(clientAddress)), "from this address");
  }

  /** Counts a login of a person in the unit of work that opens its session. @throws ApiError `rate_limit_exceeded` */
  countPerson(tx: Tx, clientAddress: string, personId: string): void {
    take(tx, this.networksOfPeople, networkOf(clientAddress), "from this address");
    take(tx, this.people, personId, "of this person");
  }

  /** Counts a login in the unit of work that opens its session. @throws ApiError `rate_limit_exceeded` */
  count(tx: Tx, clientAddress: string, { userId }: CallerAccount): void {
    take(tx, this.networks, networkOf(clientAddress), "from this address");
    take(tx, this.accounts, userId, "of this account");
  }
}

function take(tx: Tx, limiter: AttemptLimiter, key: string, source: string): void {
  assertWithinLimit(limiter.takeIn(tx, key), source);
}

function assertWithinLimit(retryAfterSeconds: number, source: string): void {
  if (retryAfterSeconds === 0) return;
  const message = `Too many logins ${source}. Retry in ${retryAfterSeconds} s.`;
  throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds });
}
