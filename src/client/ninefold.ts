import { type Answers, Api, type ListOf, type QueryOf } from "./api.ts";
import { Account, Admin } from "./areas/accounts.ts";
import { Audit } from "./areas/audit.ts";
import { Catch } from "./areas/catch.ts";
import { Flags } from "./areas/flags.ts";
import { Keys } from "./areas/keys.ts";
import { Locks } from "./areas/locks.ts";
import { AllMeters, Meter } from "./areas/meter.ts";
import { Monitors } from "./areas/monitors.ts";
import { Notary } from "./areas/notary.ts";
import { Projects } from "./areas/projects.ts";
import { Relay } from "./areas/relay.ts";
import type { CheckBody, HoldBody, SignupBody } from "./generated/api.ts";
import { type HeldLock, holdLock, type WithLockOptions } from "./hold.ts";
import {
  type ChangeOptions,
  type NinefoldOptions,
  type RequestOptions,
  readApiKey,
  settingsOf,
} from "./options.ts";
import { type ReservedWork, reserve } from "./reserve.ts";
import { type Answer, Transport } from "./transport.ts";

/**
 * A client of a Ninefold server, with one key. Bodies and responses use the names of the API; options and arguments
 * of the client are in camel case.
 */
export class Ninefold {
  /** The key's account: credits and platform key. */
  readonly account: Account;
  /** All meters of the project: their usage and alert. */
  readonly allMeters: AllMeters;
  readonly projects: Projects;
  readonly keys: Keys;
  readonly flags: Flags;
  readonly locks: Locks;
  readonly monitors: Monitors;
  readonly relay: Relay;
  readonly catch: Catch;
  readonly notary: Notary;
  readonly audit: Audit;
  /** For the operator's key. */
  readonly admin: Admin;
  private readonly api: Api;

  /** @throws TypeError for an invalid option. */
  constructor(options: NinefoldOptions) {
    this.api = new Api(new Transport(settingsOf(options), readApiKey(options.apiKey)));
    this.account = new Account(this.api);
    this.allMeters = new AllMeters(this.api);
    this.projects = new Projects(this.api);
    this.keys = new Keys(this.api);
    this.flags = new Flags(this.api);
    this.locks = new Locks(this.api);
    this.monitors = new Monitors(this.api);
    this.relay = new Relay(this.api);
    this.catch = new Catch(this.api);
    this.notary = new Notary(this.api);
    this.audit = new Audit(this.api);
    this.admin = new Admin(this.api);
  }

  /** The same client with another key, such as one of another project. */
  withKey(apiKey: string | null): Ninefold {
    const { fetch, ...settings } = this.api.transport.settings;
    return new Ninefold({ ...settings, ...(fetch === null ? {} : { fetch }), apiKey });
  }

  /** Checks that the server responds. Needs no key. */
  ping(options?: RequestOptions): Answers<"ping"> {
    return this.api.call("ping", {}, options);
  }

  /** Creates an account if the operator has enabled signup. Needs no key. Not retried when the response is lost. */
  signup(body: SignupBody, options?: RequestOptions): Answers<"signup"> {
    return this.api.call("signup", { body }, options);
  }

  /** Returns the API description. Needs no key. */
  openApi(options?: RequestOptions): Answers<"openapi.read"> {
    return this.api.call("openapi.read", {}, options);
  }

  /** Returns an overview of every area that the key can read. */
  overview(options?: RequestOptions): Answers<"overview.read"> {
    return this.api.call("overview.read", {}, options);
  }

  /**
   * Decides on a customer's request: key, scopes, IP address, rate limits, uses, credits and flags in one call.
   * Check `allowed`; `status` is the status to send to the customer. A denied check takes nothing.
   */
  check(body: CheckBody, options?: ChangeOptions): Answers<"check"> {
    return this.api.call("check", { body }, options);
  }

  /** Lists the meters of your customers by id. */
  meters(query: QueryOf<"meter.list"> = {}, options: RequestOptions = {}): ListOf<"meter.list", "meters"> {
    return this.api.list("meter.list", "meters", { query }, options);
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
