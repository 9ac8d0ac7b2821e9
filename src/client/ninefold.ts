import { Api } from "./api.ts";
import { Account } from "./areas/account.ts";
import { Catch } from "./areas/catch.ts";
import { Flags } from "./areas/flags.ts";
import { Keys } from "./areas/keys.ts";
import { Locks } from "./areas/locks.ts";
import { Meter, NinefoldMethods } from "./areas/methods.ts";
import { Monitors } from "./areas/monitors.ts";
import { Notary } from "./areas/notary.ts";
import type { CheckAnswer, CheckAnswers, CheckBody, CheckItem, HoldBody } from "./generated/api.ts";
import { type HeldLock, holdLock, type WithLockOptions } from "./hold.ts";
import { type ChangeOptions, type NinefoldOptions, readApiKey, settingsOf } from "./options.ts";
import { type ReservedWork, reserve } from "./reserve.ts";
import { type Answer, Transport } from "./transport.ts";

/**
 * A client of a Ninefold server, with one key. Bodies and responses use the names of the API; options and arguments
 * of the client are in camel case.
 */
export class Ninefold extends NinefoldMethods {
  /** The key's account: credits and platform key. */
  readonly account = new Account(this.api);
  readonly keys = new Keys(this.api);
  readonly flags = new Flags(this.api);
  readonly locks = new Locks(this.api);
  readonly monitors = new Monitors(this.api);
  readonly catch = new Catch(this.api);
  readonly notary = new Notary(this.api);

  /** @throws TypeError for an invalid option. */
  constructor(options: NinefoldOptions) {
    super(new Api(new Transport(settingsOf(options), readApiKey(options.apiKey))));
  }

  /** The same client with another key, such as one of another project. */
  withKey(apiKey: string | null): Ninefold {
    const { fetch, urls, ...settings } = this.api.transport.settings;
    return new Ninefold({ ...settings, url: urls, ...(fetch === null ? {} : { fetch }), apiKey });
  }

  /**
   * Authorizes up to 20 requests of customers, one after another. Costs 1 credit each. See the other form for one request.
   */
  override check(
    body: CheckBody & { readonly checks: readonly CheckItem[] },
    options?: ChangeOptions,
  ): Promise<CheckAnswers>;
  /** Authorizes a customer's request: key, scopes, addresses, rate limits, uses, credits and flags, all or nothing. */
  override check(body: CheckBody, options?: ChangeOptions): Promise<CheckAnswer>;
  override check(body: CheckBody, options?: ChangeOptions): Promise<CheckAnswer & CheckAnswers> {
    return super.check(body, options) as Promise<CheckAnswer & CheckAnswers>;
  }

  /** The meter of one of your customers. Sends no request. */
  meter(meterId: string): Meter {
    return new Meter(this.api, meterId);
  }

  /**
   * Holds an amount of a meter, runs a function, and captures the amount that it reports as used. An error of the
   * function releases the hold; if this process dies, the hold expires.
   *
   * @throws NinefoldError `insufficient_balance` before the function starts; `conflict` if the hold of that
   * `hold_id` is no
   * longer open; any error of the function.
   */
  reserve<T>(meterId: string, body: HoldBody, work: ReservedWork<T>): Promise<T> {
    return reserve(this.meter(meterId), body, work);
  }

  /**
   * Runs a function while holding a lock, which is renewed meanwhile and always released. The function receives the
   * fencing token and a signal that is aborted when the lock is lost.
   *
   * @throws NinefoldError `timeout` if the lock was not free within `waitMs`; `lock_lost` if it was lost before the
   * function
   * returned, even if it returned successfully; any error of the function.
   */
  withLock<T>(
    key: string,
    work: (lock: HeldLock) => T | Promise<T>,
    options: WithLockOptions = {},
  ): Promise<T> {
    return holdLock(this.locks, key, work, options);
  }

  /**
   * Sends any request, such as `nf.request("GET", "/v1/ping")`, with the key, retries and errors of all others.
   *
   * @returns the complete response with status and headers.
   */
  async request<T = unknown>(
    method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    body?: unknown,
    options: ChangeOptions = {},
  ): Promise<Answer<T>> {
    if (!path.startsWith("/"))
      throw new TypeError(`path must begin with a slash, not ${JSON.stringify(path)}`);
    return (await this.api.raw(method.toUpperCase(), path, body, options)) as Answer<T>;
  }
}
