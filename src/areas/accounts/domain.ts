import { ApiError } from "../../kernel/errors.ts";

/** Characters of a user id after `usr_`. */
export const USER_ID_LENGTH = 20;
/** Milliseconds of an hour. */
export const HOUR_MS = 60 * 60 * 1000;
/** A platform key can be rotated once in this time. */
export const ROTATION_INTERVAL_MS = HOUR_MS;
/** Longest grace that the caller of a rotation can ask for, in hours: 7 days, which is also the default. */
export const GRACE_HOURS_MAX = 168;
/** Signups allowed from one client address within {@link SIGNUP_WINDOW_MS}. */
export const SIGNUPS_PER_WINDOW = 10;
/**
 * Accounts that all signups together may create within {@link SIGNUP_WINDOW_MS}. An attacker can have very many networks,
 * and each account is stored for good.
 */
export const SIGNUPS_TOTAL_PER_WINDOW = 1_000;
/** The window of the signup limits. */
export const SIGNUP_WINDOW_MS = HOUR_MS;

/** Who may sign up: nobody, accounts of tier free, or those of tier pro as well. */
export type SignupMode = "closed" | "free" | "open";

/** E-mail addresses compare without case. */
export function foldEmail(email: string): string {
  return email.toLowerCase();
}

/** The month of a moment (UTC), counted so that the next month is one more. */
export function monthOf(epochMs: number): number {
  const date = new Date(epochMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** The start of the hour that a moment belongs to: charges are summed by it. */
export function hourOf(epochMs: number): number {
  return epochMs - (epochMs % HOUR_MS);
}

/** @throws ApiError `forbidden` when nobody may sign up. */
export function assertSignupOpen(mode: SignupMode): void {
  if (mode === "closed") {
    throw new ApiError("forbidden", "Signup is closed on this server. Ask its operator for an account.");
  }
}

/** @throws ApiError `forbidden` when this tier may not sign up by itself. */
export function assertTierOpen(mode: SignupMode, tier: "free" | "pro"): void {
  if (mode === "free" && tier === "pro") {
    throw new ApiError("forbidden", "Only the tier free is open for signup on this server.");
  }
}

/** @throws ApiError `rate_limit_exceeded` when the last rotation was less than an hour ago. */
export function assertMayRotate(rotatedAt: number | null, now: number): void {
  const waitMs = (rotatedAt ?? Number.NEGATIVE_INFINITY) + ROTATION_INTERVAL_MS - now;
  if (waitMs <= 0) return;
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  const message = "The key was rotated within the last hour: at most one rotation an hour.";
  throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds });
}
