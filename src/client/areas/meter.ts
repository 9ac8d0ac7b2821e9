import type { Answers, Api, ListOf, PageQuery, QueryOf } from "../api.ts";
import type { AlertBody, CaptureBody, HoldBody, PlanBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** The meter of one of your customers. */
export class Meter {
  constructor(
    private readonly api: Api,
    /** 1 to 64 letters, digits, dashes or underscores. */
    readonly id: string,
  ) {}

  /** Returns the balance; 0 for a meter that does not exist. */
  balance(options?: RequestOptions): Answers<"meter.balance"> {
    return this.api.call("meter.balance", { params: { meterId: this.id } }, options);
  }

  /** Deducts units. @throws NinefoldError `insufficient_balance` with `extras.balance`; nothing is changed then. */
  deduct(amount: number, options?: ChangeOptions): Answers<"meter.deduct"> {
    return this.api.call("meter.deduct", { params: { meterId: this.id }, body: { amount } }, options);
  }

  /** Adds units. The first refill or reset creates the meter. */
  refill(amount: number, options?: ChangeOptions): Answers<"meter.refill"> {
    return this.api.call("meter.refill", { params: { meterId: this.id }, body: { amount } }, options);
  }

  /** Sets the balance. */
  reset(balance: number, options?: ChangeOptions): Answers<"meter.reset"> {
    return this.api.call("meter.reset", { params: { meterId: this.id }, body: { balance } }, options);
  }

  /** Lists the ledger, newest first. */
  history(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"meter.history", "entries"> {
    return this.api.list("meter.history", "entries", { params: { meterId: this.id }, query }, options);
  }
  /**
   * Holds an amount until it is captured, released or expired. Repeating the same `hold_id` returns the existing
   * hold.
   * @throws NinefoldError `insufficient_balance` with `extras.available`.
   */
  hold(body: HoldBody, options?: ChangeOptions): Answers<"meter.holds.create"> {
    return this.api.call("meter.holds.create", { params: { meterId: this.id }, body }, options);
  }

  /** Lists the holds, newest first. */
  holds(
    query: QueryOf<"meter.holds.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"meter.holds.list", "holds"> {
    return this.api.list("meter.holds.list", "holds", { params: { meterId: this.id }, query }, options);
  }

  /** Returns a hold. */
  getHold(holdId: string, options?: RequestOptions): Answers<"meter.holds.read"> {
    return this.api.call("meter.holds.read", this.at(holdId), options);
  }

  /** Deducts the amount used of a hold, by default all of it, and releases the rest. */
  capture(holdId: string, body: CaptureBody = {}, options?: ChangeOptions): Answers<"meter.holds.capture"> {
    return this.api.call("meter.holds.capture", { ...this.at(holdId), body }, options);
  }

  /** Releases a hold. */
  release(holdId: string, options?: ChangeOptions): Answers<"meter.holds.release"> {
    return this.api.call("meter.holds.release", this.at(holdId), options);
  }

  /** Extends a hold to so many seconds from now. */
  extend(holdId: string, seconds: number, options?: ChangeOptions): Answers<"meter.holds.extend"> {
    const body = { ttl_seconds: seconds };
    return this.api.call("meter.holds.extend", { ...this.at(holdId), body }, options);
  }

  /** Returns usage by hour, day or month; by default the last 30 days by day. */
  usage(query: QueryOf<"meter.usage"> = {}, options?: RequestOptions): Answers<"meter.usage"> {
    return this.api.call("meter.usage", { params: { meterId: this.id }, query }, options);
  }

  /** Returns the refill plan. @throws NinefoldError `not_found`. */
  plan(options?: RequestOptions): Answers<"meter.plan.read"> {
    return this.api.call("meter.plan.read", { params: { meterId: this.id } }, options);
  }

  /** Sets a plan that refills the meter regularly, at 00:00 UTC. */
  setPlan(body: PlanBody, options?: ChangeOptions): Answers<"meter.plan.set"> {
    return this.api.call("meter.plan.set", { params: { meterId: this.id }, body }, options);
  }

  /** Deletes the refill plan, if there is one. */
  deletePlan(options?: ChangeOptions): Answers<"meter.plan.delete"> {
    return this.api.call("meter.plan.delete", { params: { meterId: this.id } }, options);
  }

  /** Returns the meter's alert. @throws NinefoldError `not_found`. */
  alert(options?: RequestOptions): Answers<"meter.alert.read"> {
    return this.api.call("meter.alert.read", { params: { meterId: this.id } }, options);
  }

  /** Sends a webhook when less than a threshold is available. It replaces the project's alert for this meter. */
  setAlert(body: AlertBody, options?: ChangeOptions): Answers<"meter.alert.set"> {
    return this.api.call("meter.alert.set", { params: { meterId: this.id }, body }, options);
  }

  /** Deletes the meter's alert, if there is one. */
  deleteAlert(options?: ChangeOptions): Answers<"meter.alert.delete"> {
    return this.api.call("meter.alert.delete", { params: { meterId: this.id } }, options);
  }

  private at(holdId: string) {
    return { params: { meterId: this.id, hold_id: holdId } };
  }
}

/** All meters of the project. */
export class AllMeters {
  constructor(private readonly api: Api) {}

  /** Returns the usage of all meters by hour, day or month. */
  usage(
    query: QueryOf<"meter.usage.project"> = {},
    options?: RequestOptions,
  ): Answers<"meter.usage.project"> {
    return this.api.call("meter.usage.project", { query }, options);
  }

  /** Returns the alert for meters without their own. @throws NinefoldError `not_found`. */
  alert(options?: RequestOptions): Answers<"meter.alert.project.read"> {
    return this.api.call("meter.alert.project.read", {}, options);
  }

  /** Sends a webhook when less than a threshold is available in a meter without its own alert. */
  setAlert(body: AlertBody, options?: ChangeOptions): Answers<"meter.alert.project.set"> {
    return this.api.call("meter.alert.project.set", { body }, options);
  }

  /** Deletes that alert, if there is one. */
  deleteAlert(options?: ChangeOptions): Answers<"meter.alert.project.delete"> {
    return this.api.call("meter.alert.project.delete", {}, options);
  }
}
