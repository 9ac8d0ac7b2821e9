import { isoTime } from "../../kernel/date-time.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Caller } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, pageOf } from "../../kernel/http/pagination.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { TierName, Tiers } from "../../kernel/tiers.ts";
import type { AccountActor } from "./actor.ts";
import type { PlatformCredentials } from "./credentials.ts";
import { assertTierOpen, foldEmail, HOUR_MS, monthOf, type SignupMode, USER_ID_LENGTH } from "./domain.ts";
import type { AccountLedger } from "./ledger.ts";
import type { DefaultProjects } from "./ports.ts";
import type { Accounts } from "./registry.ts";
import type { AccountRow, AccountStore } from "./store.ts";

/** What the service is built on. */
export interface AccountServiceDeps {
  readonly store: AccountStore;
  readonly accounts: Accounts;
  readonly ledger: AccountLedger;
  readonly credentials: PlatformCredentials;
  readonly projects: DefaultProjects;
  readonly writer: Writer;
  readonly ids: Ids;
  readonly outbox: Outbox;
  readonly tiers: Tiers;
  readonly signup: SignupMode;
  readonly rotationGraceMs: number;
}

/** An account, as the operator sees it. */
export interface AccountView {
  readonly user_id: string;
  readonly email: string;
  readonly tier: TierName;
  readonly balance: number;
  readonly suspended: boolean;
  readonly created_at: string;
}

/** Terms of an account that the operator changes. */
export interface AccountChange {
  readonly tier?: TierName;
  readonly balance?: number;
  readonly suspended?: boolean;
}

/** The use cases of accounts. */
export class AccountService {
  private nextRef: number;

  constructor(private readonly deps: AccountServiceDeps) {
    this.nextRef = deps.store.highestNumber("account") + 1;
  }

  /**
   * Creates an account with its default project, credits and key, in one unit of work.
   * @throws ApiError `conflict` when the e-mail address is known.
   */
  create(
    tx: Tx,
    terms: { email: string; tier: TierName; balance?: number | undefined; key?: string },
  ): { account: AccountActor; key: string } {
    const { store, accounts, ledger, credentials, projects, ids, tiers } = this.deps;
    const folded = foldEmail(terms.email);
    if (store.hasEmail(folded))
      throw new ApiError("conflict", "There is an account with this e-mail address already.");
    const row: AccountRow = {
      ref: this.nextRef++,
      user_id: `usr_${ids.base62(USER_ID_LENGTH)}`,
      email: terms.email,
      tier: terms.tier,
      balance: terms.balance ?? tiers[terms.tier].monthlyCredits,
      suspended: 0,
      rotated_at: null,
      granted_month: monthOf(tx.now),
      created_at: tx.now,
    };
    store.insert(tx, row, folded);
    const account = accounts.add(row, projects.createDefault(tx, row.ref));
    tx.onRollback(() => accounts.drop(row.ref));
    ledger.recordInitial(tx, account);
    return { account, key: credentials.issue(tx, account, terms.key) };
  }

  /**
   * Signs someone up. The key of a free account is in the answer; that of a pro account goes out by e-mail.
   * @throws ApiError `forbidden`, `conflict`, `service_unavailable` (no mail server for the tier pro).
   */
  signUp(email: string, tier: "free" | "pro"): Promise<{ user_id: string; api_key?: string }> {
    const { outbox, signup, writer } = this.deps;
    assertTierOpen(signup, tier);
    if (tier === "pro" && !outbox.available) {
      throw new ApiError(
        "service_unavailable",
        "This server cannot send e-mail, which the tier pro needs for its key.",
      );
    }
    return writer.submit((tx) => {
      const { account, key } = this.create(tx, { email, tier });
      if (tier === "free") return { user_id: account.userId, api_key: key };
      outbox.enqueue(tx, welcomeMail(email, account.userId, key));
      return { user_id: account.userId };
    });
  }

