import { ApiError } from "../../errors.ts";

/** Share of all slots that one account can use, so that it cannot lock out the others. */
export const ACCOUNT_PART = 1 / 4;

/** The options of slots of one kind. */
export interface ConnectionSlotOptions {
  /** Slots of the server. */
  readonly slotsMax: number;
  /** What uses a slot, such as `streams`, for the error. */
  readonly held: string;
  /** `Retry-After` when no slot is free. */
  readonly retryAfterSeconds: number;
}

/** Slots for long-lived connections: a maximum in total, and a quarter of it per account. */
export class ConnectionSlots {
  private readonly byAccount = new Map<number, number>();
  private taken = 0;

  constructor(private readonly terms: ConnectionSlotOptions) {}

  /** @throws ApiError `rate_limit_exceeded` when the account or the server has no free slot. */
  assertFree(accountRef: number): void {
    const { slotsMax, held, retryAfterSeconds } = this.terms;
    const isAccountFull = this.countOf(accountRef) >= Math.floor(slotsMax * ACCOUNT_PART);
    if (!isAccountFull && this.taken < slotsMax) return;
    const whose = isAccountFull ? "this account" : "this server";
    throw new ApiError("rate_limit_exceeded", `Too many ${held} of ${whose} are open. Close one first.`, {
      retryAfterSeconds,
    });
  }

  /** Takes a slot. Returns a function that releases it. @throws ApiError `rate_limit_exceeded` */
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
