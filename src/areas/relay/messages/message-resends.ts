import type { Caller, CallerAccount, Charger } from "../../../kernel/callers/caller.ts";
import { ApiError } from "../../../kernel/errors.ts";
import type { AcrossNetwork } from "../../../kernel/http/operations/perform.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { EndpointDestination, OrderKeys } from "../deliveries/destination.ts";
import { RELAY_STATUSES } from "../deliveries/schema.ts";
import { type Endpoint, type EndpointRegistry, isEnabled } from "../endpoints/registry.ts";
import { LATER_DELIVERIES_MAX, type Messages } from "./messages.ts";
import type { RelayMessageResendBody, RelayMessageResent } from "./schema.ts";
import type { MessageDelivery, MessageRow } from "./store.ts";

/** Deliveries resent in one unit of work: a few milliseconds. */
export const RESEND_UNIT = 100;

/** The operation that credits are charged for. */
const RESEND = "relay.messages.resend";

/** Deliveries to resend, by reference. */
interface Selected {
  readonly message: MessageRow;
  readonly refs: readonly number[];
  /** The chosen endpoint, if the message has no delivery to it. */
  readonly missing: Endpoint | null;
}

/** Resends messages to the endpoints where they failed, or to a chosen endpoint. */
export class MessageResends {
  constructor(
    private readonly deps: Pick<Kernel, "writer"> & {
      readonly messages: Messages;
      readonly registry: EndpointRegistry;
      readonly dispatch: Pick<EndpointDestination, "restart" | "orderKeys">;
      readonly charger: Charger;
    },
  ) {}

  /**
   * Resends a message's failed deliveries, or its delivery to `endpoint_id`, in units of {@link RESEND_UNIT}. Each unit
   * charges its own deliveries: after a crash, the same request resends the rest.
   * @throws ApiError, from its parts: `not_found`; `conflict` where the payload is deleted, or that delivery is not finished;
   * `insufficient_balance`.
   */
  start(
    caller: Caller,
    messageId: string,
    { endpoint_id }: RelayMessageResendBody,
  ): AcrossNetwork<Selected, number, Reply<202, RelayMessageResent>> {
    const { account, project } = caller;
    return {
      claim: (tx) => {
        const selected = this.select(project.ref, messageId, endpoint_id);
        this.assertAffordable(tx, account, selected.refs.length - 1);
        return selected;
      },
      outside: ({ message, refs, missing }) =>
        missing === null ? this.resendAll(account, refs) : this.deliverMissing(caller, message, missing),
      settle: (tx, selected, resent, refund) => {
        if (resent === 0) refund();
        const target = { type: "message", id: selected.message.message_id };
        const after = { resent, endpoint_id };
        tx.audit(resent === 0 ? null : { summary: "Message resent", target, before: null, after });
        return reply(202, { resent });
      },
    };
  }

  private select(projectRef: number, messageId: string, endpointId: string | undefined): Selected {
    const { messages, registry } = this.deps;
    const message = messages.find(projectRef, messageId);
    if (message.has_payload === 0)
      throw new ApiError("conflict", "The payload of this message is deleted: its retention is over.");
    const all = messages.deliveriesOf(message);
    const missing = endpointId === undefined ? null : this.missing(projectRef, message, all, endpointId);
    if (missing !== null) return { message, refs: [], missing };
    const chosen = endpointId === undefined ? all.filter(isFailed) : [deliveryTo(all, endpointId)];
    const sendable = chosen.filter(({ endpointRef }) => registry.enabled(endpointRef) !== null);
    if (endpointId !== undefined && sendable.length === 0) throw disabledError();
    return { message, refs: sendable.map(({ ref }) => ref), missing: null };
  }

  /** The endpoint with an id, if the message has no delivery to it: it was disabled, or did not exist. */
  private missing(
    projectRef: number,
    message: MessageRow,
    deliveries: readonly MessageDelivery[],
    endpointId: string,
  ): Endpoint | null {
    if (deliveries.some(({ endpoint_id }) => endpoint_id === endpointId)) return null;
    const endpoint = this.deps.messages.recipient(projectRef, endpointId, message);
    if (endpoint !== null && !isEnabled(endpoint)) throw disabledError();
    if (endpoint !== null) this.assertCanDeliver(message);
    return endpoint;
  }

