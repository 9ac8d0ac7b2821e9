import type { Kernel } from "../../../kernel/kernel.ts";
import { ATTEMPT_TIMEOUT_MS } from "../../../kernel/outbound/attempt.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { type AttemptStep, attemptWebhook } from "../../../kernel/outbound/delivery.ts";
import { type RequestHeaders, withDefaults } from "../../../kernel/outbound/headers.ts";
import { hopsHeader } from "../../../kernel/outbound/hops.ts";
import type { AttemptListener, Notification, TrialResult } from "../../../kernel/outbound/notification.ts";
import { type AttemptResult, readWaits } from "../../../kernel/outbound/retries.ts";
import { notificationSignature, relaySignature, type SignedBody } from "../../../kernel/outbound/signing.ts";
import type { WebhookSecrets } from "../../../kernel/outbound/webhook-secrets.ts";
import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import { sealedJson } from "../../../kernel/secrets/sealed-column.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { afterRelayAttempt, DELIVER, NOTIFICATION } from "../domain.ts";
import type { Admission, DeliveryJob, Destination } from "./destination.ts";
import { CALLBACK_BODY_BYTES_MAX, STORED_BODY_BYTES_MAX } from "./exchange.ts";
import type { DeliveryIds } from "./ids.ts";
import type { AttemptRow, DeliveryOwner, NewRelay, RelayRequest, RelayStore } from "./store.ts";

const USER_AGENT = "Svc-Relay/1.0";

export interface SigningKeys {
  /** The newest platform key of an account, which signs its deliveries. */
  signingKey(accountRef: number): string | null;
}

/** Real URL and headers of a notification with a secret URL. */
type SecretTarget = NonNullable<Notification["destination"]>;

/** The user's headers of a delivery. */
export const DELIVERY_HEADERS = sealedJson<RequestHeaders>("relay-headers");
/** The real target of a notification, which has no headers of a user: its purpose has the same name. */
export const SECRET_TARGET = sealedJson<SecretTarget>("relay-headers");

/** A delivery that is signed with the keys of its account and the secrets of its project. */
type Signed = DeliveryOwner & Pick<RelayRequest["item"], "kind" | "event" | "relay_id">;

