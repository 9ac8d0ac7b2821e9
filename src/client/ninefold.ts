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
 * A client of a Ninefold server, with one key. Bodies and answers are what goes over the wire, in its names; what is
 * the client's own (options, arguments) is in camel case.
 */
export class Ninefold {
  /** The account of the key: credits and platform key. */
  readonly account: Account;
  /** What concerns all meters of the project: their usage together, an alert. */
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

  /** @throws TypeError when an option cannot work. */
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

  /** The same with another key, such as one of another project. */
  withKey(apiKey: string | null): Ninefold {
    const { fetch, ...settings } = this.api.transport.settings;
    return new Ninefold({ ...settings, ...(fetch === null ? {} : { fetch }), apiKey });
  }

  /** Whether the server answers. Needs no key. */
  ping(options?: RequestOptions): Answers<"ping"> {
    return this.api.call("ping", {}, options);
  }

  /** Makes an account, where the operator has opened signup. Needs no key. Not tried again when its answer got lost. */
  signup(body: SignupBody, options?: RequestOptions): Answers<"signup"> {
    return this.api.call("signup", { body }, options);
  }

  /** The description of the API. Needs no key. */
  openApi(options?: RequestOptions): Answers<"openapi.read"> {
    return this.api.call("openapi.read", {}, options);
  }

  /** Every area that the key may read, at a glance. */
  overview(options?: RequestOptions): Answers<"overview.read"> {
    return this.api.call("overview.read", {}, options);
  }

  /**
   * Whether a customer's request may pass: key, scopes, address, limits, uses, credits and flags at once. Look at `allowed`;
   * `status` is what to answer the customer with. When it is denied, nothing has been taken.
   */
  check(body: CheckBody, options?: ChangeOptions): Answers<"check"> {
    return this.api.call("check", { body }, options);
  }

  /** The meters of your customers, by id. */
  meters(query: QueryOf<"meter.list"> = {}, options: RequestOptions = {}): ListOf<"meter.list", "meters"> {
    return this.api.list("meter.list", "meters", { query }, options);
  }

  /** The meter of one of your customers. Nothing is sent. */
  meter(meterId: string): Meter {
    return new Meter(this.api, meterId);
  }

  /**
   * Holds an amount of a meter, runs a function, and captures what it says was used. What the function throws releases the
   * hold; should this process die, the hold expires.
   *
   * @throws NinefoldError `insufficient_balance` before the function has begun; `conflict` where a hold of that `hold_id`
   *   has ended already; what the function throws.
   */
  reserve<T>(meterId: string, body: HoldBody, work: ReservedWork<T>): Promise<T> {
    return reserve(this.meter(meterId), body, work);
  }

  /**
   * Runs a function while holding a lock, which is renewed meanwhile and released in every case. The function gets the
   * fencing token, and a signal that is aborted when the lock is lost.
   *
   * @throws NinefoldError `timeout` when the lock did not become free within `waitMs`; `lock_lost` when it was lost before
   *   the function had ended, even if that ended well; what the function throws.
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
   * @returns the whole answer, its status and headers included.
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
