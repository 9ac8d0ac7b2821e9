import type { Answers, Api, ListOf, PageQuery } from "../api.ts";
import type { AccountCreateBody, AccountUpdateBody, LoginLinkBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";
import { AdminAudit } from "./audit.ts";
import { AdminBackups } from "./backups.ts";

/** The key's account: its credits and its platform key. */
export class Account {
  constructor(private readonly api: Api) {}

  /** Returns the credits of the account. */
  balance(options?: RequestOptions): Answers<"meter.own.balance"> {
    return this.api.call("meter.own.balance", {}, options);
  }

  /** Deducts credits. @throws NinefoldError `insufficient_balance` with `extras.balance`; nothing is changed then. */
  deduct(amount: number, options?: ChangeOptions): Answers<"meter.own.deduct"> {
    return this.api.call("meter.own.deduct", { body: { amount } }, options);
  }

  /** Adds credits. */
  refill(amount: number, options?: ChangeOptions): Answers<"meter.own.refill"> {
    return this.api.call("meter.own.refill", { body: { amount } }, options);
  }

  /** Lists the ledger of the credits, newest first. */
  history(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"meter.own.history", "entries"> {
    return this.api.list("meter.own.history", "entries", { query }, options);
  }

  /**
   * Rotates the platform key. Older keys work for the grace period (`graceHours`, or as the server is configured),
   * but can no longer change keys. @throws NinefoldError 429 within the same hour.
   */
  rotateKey(
    options: ChangeOptions & { readonly graceHours?: number | undefined } = {},
  ): Answers<"keys.platform.rotate"> {
    const { graceHours, ...rest } = options;
    const body = graceHours === undefined ? {} : { grace_hours: graceHours };
    return this.api.call("keys.platform.rotate", { body }, rest);
  }

  /** Ends all browser sessions of the account. */
  endSessions(options?: ChangeOptions): Answers<"sessions.end"> {
    return this.api.call("sessions.end", {}, options);
  }
}

/** The operator's API and the test clock. */
export class Admin {
  readonly accounts: AdminAccounts;
  readonly audit: AdminAudit;
  readonly backups: AdminBackups;

  constructor(private readonly api: Api) {
    this.accounts = new AdminAccounts(api);
    this.audit = new AdminAudit(api);
    this.backups = new AdminBackups(api);
  }

  /** Returns the state of the server. */
  status(options?: RequestOptions): Answers<"admin.status.read"> {
    return this.api.call("admin.status.read", {}, options);
  }

  /** Returns every option of the server with its value and source. Secrets are masked. */
  options(options?: RequestOptions): Answers<"admin.options.list"> {
    return this.api.call("admin.options.list", {}, options);
  }

  /** Creates a link that logs a browser in with this client's key, once. */
  createLoginLink(body: LoginLinkBody = {}, options?: ChangeOptions): Answers<"admin.login_links.create"> {
    return this.api.call("admin.login_links.create", { body }, options);
  }

  /** Returns the time of the test clock in epoch milliseconds, also while it is being advanced. */
  clock(options?: RequestOptions): Answers<"admin.clock.read"> {
    return this.api.call("admin.clock.read", {}, options);
  }

  /**
   * Advances the test clock of a server that was started with one and runs everything that falls due. Resolves when
   * all of it is complete.
   */
  advanceClock(ms: number, options?: ChangeOptions): Answers<"admin.clock.advance"> {
    return this.api.call("admin.clock.advance", { body: { advance_ms: ms } }, options);
  }
}

/** All accounts, for the operator. */
export class AdminAccounts {
  constructor(private readonly api: Api) {}

  /** Creates an account. Its key is shown in this response only. */
  create(body: AccountCreateBody, options?: ChangeOptions): Answers<"admin.accounts.create"> {
    return this.api.call("admin.accounts.create", { body }, options);
  }

  /** Lists accounts, newest first. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"admin.accounts.list", "accounts"> {
    return this.api.list("admin.accounts.list", "accounts", { query }, options);
  }

  /** Updates e-mail address, tier, balance or suspension. Omitted fields stay unchanged. */
  update(userId: string, body: AccountUpdateBody, options?: ChangeOptions): Answers<"admin.accounts.update"> {
    return this.api.call("admin.accounts.update", { params: { user_id: userId }, body }, options);
  }

  /** Replaces all platform keys of an account immediately. The new key is shown in this response only. */
  resetKey(userId: string, options?: ChangeOptions): Answers<"keys.platform.reset"> {
    return this.api.call("keys.platform.reset", { params: { user_id: userId } }, options);
  }
}