/** The URLs of scheduled requests and of notifications. */
export class UrlDestination implements Destination {
  private readonly listeners: AttemptListener[] = [];

  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "clock" | "ids" | "vault"> & {
      readonly store: RelayStore;
      readonly relayIds: DeliveryIds;
      readonly outbound: OutboundClient;
      readonly accounts: SigningKeys;
      readonly secrets: Pick<WebhookSecrets, "headers">;
    },
  ) {}

  /** Registers a listener to the attempts of notifications. */
  onAttempt(listener: AttemptListener): void {
    this.listeners.push(listener);
  }

  /** Creates the job of a delivery. `host`: the target's host, which determines the lane together with the account. */
  enqueue(
    tx: Tx,
    { ref, accountRef }: Pick<NewRelay, "ref" | "accountRef">,
    dueAt: number,
    host: string,
  ): void {
    // A run that is late is due now: due jobs are searched again from the earliest new one on.
    const due = Math.max(dueAt, tx.now);
    this.deps.scheduler.enqueueAnonymous(tx, DELIVER, due, ref, laneName(accountRef, host));
  }

  admit(relay: RelayRequest): Admission {
    const { item, accountRef, projectRef, timeout_ms } = relay;
    const { kind, event, relay_id, target_url } = item;
    const secret = this.secretTargetOf(relay);
    const body = bodyOf(relay);
    const signed = { accountRef, projectRef, kind, event, relay_id };
    const request = {
      url: secret?.url ?? target_url,
      // Users may schedule requests over plain HTTP; an alert reveals what is down, and where.
      requireHttps: kind === NOTIFICATION,
      custom: secret?.headers ?? this.customOf(relay),
      headers: (now: number) => this.ownHeaders(signed, secret, now, body ?? ""),
      body,
      timeoutMs: timeout_ms ?? ATTEMPT_TIMEOUT_MS,
      // A response may repeat the request's path, which contains secrets.
      storesResponse: secret === null,
      ...(relay.hasCallback ? { readBytesMax: CALLBACK_BODY_BYTES_MAX } : {}),
    };
    return { kind: "send", request };
  }

  trackAttempt(_: RelayRequest, attempt: () => Promise<JobOutcome>): Promise<JobOutcome> {
    return attempt();
  }

  next(
    { item, retry_schedule }: RelayRequest,
    _: DeliveryJob,
    number: number,
    result: AttemptResult,
  ): AttemptStep<DeliveryJob> {
    const waits = retry_schedule === null ? null : readWaits(JSON.parse(retry_schedule));
    const step = afterRelayAttempt(item.kind, number, result, this.deps.ids.fraction(), waits);
    return step.kind === "retry" ? { ...step, kind: "repeat" } : step;
  }

  postponed(): void {}

  record(tx: Tx, { item }: RelayRequest, _: DeliveryJob, { error }: AttemptRow): void {
    if (item.kind === NOTIFICATION) for (const listener of this.listeners) listener(tx, item.relay_id, error);
  }

  cancelled(): void {}

  /** Without messages to services such as chats, whose body may contain their secret. */
  async body(row: RelayRequest): Promise<Uint8Array | null> {
    if (row.destination !== null) return null;
    return row.item.method === "GET" ? new Uint8Array() : bodyOf(row);
  }

  creditsOf(): number {
    return 1;
  }

  canRestart(): boolean {
    return true;
  }

  restart(tx: Tx, ref: number): boolean {
    const row = this.deps.store.delivery(ref);
    if (row === null || row.item.finished_at === null) return false;
    this.deps.store.restart(tx, tx.now, ref);
    this.enqueue(tx, row, tx.now, new URL(row.item.target_url).host);
    return true;
  }

  /** Sends a notification immediately and once, without storing it. */
  async sendOnce(notification: Notification): Promise<TrialResult> {
    const { accountRef, target_url, destination = null } = notification;
    const body = Buffer.from(notification.body);
    const { relay_id } = this.deps.relayIds.next();
    const signed = { ...notification, kind: NOTIFICATION, relay_id } as const;
    const { result } = await attemptWebhook(this.deps, {
      account: accountRef,
      method: "POST",
      url: destination?.url ?? target_url,
      requireHttps: true,
      custom: withDefaults(destination?.headers ?? {}, defaultHeaders(null)),
      headers: (now) => this.ownHeaders(signed, destination, now, body),
      body,
      storedBytesMax: STORED_BODY_BYTES_MAX,
    });
    const next = afterRelayAttempt(NOTIFICATION, 1, result, 0);
    return { status: result.status, error: next.kind === "delivered" ? null : next.error };
  }

  private customOf({ headers, item }: RelayRequest): RequestHeaders {
    return DELIVERY_HEADERS.openOrNull(this.deps.vault, item.relay_id, headers) ?? {};
  }

  private secretTargetOf({ destination, item }: RelayRequest): SecretTarget | null {
    return SECRET_TARGET.openOrNull(this.deps.vault, item.relay_id, destination);
  }

  /** Signs each attempt with the newest key and the project's secrets, except requests in the formats of other services. */
  private async ownHeaders(
    { accountRef, projectRef, kind, event, relay_id }: Signed,
    secret: SecretTarget | null,
    now: number,
    body: SignedBody,
  ): Promise<RequestHeaders> {
    if (secret !== null) return hopsHeader();
    const { accounts, secrets } = this.deps;
    const key = accounts.signingKey(accountRef);
    const signature =
      kind === NOTIFICATION
        ? {
            "X-Svc-Event": event ?? "",
            ...(key === null ? {} : { "X-Svc-Signature": notificationSignature(key, body) }),
          }
        : {
            "X-Svc-Timestamp": String(now),
            ...(key === null ? {} : { "X-Svc-Signature": relaySignature(key, now, body) }),
          };
    return {
      ...signature,
      ...hopsHeader(),
      "X-Svc-Delivery-Id": relay_id,
      ...(await secrets.headers(projectRef, relay_id, now, body)),
    };
  }
}

/** The body of a delivery that has it. */
function bodyOf({ body, body_bytes }: RelayRequest): Uint8Array | null {
  return body_bytes ?? (body === null ? null : Buffer.from(body));
}

/** Headers that the user's may override. A body of unknown type is `application/octet-stream`. */
export function defaultHeaders(bodyBytes: Uint8Array | null): RequestHeaders {
  const type = bodyBytes === null ? "application/json" : "application/octet-stream";
  return { "Content-Type": type, "User-Agent": USER_AGENT };
}
