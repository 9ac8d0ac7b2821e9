import type { Answers, Api, ListOf, PageQuery } from "../api.ts";
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
}
