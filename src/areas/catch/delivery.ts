import type { Clock } from "../../kernel/clock.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import { headerFault } from "../../kernel/outbound/headers.ts";
import { replaySignature } from "../../kernel/outbound/signing.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Bucket } from "./bucket.ts";
import type { Provider } from "./domain.ts";
import { type EventHeaders, readHeaders } from "./event-headers.ts";
import { eventIdOf } from "./event-id.ts";
import type { PayloadRow } from "./event-store.ts";
import type { BucketAccounts } from "./ports.ts";

/** Longest wait for a target's answer. */
export const DELIVERY_TIMEOUT_MS = 15_000;
/** Bytes of the answer's body that are read: its status is what counts. */
export const ANSWER_BYTES_MAX = 64 * 1024;

/** An event on its way out. */
export interface Outgoing {
  readonly sequence: number;
  readonly provider: Provider | null;
  readonly receivedAt: number;
  readonly payload: PayloadRow;
}

/** What came back. */
export type DeliveryResult =
  | { readonly answered: true; readonly status: number }
  /** The error is fit for users. */
  | { readonly answered: false; readonly error: string };

/**
 * What the providers' own headers begin with. They go along with the event: some receivers verify them anew, and some
 * providers name the kind of event in them alone.
 */
const OWN_PREFIXES: Readonly<Record<Provider, readonly string[]>> = {
  stripe: ["stripe-"],
  github: ["x-github-", "x-hub-"],
  shopify: ["x-shopify-"],
  svix: ["svix-"],
};

/** Sends events to their buckets' targets. */
export class Delivery {
  private readonly outbound: OutboundClient;
  private readonly accounts: BucketAccounts;
  private readonly clock: Clock;
  private readonly vault: Vault;

  constructor(deps: { outbound: OutboundClient; accounts: BucketAccounts; clock: Clock; vault: Vault }) {
    this.outbound = deps.outbound;
    this.accounts = deps.accounts;
    this.clock = deps.clock;
    this.vault = deps.vault;
  }

  /** Sends the exact bytes of an event, signed, to the target that its bucket has now. One try. */
  async send(bucket: Bucket, event: Outgoing): Promise<DeliveryResult> {
    const { body, headers: stored } = event.payload;
    const received = readHeaders(stored, this.vault, bucket.id);
    const outcome = await this.outbound.send({
      account: bucket.accountRef,
      method: "POST",
      url: bucket.targetUrl,
      requireHttps: true,
      headers: { ...originalHeaders(event.provider, received), ...this.ownHeaders(bucket, event) },
      body,
      timeoutMs: DELIVERY_TIMEOUT_MS,
      bodyBytesMax: ANSWER_BYTES_MAX,
      keepsBody: false,
      longerBody: "truncate",
      redirectsMax: 0,
      reuseConnection: true,
    });
    if (outcome.answered) return { answered: true, status: outcome.status };
    return { answered: false, error: outcome.failure.message };
  }

  private ownHeaders(bucket: Bucket, { sequence, receivedAt, payload }: Outgoing): Record<string, string> {
    const seconds = String(Math.floor(this.clock.now() / 1000));
    return {
      "X-Svc-Signature": replaySignature(this.accounts.signingKey(bucket.accountRef), seconds, payload.body),
      "X-Svc-Event-Id": eventIdOf(sequence),
      "X-Svc-Timestamp": String(receivedAt),
      "User-Agent": "Svc-Relay/1.0",
    };
  }
}

/** The content type and the provider's headers, as far as they can be sent: what came in was anybody's. */
function originalHeaders(provider: Provider | null, received: EventHeaders): Record<string, string> {
  const prefixes = provider === null ? [] : OWN_PREFIXES[provider];
  return Object.fromEntries(
    Object.entries(received).filter(
      ([name, value]) =>
        (name === "content-type" || prefixes.some((prefix) => name.startsWith(prefix))) &&
        headerFault(name, value) === null,
    ),
  );
}
