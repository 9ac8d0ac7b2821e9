import { changed } from "../../kernel/audit/change.ts";
import type { AuditedRequest, AuditTrail } from "../../kernel/audit/trail.ts";
import type { Caller } from "../../kernel/callers/caller.ts";
import { ApiError } from "../../kernel/errors.ts";
import { AttemptLimiter } from "../../kernel/http/access/guard.ts";
import { pageOf, pageStart } from "../../kernel/http/requests/pagination.ts";
import type { TextSource } from "../../kernel/http/responses/text-stream.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import type { MailQueue } from "../../kernel/mail/outbox.ts";
import type { MailMessage } from "../../kernel/mail/smtp.ts";
import type { SuspendedAccounts } from "../../kernel/projects/suspended-accounts.ts";
import type { AuditChange, Tx } from "../../kernel/storage/tx.ts";
import type { ManualClock } from "../../kernel/time/clock.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import type { PlatformCredentials } from "./credentials.ts";
import {
  assertTierOpen,
  foldEmail,
  monthOf,
  SIGNUP_WINDOW_MS,
  SIGNUPS_TOTAL_PER_WINDOW,
  type SignupMode,
  USER_ID_LENGTH,
} from "./domain.ts";
import type { AccountExports } from "./exports.ts";
import type { AccountActor, AccountLedger, Accounts } from "./ledger.ts";
import type { AccountRemoval } from "./removal.ts";
import type {
  Account,
  AccountCreateBody,
  AccountDeleted,
  AccountPage,
  AccountUpdateBody,
  ResetPlatformKey,
  RotatedPlatformKey,
  SignedUp,
  SignupBody,
} from "./schema.ts";
import type { AccountRow, AccountStore } from "./store.ts";

/** The configuration of accounts. */
export interface AccountSettings {
  readonly signup: SignupMode;
  readonly rotationGraceMs: number;
  readonly tiers: Tiers;
  /** The test clock, which the operator can advance; null with a real clock. */
  readonly testClock: ManualClock | null;
}

export interface AccountServiceDeps extends Pick<Kernel, "writer" | "ids" | "clock">, AccountSettings {
  readonly store: AccountStore;
  readonly accounts: Accounts;
  readonly ledger: AccountLedger;
  readonly credentials: PlatformCredentials;
  readonly outbox: MailQueue;
  readonly trail: AuditTrail;
  readonly suspended: SuspendedAccounts;
  readonly removal: Pick<AccountRemoval, "delete">;
  readonly exports: Pick<AccountExports, "source">;
}

/** State of an account before its first credits and its key. */
const INITIAL_STATE = {
  balance: 0,
  suspended: 0,
  deletedAt: null,
  rotatedAt: null,
  oldestKey: 0,
  newestKey: 0,
};

/** The limiter's key for signups of all networks. */
const ALL_SIGNUPS = "all";

/** The use cases of accounts. */
export class AccountService {
  private nextRef: number;
  private readonly signups: AttemptLimiter;

  constructor(private readonly deps: AccountServiceDeps) {
    this.signups = new AttemptLimiter(deps.clock, SIGNUPS_TOTAL_PER_WINDOW, SIGNUP_WINDOW_MS);
    this.nextRef = deps.store.highestRef() + 1;
  }

  /**
   * Creates an account with its default project, credits and key, in one unit of work.
   * @throws ApiError `conflict` when another account has the e-mail address.
   */
  create(tx: Tx, terms: AccountCreateBody, givenKey?: string): { account: AccountActor; key: string } {
    const { store, accounts, ledger, credentials, ids, tiers } = this.deps;
    const emailFolded = this.foldUnusedEmail(terms.email, 0);
    const { email, tier, balance = tiers[tier].monthlyCredits } = terms;
    const userId = `usr_${ids.base62(USER_ID_LENGTH)}`;
    const row: AccountRow = { ref: this.nextRef++, userId, email, tier, createdAt: tx.now, ...INITIAL_STATE };
    store.insert(tx, { ...row, emailFolded, month: monthOf(tx.now) });
    const account = accounts.add(tx, row);
    ledger.grantUpTo(tx, account, balance);
    tx.audit(creationOf(account));
    return { account, key: credentials.issue(tx, account, givenKey) };
  }