  /** Sends a message to an endpoint for the first time. Returns the number of deliveries. */
  private async deliverMissing(caller: Caller, message: MessageRow, endpoint: Endpoint): Promise<number> {
    const { messages, writer } = this.deps;
    const key = await messages.orderKey(message, endpoint);
    return writer.submit((tx) => this.deliver(tx, caller, message, endpoint.row.ref, key));
  }

  private deliver(
    tx: Tx,
    { account, project }: Caller,
    { message_id }: MessageRow,
    endpointRef: number,
    key: string | null,
  ): number {
    const { messages, registry } = this.deps;
    const message = messages.find(project.ref, message_id);
    const endpoint = registry.enabled(endpointRef);
    // Changed, or sent by another request, in the meantime.
    if (endpoint === null || message.has_payload === 0) throw disabledError();
    if (messages.deliveryTo(message, endpointRef) !== null) return 0;
    this.assertCanDeliver(message);
    messages.deliver(tx, { accountRef: account.ref, projectRef: project.ref }, message, endpoint, key);
    return 1;
  }

  private assertCanDeliver(message: MessageRow): void {
    if (this.deps.messages.canDeliver(message)) return;
    throw new ApiError(
      "conflict",
      `This message has ${LATER_DELIVERIES_MAX} deliveries that were created after it, the maximum. Send it again as a new message.`,
    );
  }

  /** Rejects a request that cannot be paid before any of its deliveries is sent. */
  private assertAffordable(tx: Tx, account: CallerAccount, cost: number): void {
    if (cost <= 0) return;
    this.deps.charger.charge(tx, account, RESEND, cost);
    this.deps.charger.refund(tx, account, RESEND, cost);
  }

  private async resendAll(account: CallerAccount, refs: readonly number[]): Promise<number> {
    let resent = 0;
    for (let from = 0; from < refs.length; from += RESEND_UNIT) {
      const unit = refs.slice(from, from + RESEND_UNIT);
      const isFirst = resent === 0;
      const keys = await this.deps.dispatch.orderKeys(unit);
      try {
        resent += await this.deps.writer.submit((tx) => this.resendUnit(tx, account, unit, keys, isFirst));
      } catch (error) {
        // Other requests have spent the credits in the meantime: those that were sent count.
        if (isFirst || !(error instanceof ApiError) || error.code !== "insufficient_balance") throw error;
        break;
      }
    }
    return resent;
  }

  /** `isFirst`: the request itself has paid for one delivery. */
  private resendUnit(
    tx: Tx,
    account: CallerAccount,
    refs: readonly number[],
    keys: OrderKeys,
    isFirst: boolean,
  ): number {
    const { dispatch, charger } = this.deps;
    tx.affects = account.ref;
    const resent = refs.filter((ref) => dispatch.restart(tx, ref, keys.get(ref) ?? null)).length;
    const cost = isFirst ? resent - 1 : resent;
    if (cost > 0) charger.charge(tx, account, RESEND, cost);
    return resent;
  }
}

function disabledError(): ApiError {
  return new ApiError("conflict", "This endpoint is disabled or deleted: enable it first.");
}

function isFailed({ status }: MessageDelivery): boolean {
  return RELAY_STATUSES[status - 1] === "failed";
}

function deliveryTo(all: readonly MessageDelivery[], endpointId: string): MessageDelivery {
  const found = all.find(({ endpoint_id }) => endpoint_id === endpointId);
  if (found === undefined)
    throw new ApiError(
      "not_found",
      "There is no endpoint with this endpoint_id that this message can go to.",
    );
  if (found.finished_at !== null) return found;
  throw new ApiError("conflict", "This delivery is not finished. Wait until it is delivered or failed.");
}
