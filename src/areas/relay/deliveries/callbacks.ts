import type { CallerAccount, Charger } from "../../../kernel/callers/caller.ts";
import { rejectionBy } from "../../../kernel/errors.ts";
import type { OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { storedHeaders } from "./exchange.ts";
import type { DeliveryIds } from "./ids.ts";
import type { DeliveryCounts } from "./status.ts";
import type { NewRelay, RelayRequest, RelayStore } from "./store.ts";
import type { UrlDestination } from "./url-destination.ts";

/** The operation that credits are charged for. */
const CHARGED_AS = "relay.callback";
const NO_CREDITS = "the account has no credits left";

/** The end of a delivery. */
interface Ended {
  readonly status: "delivered" | "failed";
  readonly attempts: number;
  readonly error: string | null;
  readonly outcome: OutboundOutcome;
}

/** Sends the outcomes of deliveries to their callback URLs. */
export class Callbacks {
  constructor(
    private readonly deps: {
      readonly store: RelayStore;
      readonly relayIds: DeliveryIds;
      readonly urls: Pick<UrlDestination, "enqueue">;
      readonly counts: DeliveryCounts;
      readonly charger: Charger;
      readonly accounts: { account(accountRef: number): CallerAccount };
    },
  ) {}

  /** Creates the callback of a delivery, in the unit of work that ends it. Without credits it has failed. */
  send(tx: Tx, { ref, accountRef, projectRef, item, hasCallback }: RelayRequest, ended: Ended): void {
    if (!hasCallback) return;
    const { store, relayIds, urls, charger, accounts, counts } = this.deps;
    const callbacks = store.callbacksOf(ref);
    const isFailed = ended.status === "failed";
    const url = (isFailed ? callbacks?.failure_callback_url : null) ?? callbacks?.callback_url ?? null;
    if (url === null) return;
    const id = relayIds.next();
    const callback: NewRelay = {
      ...id,
      accountRef,
      projectRef,
      kind: "callback",
      event: null,
      monitor_id: null,
      target_url: url,
      method: "POST",
      headers: null,
      body: callbackBody(item.relay_id, ended),
      scheduled_for: tx.now,
    };
    store.insert(tx, callback);
    store.setCallbackOf(tx, id.ref, item.relay_id);
    if (rejectionBy(() => charger.charge(tx, accounts.account(accountRef), CHARGED_AS, 1)) === null) {
      urls.enqueue(tx, callback, tx.now, new URL(url).host);
      return;
    }
    const failed = { status: "failed", attempts: 0, response_status: null, error: NO_CREDITS } as const;
    store.update(tx, id.ref, { ...failed, failure: "blocked" });
    tx.afterCommit(() => counts.finished.callback.failed.add());
  }
}

function callbackBody(relay_id: string, { status, attempts, error, outcome }: Ended): string {
  return JSON.stringify({ relay_id, status, attempts, response: responseOf(outcome), error });
}

/** The last response; null when there was none. */
function responseOf(outcome: OutboundOutcome): object | null {
  if (!outcome.answered) return null;
  const { status, headers, body, truncated: isTruncated } = outcome;
  return {
    status,
    headers: JSON.parse(storedHeaders(headers)) as object,
    ...bodyIn(body, isTruncated),
    ...(isTruncated ? { truncated: true } : {}),
  };
}

function bodyIn(bytes: Uint8Array, isTruncated: boolean): object {
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    // The cut may split a character: decoding as a stream omits the rest of it.
    return { body: decoder.decode(bytes, { stream: isTruncated }) };
  } catch {
    return { body: null, body_base64: Buffer.from(bytes).toString("base64") };
  }
}
