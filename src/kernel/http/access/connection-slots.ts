import { ApiError } from "../../errors.ts";

/** Part of all places that one account can hold: no account keeps the others out. */
export const ACCOUNT_PART = 1 / 4;

/** What places of one kind have in common. */
export interface ConnectionSlotOptions {
  /** Places of the server. */
  readonly slotsMax: number;
  /** What holds a place, such as `streams`, for the error. */
  readonly held: string;
  /** When a client without a place may retry. */
  readonly retryAfterSeconds: number;
}

/** Places for what stays open for long: so many in all, a quarter of them per account. */
export class ConnectionSlots {
  private readonly byAccount = new Map<number, number>();
  private taken = 0;

  constructor(private readonly terms: ConnectionSlotOptions) {}

  /** @throws ApiError `rate_limit_exceeded` when the account or the server has no place left. */
  assertFree(accountRef: number): void {
    const { slotsMax, held, retryAfterSeconds } = this.terms;
    const isAccountFull = this.countOf(accountRef) >= Math.floor(slotsMax * ACCOUNT_PART);
    if (!isAccountFull && this.taken < slotsMax) return;
    const whose = isAccountFull ? "this account" : "this server";
    throw new ApiError("rate_limit_exceeded", `Too many ${held} of ${whose} are open. Close one first.`, {
      retryAfterSeconds,
    });
  }

  /** Takes a place. Returns how to release it. @throws ApiError `rate_limit_exceeded` */
  take(accountRef: number): () => void {
    this.assertFree(accountRef);
    this.byAccount.set(accountRef, this.countOf(accountRef) + 1);
    this.taken += 1;
    return () => {
      this.taken -= 1;
      const left = this.countOf(accountRef) - 1;
      if (left > 0) this.byAccount.set(accountRef, left);
      else this.byAccount.delete(accountRef);
    };
  }

  private countOf(accountRef: number): number {
    return this.byAccount.get(accountRef) ?? 0;
  }
}
