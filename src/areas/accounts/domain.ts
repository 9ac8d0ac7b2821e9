import { ApiError } from "../../kernel/errors.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";

/** Characters of a user id after `usr_`. */
export const USER_ID_LENGTH = 20;
/** Minimum time between two rotations of a platform key. */
export const ROTATION_INTERVAL_MS = HOUR_MS;
/** Longest grace period of a rotation, in hours: 7 days, which is also the default. */
export const GRACE_HOURS_MAX = 168;
/** Signup attempts of one client network within {@link SIGNUP_WINDOW_MS}. */
export const SIGNUPS_PER_WINDOW = 10;
/**
 * Accounts that all signups together may create within {@link SIGNUP_WINDOW_MS}: an attacker can have very many networks,
 * and accounts are stored permanently.
 */
export const SIGNUPS_TOTAL_PER_WINDOW = 1_000;
/** The window of the signup limits. */
export const SIGNUP_WINDOW_MS = HOUR_MS;

/** Who can sign up: no one, accounts of tier free, or accounts of tiers free and pro. */
export type SignupMode = "closed" | "free" | "open";

/** E-mail addresses are compared case-insensitively. */
export function foldEmail(email: string): string {
  return email.toLowerCase();
}

/** The month of a time (UTC) as a number that increases by one each month. */
export function monthOf(epochMs: number): number {
  const date = new Date(epochMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** The start of the hour of a time: charges are summed by hour. */
export function hourOf(epochMs: number): number {
  return epochMs - (epochMs % HOUR_MS);
}

/** @throws ApiError `forbidden` when signup is closed. */
export function assertSignupOpen(mode: SignupMode): void {
  if (mode === "closed") {
    throw new ApiError(
      "forbidden",
      "Signup is closed on this server. The operator of the server can create an account for you.",
    );
  }
}

/** @throws ApiError `forbidden` when this tier is not open for signup. */
export function assertTierOpen(mode: SignupMode, tier: "free" | "pro"): void {
  if (mode === "free" && tier === "pro") {
    throw new ApiError(
      "forbidden",
      "Only the tier free is open for signup on this server. Use it, or contact the operator of the server.",
    );
  }
}

/** @throws ApiError `rate_limit_exceeded` when the last rotation was less than an hour ago. */
export function assertMayRotate(rotatedAt: number | null, now: number): void {
  const waitMs = (rotatedAt ?? Number.NEGATIVE_INFINITY) + ROTATION_INTERVAL_MS - now;
  if (waitMs <= 0) return;
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  const message = `The key was rotated within the last hour. Retry in ${retryAfterSeconds} s.`;
  throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds });
}
