import type { AnswerOf, Api, QueryOf } from "../api.ts";
import type { RelayBody, RelayItem } from "../generated/types.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";
import type { Pages } from "../pages.ts";

/** Signed webhooks, sent later. */
export class Relay {
  constructor(private readonly api: Api) {}

  /** Schedules a delivery. */
  schedule(body: RelayBody, options?: ChangeOptions): Promise<AnswerOf<"relay.schedule">> {
    return this.api.call("relay.schedule", { body }, options);
  }

  /** Deliveries, newest first; with `filter: "pulse"` only alerts of monitors. */
  list(
    query: QueryOf<"relay.list"> = {},
    options: RequestOptions = {},
  ): Pages<RelayItem, AnswerOf<"relay.list">> {
    return this.api.list("relay.list", { query }, options, {
      items: ({ deliveries }) => deliveries,
      cursor: ({ cursor }) => cursor,
    });
  }

  /** A delivery with each of its attempts. */
  get(relayId: string, options?: RequestOptions): Promise<AnswerOf<"relay.read">> {
    return this.api.call("relay.read", { params: { relay_id: relayId } }, options);
  }

  /** Cancels a delivery. @throws NinefoldError `conflict` from its first attempt on. */
  cancel(relayId: string, options?: ChangeOptions): Promise<AnswerOf<"relay.cancel">> {
    return this.api.call("relay.cancel", { params: { relay_id: relayId } }, options);
  }
}
