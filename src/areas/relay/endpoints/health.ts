import type { Kernel } from "../../../kernel/kernel.ts";
import type { Outbox } from "../../../kernel/mail/outbox.ts";
import { COUNTED_MAX } from "../../../kernel/projects/overview-card.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { afterFailure, FAILED_NOTICE_MS, type FailedAttempt, HEALTHY } from "./breaker.ts";
import { isNotice } from "./notices.ts";
import type { EndpointQueue } from "./queue.ts";
import type { Endpoint, EndpointRegistry } from "./registry.ts";
import { CLOSED, DISABLED, type EndpointStore, LIVE } from "./store.ts";

/** Events of endpoints that are sent as messages to the project's endpoints that subscribe to them. */
type NoticeType =
  | "ninefold.endpoint.failing"
  | "ninefold.endpoint.recovered"
  | "ninefold.endpoint.disabled"
  | "ninefold.delivery.failed";

/** Sends a notice to the endpoints of a project that subscribe to it, except the one that it is about. */
type SendNotice = (tx: Tx, about: Endpoint, type: NoticeType, data: object) => void;

/** Opens and closes the breakers of endpoints, and disables endpoints. */
export class EndpointHealth {
  constructor(
    private readonly deps: Pick<Kernel, "ids" | "changes"> & {
      readonly endpoints: EndpointStore;
      readonly registry: EndpointRegistry;
      readonly breakerFailures: number;
      readonly notice: SendNotice;
      readonly queue: EndpointQueue;
      readonly outbox: Outbox;
      readonly emailOf: (accountRef: number) => string | null;
    },
  ) {}

  /** Records a successful attempt. `eventType`: the type of its message. */
  succeeded(tx: Tx, endpoint: Endpoint, eventType: string | null): void {
    const { breaker, failures, failing_since } = endpoint.health;
    if (failures === 0 && breaker === CLOSED) return;
    const { disabled_reason: _, ...well } = HEALTHY;
    this.deps.registry.setHealth(tx, endpoint, well);
    if (breaker === CLOSED) return;
    this.changed(tx, endpoint);
    if (!isNotice(eventType))
      this.notice(tx, endpoint, "ninefold.endpoint.recovered", {
        since: failing_since,
      });
    this.deps.queue.cancelProbe(tx, endpoint.row.ref);
    if (endpoint.health.state === LIVE) this.deps.queue.stateChanged(tx, endpoint.row.ref);
  }

  /** Records a failed attempt. `eventType`: the type of its message; a failed notice causes no notice. */
  failed(tx: Tx, endpoint: Endpoint, attempt: FailedAttempt, eventType: string | null): void {
    const { registry, breakerFailures, ids } = this.deps;
    // The attempt was in flight when the endpoint was disabled.
    if (endpoint.health.state === DISABLED) return;
    const limits = {
      breakerFailures,
      disableAfterHours: endpoint.terms.disable_after_hours,
    };
    const { breaker } = endpoint.health;
    const { change, disabledFor } = afterFailure(endpoint.health, attempt, limits, tx.now, ids.fraction());
    registry.setHealth(tx, endpoint, change);
    if (disabledFor !== null) {
      this.disable(tx, endpoint, disabledFor, eventType);
      return;
    }
    if (change.next_probe_at == null) return;
    this.deps.queue.probeAt(tx, endpoint, change.next_probe_at);
    if (breaker !== CLOSED) return;
    this.changed(tx, endpoint);
    if (!isNotice(eventType)) this.notice(tx, endpoint, "ninefold.endpoint.failing");
  }

  /** Records a delivery without retries left. */
  deliveryFailed(tx: Tx, endpoint: Endpoint, eventType: string | null): void {
    if (isNotice(eventType)) return;
    const { noticed_at, unnoticed } = endpoint.health;
    const count = unnoticed + 1;
    const isSoon = noticed_at !== null && tx.now - noticed_at < FAILED_NOTICE_MS;
    const change = isSoon ? { unnoticed: count } : { noticed_at: tx.now, unnoticed: 0 };
    this.deps.registry.setHealth(tx, endpoint, change);
    if (!isSoon) this.notice(tx, endpoint, "ninefold.delivery.failed", { count });
  }

  private disable(tx: Tx, endpoint: Endpoint, reason: string, eventType: string | null): void {
    const { registry, queue, outbox, emailOf } = this.deps;
    const { row, terms } = endpoint;
    registry.setHealth(tx, endpoint, {
      state: DISABLED,
      disabled_reason: reason,
      breaker: CLOSED,
      probes: 0,
      next_probe_at: null,
    });
    queue.cancelProbe(tx, row.ref);
    this.changed(tx, endpoint);
    if (!isNotice(eventType)) this.notice(tx, endpoint, "ninefold.endpoint.disabled", { reason });
    queue.stateChanged(tx, row.ref);
    const to = terms.notify_email && outbox.available ? emailOf(row.accountRef) : null;
    if (to !== null) outbox.enqueue(tx, row.accountRef, { to, ...disabledMail(endpoint, reason) });
  }

  private changed(tx: Tx, { row: { projectRef, endpoint_id } }: Endpoint): void {
    this.deps.changes.inProject(tx, projectRef, "relay", endpoint_id);
  }

  private notice(tx: Tx, endpoint: Endpoint, type: NoticeType, more: object = {}): void {
    const { row, terms, health } = endpoint;
    this.deps.notice(tx, endpoint, type, {
      endpoint_id: row.endpoint_id,
      name: row.name,
      owner_id: row.owner_id,
      url: terms.url,
      since: health.failing_since,
      last_status: health.last_status,
      last_error: health.last_error,
      waiting: this.deps.endpoints.waiting(row.ref, COUNTED_MAX),
      ...more,
    });
  }
}

function disabledMail({ row, terms }: Endpoint, reason: string) {
  const called = row.name ?? row.endpoint_id;
  return {
    subject: `Webhooks to ${called} have stopped`,
    text: [
      `The endpoint ${called} (${row.endpoint_id}) has been disabled: ${reason}.`,
      "",
      `Nothing is sent to ${terms.url}. Its pending deliveries have failed and can be resent.`,
      "When it works again, enable it: PATCH its path with a state of live, or press Enable in the console.",
    ].join("\n"),
  };
}
