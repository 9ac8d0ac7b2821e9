import { ApiError } from "../errors.ts";
import type { Tx } from "../storage/tx.ts";
import type { TierName } from "../tiers.ts";
import type { Operation, Scope } from "./operation.ts";

/** The account behind a request, live: a change of tier or balance shows at once. */
export interface CallerAccount {
  /** The row's number; never shown. */
  readonly ref: number;
  readonly userId: string;
  readonly tier: TierName;
  /** When the tier was last changed, epoch milliseconds; 0 when it was not since the account came into memory. */
  readonly tierSince: number;
  readonly balance: number;
  readonly suspended: boolean;
  /** Where credentials of the whole account work. */
  readonly defaultProject: CallerProject;
}

/** The project that a request works in. */
export interface CallerProject {
  /** The row's number; never shown. */
  readonly ref: number;
  readonly id: string;
}

/** Who makes a request, as its key says. */
export interface Caller {
  readonly account: CallerAccount;
  readonly project: CallerProject;
  /** Identifies the key, not its secret: `platform:7`, `managed:12`. */
  readonly credential: string;
  /** The account's own key, as against a managed one. */
  readonly isPlatformKey: boolean;
  /** Scopes of a managed key; the platform key has `*`. */
  readonly scopes: ReadonlySet<string>;
  /** Whether the key was made for one project and sees that alone. */
  readonly projectBound: boolean;
  /** Whether that project has been deleted; live. */
  readonly projectDeleted: boolean;
  /** Whether the key has been revoked since it was looked up; live. */
  readonly revoked: boolean;
  /** When the key ends, epoch milliseconds; null when it does not. Live. */
  readonly endsAt: number | null;
  /** Whether it is a platform key in its grace: a rotation has put a newer one in its place. Live. */
  readonly superseded: boolean;
}

/** Finds the caller of a key. Supplied by the areas that keep keys. */
export interface Authenticator {
  /**
   * The caller of the key with this SHA-256 (hex), or null when it is unknown, revoked, expired or past its grace.
   * The key's form and checksum have been checked.
   */
  authenticate(digest: string): Caller | null;
}

/** Takes credits. Supplied by the area that keeps accounts. */
export interface Charger {
  /**
   * Takes `cost` credits for an operation within the unit of work; accounts of tier `unlimited` pay nothing.
   * @throws ApiError `insufficient_balance` with `balance` and `user_id`.
   */
  charge(tx: Tx, account: CallerAccount, operation: string, cost: number): void;
  /** Gives back what {@link charge} took, in a later unit of work. */
  refund(tx: Tx, account: CallerAccount, operation: string, cost: number): void;
}

/**
 * Looks again, within the unit of work, at what the gates have let pass: the body may have taken its time, and a
 * unit queued before this one may have revoked the key or deleted the project.
 *
 * @throws ApiError `unauthorized`, `forbidden`
 */
export function assertStillValid(caller: Caller): void {
  if (caller.revoked) throw new ApiError("unauthorized", "This key has just been revoked.");
  if (caller.account.suspended) throw accountSuspended();
  if (caller.projectDeleted) throw projectGone();
}

/**
 * A leaked key must not outlive its end: in its grace a platform key changes no keys, and no key that ends is answered
 * with one that does not.
 *
 * @throws ApiError `forbidden`
 */
export function assertMayChangeKeys(caller: Caller, operation: Operation): void {
  if (!operation.changesKeys) return;
  if (caller.superseded) {
    throw new ApiError(
      "forbidden",
      "A newer platform key has been made: until its end this one serves requests, but changes no keys. Use the newest one.",
    );
  }
  if (operation.grantsEverything && caller.endsAt !== null) {
    throw new ApiError(
      "forbidden",
      "This key ends, and the new one would not: no key gives what it lacks. Use a key without an end.",
    );
  }
}

/** The refusal of a suspended account's keys. */
export function accountSuspended(): ApiError {
  return new ApiError("forbidden", "This account is suspended.");
}

/** The refusal of a key whose project has been deleted. */
export function projectGone(): ApiError {
  return new ApiError("forbidden", "The project of this key has been deleted. Use a key of another one.");
}

/** Whether the caller's key carries a scope: itself, the area's `*`, or `*`. */
export function hasScope(caller: Caller, scope: Scope | string): boolean {
  const scopes = caller.scopes;
  if (scopes.has("*") || scopes.has(scope)) return true;
  return scopes.has(`${scope.slice(0, scope.indexOf(":"))}:*`);
}

/** Whether the caller may use the operator API (decisions: the operator's platform key, or an account-level one with `*`). */
export function isOperator(caller: Caller): boolean {
  return caller.account.tier === "unlimited" && !caller.projectBound && caller.scopes.has("*");
}

/** @throws ApiError `forbidden`, naming the scope, when the caller's key lacks it. */
export function requireScope(caller: Caller, scope: Scope): void {
  if (hasScope(caller, scope)) return;
  throw new ApiError("forbidden", `This key lacks the scope ${scope}. Use a key that has it.`);
}