  /**
   * Creates an account by signup. The response contains the key of a free account; the key of a pro account is e-mailed.
   * @throws ApiError `forbidden`, `conflict`, `rate_limit_exceeded`, `service_unavailable` (no mail server for the tier pro).
   */
  signUp(
    { email, tier }: SignupBody,
    request: Pick<AuditedRequest, "requestId" | "requestOrigin">,
  ): Promise<SignedUp> {
    const { outbox, signup, writer, trail } = this.deps;
    assertTierOpen(signup, tier);
    if (tier === "pro" && !outbox.available) {
      throw new ApiError(
        "service_unavailable",
        "This server cannot send e-mail, which the tier pro requires for its key. Sign up with the tier free.",
      );
    }
    return writer.submit((tx): SignedUp => {
      this.countSignup(tx);
      const { account, key } = this.create(tx, { email, tier });
      trail.recordPublic(tx, "signup", request, account, creationOf(account));
      if (tier === "free") return { user_id: account.userId, api_key: key };
      outbox.enqueue(tx, account.ref, welcomeMail(email, account.userId, key));
      return { user_id: account.userId };
    });
  }

  /** Counts an account that a signup creates, on any network. @throws ApiError `rate_limit_exceeded` */
  private countSignup(tx: Tx): void {
    const retryAfterSeconds = this.signups.takeIn(tx, ALL_SIGNUPS);
    if (retryAfterSeconds > 0) {
      const message = `Too many signups on this server. Retry in ${retryAfterSeconds} s.`;
      throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds });
    }
  }

  /**
   * Updates an account. The update applies from the next request.
   * @throws ApiError `not_found`; `conflict` when another account has the e-mail address; `invalid_request` when the
   *   calling operator would lock itself out; `forbidden` when a key that expires would create an operator.
   */
  update(tx: Tx, userId: string, change: AccountUpdateBody, caller: Caller, requestId: string): Account {
    const { accounts, ledger, store } = this.deps;
    const account = this.findAccount(userId);
    if (account.ref === caller.account.ref) assertRemainsOperator(change);
    if (change.tier === "unlimited") assertMayGrantOperator(caller);
    const { tier = account.tier, suspended = account.suspended } = change;
    const tierSince = tier === account.tier ? account.tierSince : tx.now;
    const before = auditedFields(account);
    if (change.email !== undefined) this.setEmail(tx, account, change.email);
    accounts.change(tx, account, { tier, tierSince, suspended });
    store.setTerms(tx, tier, suspended ? 1 : 0, account.ref);
    this.deps.suspended.set(tx, account.ref, suspended);
    if (change.balance !== undefined) ledger.set(tx, account, "reset", change.balance, requestId);
    tx.audit(changed({ ...aboutAccount(account, "changed"), before, after: auditedFields(account) }));
    return viewOf(account);
  }

  /** Deletes an account. @throws ApiError `not_found`; `conflict` for the operator's account and the caller's own. */
  delete(tx: Tx, userId: string, caller: Caller): AccountDeleted {
    return this.deps.removal.delete(tx, this.findAccount(userId), caller);
  }

  /** Everything that belongs to an account, as JSON lines. @throws ApiError `not_found` */
  export(tx: Tx, userId: string): TextSource {
    const account = this.findAccount(userId);
    tx.audit({ ...aboutAccount(account, "exported"), before: null, after: null });
    return this.deps.exports.source(account);
  }

  /** A page of accounts, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(limit: number, cursor: string | undefined): AccountPage {
    const { store, accounts } = this.deps;
    const before = pageStart(cursor);
    const { items, ...next } = pageOf(store.refsBefore(before, limit + 1), limit, ({ ref }) => [ref]);
    return { accounts: items.map(({ ref }) => viewOf(accounts.get(ref))), ...next };
  }

  /**
   * Rotates the account's platform key. The default grace period is the configured one.
   * @throws ApiError `rate_limit_exceeded`
   */
  rotateKey(tx: Tx, accountRef: number, graceHours: number | undefined): RotatedPlatformKey {
    const { accounts, credentials, rotationGraceMs } = this.deps;
    const graceMs = graceHours === undefined ? rotationGraceMs : Math.round(graceHours * HOUR_MS);
    const account = accounts.get(accountRef);
    const rotated = credentials.rotate(tx, account, graceMs);
    const after = { older_keys_end: rotated.expires_at };
    tx.audit({ ...aboutAccount(account, "got a new platform key"), before: null, after });
    return rotated;
  }

  /** Revokes all platform keys of an account and creates a new one. @throws ApiError `not_found` */
  resetKey(tx: Tx, userId: string): ResetPlatformKey {
    const account = this.findAccount(userId);
    const key = this.deps.credentials.reset(tx, account);
    const what = "got a new platform key; the older ones were revoked";
    const after = { older_keys_end: isoTime(tx.now) };
    tx.audit({ ...aboutAccount(account, what), before: null, after });
    return { user_id: account.userId, api_key: key, reset_at: isoTime(tx.now) };
  }

  /** Changes the e-mail address of an account. @throws ApiError `conflict` when another account has it. */
  setEmail(tx: Tx, account: AccountActor, email: string): void {
    const { accounts, store } = this.deps;
    const folded = this.foldUnusedEmail(email, account.ref);
    accounts.change(tx, account, { email });
    store.setEmail(tx, email, folded, account.ref);
  }

  /** Folds an e-mail address that no account other than `accountRef` has. @throws ApiError `conflict` */
  private foldUnusedEmail(email: string, accountRef: number): string {
    const folded = foldEmail(email);
    const holder = this.deps.store.refOfEmail(folded);
    if (holder === 0 || holder === accountRef) return folded;
    throw new ApiError("conflict", "An account with this e-mail address already exists.");
  }

  private findAccount(userId: string): AccountActor {
    const ref = this.deps.store.refOfUser(userId);
    if (ref === 0) throw new ApiError("not_found", "There is no account with this user_id.");
    return this.deps.accounts.get(ref);
  }
}

