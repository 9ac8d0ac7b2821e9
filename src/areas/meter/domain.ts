import { ApiError } from "../../kernel/errors.ts";

/** Largest balance and amount: what JSON carries exactly everywhere. */
const BALANCE_LIMIT = Number.MAX_SAFE_INTEGER;

/** What a change does to a balance. */
export interface Movement {
  /** Signed: what the balance changes by. */
  readonly amount: number;
  readonly balance: number;
}

/** @throws ApiError `invalid_request` when an amount is not positive. */
export function assertPositive(amount: number): void {
  if (amount > 0) return;
  throw new ApiError("invalid_request", `amount must be a positive integer; ${amount} is not.`);
}

/** Takes `amount` from a balance. @throws ApiError `insufficient_balance`, with the balance and the meter. */
export function deducted(balance: number, amount: number, meterId: string): Movement {
  if (balance < amount) {
    throw new ApiError("insufficient_balance", `The deduction is ${amount}, but the balance is ${balance}.`, {
      extras: { balance, meter_id: meterId },
    });
  }
  return { amount: -amount, balance: balance - amount };
}

/** Adds `amount` to a balance. @throws ApiError `invalid_request` when it would pass the largest integer. */
export function refilled(balance: number, amount: number): Movement {
  if (amount > BALANCE_LIMIT - balance) {
    throw new ApiError("invalid_request", `The balance would pass ${BALANCE_LIMIT}. Nothing was changed.`);
  }
  return { amount, balance: balance + amount };
}

/** Sets a balance. */
export function resetTo(balance: number, target: number): Movement {
  return { amount: target - balance, balance: target };
}