  /**
   * Changes an account's terms; all of it works for the very next request.
   * @throws ApiError `not_found`; `invalid_request` when the calling operator would lock itself out; `forbidden` when a
   *   key that ends would make an operator.
   */
  change(tx: Tx, userId: string, change: AccountChange, caller: Caller, requestId: string): AccountView {
    const { accounts, ledger, store } = this.deps;
    const account = this.known(userId);
    if (account.ref === caller.account.ref) assertKeepsOperating(change);
    if (change.tier === "unlimited") assertMayMakeOperator(caller);
    const { tier, tierSince, suspended } = account;
    accounts.touch(account);
    account.tier = change.tier ?? tier;
    if (account.tier !== tier) account.tierSince = tx.now;
    account.suspended = change.suspended ?? suspended;
    tx.onRollback(() => {
      account.tier = tier;
      account.tierSince = tierSince;
      account.suspended = suspended;
    });
    store.setTerms(tx, account.ref, account.tier, account.suspended);
    if (change.balance !== undefined) ledger.reset(tx, account, change.balance, requestId);
    return viewOf(account);
  }

  /** A page of accounts, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(limit: number, cursor: string | undefined): { accounts: AccountView[]; cursor?: string } {
    const { store, accounts } = this.deps;
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(cursor);
    const page = pageOf(store.accountsBefore(before, limit + 1), limit, (row) => [row.ref]);
    const items = page.items.map((row) => viewOf(accounts.get(row.ref)));
    return page.cursor === undefined ? { accounts: items } : { accounts: items, cursor: page.cursor };
  }

  /**
   * Rotates the account's platform key. The grace is the configured one unless given.
   * @throws ApiError `rate_limit_exceeded`
   */
  rotateKey(
    tx: Tx,
    accountRef: number,
    graceHours: number | undefined,
  ): { key: string; rotated_at: string; expires_at: string } {
    const { accounts, credentials, rotationGraceMs } = this.deps;
    const graceMs = graceHours === undefined ? rotationGraceMs : Math.round(graceHours * HOUR_MS);
    const { key, rotatedAt, expiresAt } = credentials.rotate(tx, accounts.get(accountRef), graceMs);
    return { key, rotated_at: isoTime(rotatedAt), expires_at: isoTime(expiresAt) };
  }

  /** Ends all platform keys of an account and makes a new one. @throws ApiError `not_found` */
  resetKey(tx: Tx, userId: string): { user_id: string; api_key: string; reset_at: string } {
    const account = this.known(userId);
    const key = this.deps.credentials.reset(tx, account);
    return { user_id: account.userId, api_key: key, reset_at: isoTime(tx.now) };
  }

  private known(userId: string): AccountActor {
    const account = this.deps.accounts.byUserId(userId);
    if (account === null) throw new ApiError("not_found", "There is no account with this user_id.");
    return account;
  }
}

/** The keys of an account of tier `unlimited` are operators without an end. @throws ApiError `forbidden` */
function assertMayMakeOperator(caller: Caller): void {
  if (caller.endsAt === null && !caller.superseded) return;
  throw new ApiError(
    "forbidden",
    "This key ends, and the tier unlimited would make an operator that does not. Use a key without an end.",
  );
}

/** Nobody else could undo it. @throws ApiError `invalid_request` */
function assertKeepsOperating(change: AccountChange): void {
  if (change.suspended !== true && (change.tier ?? "unlimited") === "unlimited") return;
  throw new ApiError(
    "invalid_request",
    "This is the account that calls: suspending it, or taking its tier, would lock the operator out.",
  );
}

function viewOf(account: AccountActor): AccountView {
  return {
    user_id: account.userId,
    email: account.email,
    tier: account.tier,
    balance: account.balance,
    suspended: account.suspended,
    created_at: isoTime(account.createdAt),
  };
}

function welcomeMail(
  email: string,
  userId: string,
  key: string,
): { to: string; subject: string; text: string } {
  const text = [
    "Welcome. Your account is ready.",
    "",
    `User: ${userId}`,
    `API key: ${key}`,
    "",
    "Send the key with every request as: Authorization: Bearer <key>",
    "Keep it secret. If it leaks, rotate it with POST /v1/keys/rotate.",
  ].join("\n");
  return { to: email, subject: "Your API key", text };
}