/** An account of tier `unlimited` is an operator, and its key does not expire. @throws ApiError `forbidden` */
function assertMayGrantOperator(caller: Caller): void {
  if (caller.endsAt === null && !caller.superseded) return;
  throw new ApiError(
    "forbidden",
    "Your key expires, so it cannot make an account an operator (tier unlimited). Use a key that does not expire.",
  );
}

/** No other account could undo it. @throws ApiError `invalid_request` */
function assertRemainsOperator(change: AccountUpdateBody): void {
  if (change.suspended !== true && (change.tier ?? "unlimited") === "unlimited") return;
  throw new ApiError(
    "invalid_request",
    "This is your own account. Suspending it or changing its tier would lock you out. Use the key of another operator.",
  );
}

/** Common fields of the audit entries of an account. */
function aboutAccount({ ref, userId, email }: AccountActor, what: string) {
  return {
    summary: `Account ${email} ${what}`,
    target: { type: "account", id: userId },
    subjectRef: ref,
  };
}

function creationOf(account: AccountActor): AuditChange {
  return { ...aboutAccount(account, "created"), before: null, after: auditedFields(account) };
}

function auditedFields({ email, tier, balance, suspended }: AccountActor) {
  return { email, tier, balance, suspended };
}

function viewOf({ userId, email, tier, balance, suspended, createdAt }: AccountActor): Account {
  return { user_id: userId, email, tier, balance, suspended, created_at: isoTime(createdAt) };
}

function welcomeMail(email: string, userId: string, key: string): MailMessage {
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
