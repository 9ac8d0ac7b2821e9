import type { Answers, Api, ListOf, QueryOf } from "../api.ts";
import type { RelayBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Signed webhooks, sent later. */
export class Relay {
  constructor(private readonly api: Api) {}

  /** Schedules a delivery. */
  schedule(body: RelayBody, options?: ChangeOptions): Answers<"relay.schedule"> {
    return this.api.call("relay.schedule", { body }, options);
  }

  /** Deliveries, newest first; with `filter: "pulse"` only alerts of monitors. */
  list(query: QueryOf<"relay.list"> = {}, options: RequestOptions = {}): ListOf<"relay.list", "deliveries"> {
    return this.api.list("relay.list", "deliveries", { query }, options);
  }

  /** A delivery with each of its attempts. */
  get(relayId: string, options?: RequestOptions): Answers<"relay.read"> {
    return this.api.call("relay.read", { params: { relay_id: relayId } }, options);
  }

  /** Cancels a delivery. @throws NinefoldError `conflict` from its first attempt on. */
  cancel(relayId: string, options?: ChangeOptions): Answers<"relay.cancel"> {
    return this.api.call("relay.cancel", { params: { relay_id: relayId } }, options);
  }
}
