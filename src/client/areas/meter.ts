import type { Answers, Api, ListOf, PageQuery, QueryOf } from "../api.ts";
import type { AlertBody, CaptureBody, HoldBody, PlanBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** The meter of one of your own customers. */
export class Meter {
  constructor(
    private readonly api: Api,
    /** 1 to 64 letters, digits, dashes or underscores. */
    readonly id: string,
  ) {}

  /** What is left; 0 for a meter that does not exist. */
  balance(options?: RequestOptions): Answers<"meter.balance"> {
    return this.api.call("meter.balance", { params: { meterId: this.id } }, options);
  }

  /** Takes units. @throws NinefoldError `insufficient_balance` with `extras.balance`; nothing has changed then. */
  deduct(amount: number, options?: ChangeOptions): Answers<"meter.deduct"> {
    return this.api.call("meter.deduct", { params: { meterId: this.id }, body: { amount } }, options);
  }

  /** Adds units. The first refill or reset makes the meter. */
  refill(amount: number, options?: ChangeOptions): Answers<"meter.refill"> {
    return this.api.call("meter.refill", { params: { meterId: this.id }, body: { amount } }, options);
  }

  /** Sets the balance. */
  reset(balance: number, options?: ChangeOptions): Answers<"meter.reset"> {
    return this.api.call("meter.reset", { params: { meterId: this.id }, body: { balance } }, options);
  }

  /** The ledger, newest first. */
  history(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"meter.history", "entries"> {
    return this.api.list("meter.history", "entries", { params: { meterId: this.id }, query }, options);
  }
  /**
   * Holds an amount until it is captured or released, or its time is over. The same `hold_id` again gets the hold as it is.
   *
   * @throws NinefoldError `insufficient_balance` with `extras.available`.
   */
  hold(body: HoldBody, options?: ChangeOptions): Answers<"meter.holds.create"> {
    return this.api.call("meter.holds.create", { params: { meterId: this.id }, body }, options);
  }

  /** The holds, newest first. */
  holds(
    query: QueryOf<"meter.holds.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"meter.holds.list", "holds"> {
    return this.api.list("meter.holds.list", "holds", { params: { meterId: this.id }, query }, options);
  }

  /** A hold as it is now. */
  getHold(holdId: string, options?: RequestOptions): Answers<"meter.holds.read"> {
    return this.api.call("meter.holds.read", this.at(holdId), options);
  }

  /** Deducts what was used of a hold, all of it unless said otherwise, and frees the rest. */
  capture(holdId: string, body: CaptureBody = {}, options?: ChangeOptions): Answers<"meter.holds.capture"> {
    return this.api.call("meter.holds.capture", { ...this.at(holdId), body }, options);
  }

  /** Frees a hold. */
  release(holdId: string, options?: ChangeOptions): Answers<"meter.holds.release"> {
    return this.api.call("meter.holds.release", this.at(holdId), options);
  }

  /** Lets a hold last for so many seconds from now. */
  extend(holdId: string, seconds: number, options?: ChangeOptions): Answers<"meter.holds.extend"> {
    const body = { ttl_seconds: seconds };
    return this.api.call("meter.holds.extend", { ...this.at(holdId), body }, options);
  }

  /** What became of it by hour, day or month; the last 30 days by day unless said otherwise. */
  usage(query: QueryOf<"meter.usage"> = {}, options?: RequestOptions): Answers<"meter.usage"> {
    return this.api.call("meter.usage", { params: { meterId: this.id }, query }, options);
  }

  /** Its refill plan. @throws NinefoldError `not_found`. */
  plan(options?: RequestOptions): Answers<"meter.plan.read"> {
    return this.api.call("meter.plan.read", { params: { meterId: this.id } }, options);
  }

  /** Has it refilled again and again, at 00:00 UTC. */
  setPlan(body: PlanBody, options?: ChangeOptions): Answers<"meter.plan.set"> {
    return this.api.call("meter.plan.set", { params: { meterId: this.id }, body }, options);
  }

  /** Takes its refill plan away, if it has one. */
  deletePlan(options?: ChangeOptions): Answers<"meter.plan.delete"> {
    return this.api.call("meter.plan.delete", { params: { meterId: this.id } }, options);
  }

  /** Its own alert. @throws NinefoldError `not_found`. */
  alert(options?: RequestOptions): Answers<"meter.alert.read"> {
    return this.api.call("meter.alert.read", { params: { meterId: this.id } }, options);
  }

  /** Sends a webhook when less than a threshold is available, instead of the alert of all meters. */
  setAlert(body: AlertBody, options?: ChangeOptions): Answers<"meter.alert.set"> {
    return this.api.call("meter.alert.set", { params: { meterId: this.id }, body }, options);
  }

  /** Takes its own alert away, if it has one. */
  deleteAlert(options?: ChangeOptions): Answers<"meter.alert.delete"> {
    return this.api.call("meter.alert.delete", { params: { meterId: this.id } }, options);
  }

  private at(holdId: string) {
    return { params: { meterId: this.id, hold_id: holdId } };
  }
}

/** What concerns all meters of the project. */
export class AllMeters {
  constructor(private readonly api: Api) {}

  /** What became of all of them together, by hour, day or month. */
  usage(
    query: QueryOf<"meter.usage.project"> = {},
    options?: RequestOptions,
  ): Answers<"meter.usage.project"> {
    return this.api.call("meter.usage.project", { query }, options);
  }

  /** The alert of those that have none of their own. @throws NinefoldError `not_found`. */
  alert(options?: RequestOptions): Answers<"meter.alert.project.read"> {
    return this.api.call("meter.alert.project.read", {}, options);
  }

  /** Sends a webhook when one of them has less than a threshold available. */
  setAlert(body: AlertBody, options?: ChangeOptions): Answers<"meter.alert.project.set"> {
    return this.api.call("meter.alert.project.set", { body }, options);
  }

  /** Takes that alert away, if there is one. */
  deleteAlert(options?: ChangeOptions): Answers<"meter.alert.project.delete"> {
    return this.api.call("meter.alert.project.delete", {}, options);
  }
}
