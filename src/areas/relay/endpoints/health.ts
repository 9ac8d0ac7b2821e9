import type { Kernel } from "../../../kernel/kernel.ts";
import type { Outbox } from "../../../kernel/mail/outbox.ts";
import { COUNTED_MAX } from "../../../kernel/projects/overview-card.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { DELIVER } from "../domain.ts";
import { afterFailure, FAILED_NOTICE_MS, type FailedAttempt, WELL } from "./breaker.ts";
import { isNotice } from "./notices.ts";
import type { Endpoint, EndpointRegistry } from "./registry.ts";
import { CLOSED, DISABLED, type EndpointStore, LIVE, OPEN, PROBING } from "./store.ts";

/** Job of an endpoint whose breaker is open: lets its oldest parked delivery pass. */
const PROBE = "relay.endpoint.probe";
const CONCURRENCY = 4;

/** What a project is told of its endpoints, as messages to those that name them. */
type NoticeType =
  | "ninefold.endpoint.failing"
  | "ninefold.endpoint.recovered"
  | "ninefold.endpoint.disabled"
  | "ninefold.delivery.failed";

/** Sends a notice to the endpoints of a project that name it, but the one that it is about. */
type SendNotice = (tx: Tx, about: Endpoint, type: NoticeType, data: object) => void;

/** The breakers of endpoints, and when they are given up. */
export class EndpointHealth {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "ids" | "changes"> & {
      readonly endpoints: EndpointStore;
      readonly registry: EndpointRegistry;
      readonly breakerFailures: number;
      readonly notice: SendNotice;
      /** Called when what waits for an endpoint is to be sent, or ended. */
      readonly stateChanged: (tx: Tx, endpointRef: number) => void;
      readonly outbox: Outbox;
      readonly emailOf: (accountRef: number) => string | null;
    },
  ) {
    deps.scheduler.register(PROBE, {
      concurrency: CONCURRENCY,
      run: (job) => this.probe(job),
    });
  }

  /** Whether everything that is due goes out. */
  takesAll({ health: { state, breaker, retrying_ref } }: Endpoint): boolean {
    return state === LIVE && breaker === CLOSED && retrying_ref === null;
  }

  /** The others wait while this delivery of an endpoint that keeps the order waits for its retry. */
  waitFor(tx: Tx, endpoint: Endpoint, ref: number): void {
    this.deps.registry.setHealth(tx, endpoint, { retrying_ref: ref });
  }

  /** They wait no longer: the delivery has ended, or waits with them. */
  waitNoLonger(tx: Tx, endpoint: Endpoint, ref: number): void {
    if (endpoint.health.retrying_ref !== ref) return;
    this.deps.registry.setHealth(tx, endpoint, { retrying_ref: null });
    this.deps.stateChanged(tx, endpoint.row.ref);
  }

  /** A due delivery waits, without a job, until the endpoint takes some again. */
  park(tx: Tx, endpoint: Endpoint, ref: number): void {
    const { endpoints, registry } = this.deps;
    endpoints.park(tx, endpoint.row.ref, ref);
    if (endpoint.health.holds === 0) registry.setHealth(tx, endpoint, { holds: 1 });
    this.waitNoLonger(tx, endpoint, ref);
    // The time of a probe has come, and there was nothing to probe with.
    const { breaker, next_probe_at, state } = endpoint.health;
    if (state === LIVE && breaker === OPEN && next_probe_at === null) this.probeAt(tx, endpoint, tx.now);
  }

  /** What was to be the probe has ended without an attempt: another one takes its place. */
  probeLost(tx: Tx, endpointRef: number): void {
    const endpoint = this.deps.registry.get(endpointRef);
    if (endpoint?.health.breaker !== PROBING) return;
    this.deps.registry.setHealth(tx, endpoint, { breaker: OPEN });
    if (endpoint.health.state === LIVE) this.probeAt(tx, endpoint, tx.now);
  }

  /** An attempt that arrived. `eventType`: that of its message. */
  succeeded(tx: Tx, endpoint: Endpoint, eventType: string | null): void {
    const { breaker, failures, failing_since } = endpoint.health;
    if (failures === 0 && breaker === CLOSED) return;
    const { disabled_reason: _, ...well } = WELL;
    this.deps.registry.setHealth(tx, endpoint, well);
    if (breaker === CLOSED) return;
    this.changed(tx, endpoint);
    if (!isNotice(eventType))
      this.notice(tx, endpoint, "ninefold.endpoint.recovered", {
        since: failing_since,
      });
    this.deps.scheduler.cancel(tx, PROBE, String(endpoint.row.ref));
    if (endpoint.health.state === LIVE) this.deps.stateChanged(tx, endpoint.row.ref);
  }

  /** An attempt that failed. `eventType`: that of its message; what a notice meets causes no notice. */
  failed(tx: Tx, endpoint: Endpoint, attempt: FailedAttempt, eventType: string | null): void {
    const { registry, breakerFailures, ids } = this.deps;
    // One that was under way when it was disabled.
    if (endpoint.health.state === DISABLED) return;
    const bounds = {
      breakerFailures,
      disableAfterHours: endpoint.terms.disable_after_hours,
    };
    const { breaker } = endpoint.health;
    const { change, disabledFor } = afterFailure(endpoint.health, attempt, bounds, tx.now, ids.fraction());
    registry.setHealth(tx, endpoint, change);
    if (disabledFor !== null) {
      this.disable(tx, endpoint, disabledFor, eventType);
      return;
    }
    if (change.next_probe_at == null) return;
    this.probeAt(tx, endpoint, change.next_probe_at);
    if (breaker !== CLOSED) return;
    this.changed(tx, endpoint);
    if (!isNotice(eventType)) this.notice(tx, endpoint, "ninefold.endpoint.failing");
  }

  /** A delivery that has used up its retries. */
  deliveryFailed(tx: Tx, endpoint: Endpoint, eventType: string | null): void {
    if (isNotice(eventType)) return;
    const { noticed_at, unnoticed } = endpoint.health;
    const count = unnoticed + 1;
    const isSoon = noticed_at !== null && tx.now - noticed_at < FAILED_NOTICE_MS;
    const noted = isSoon ? { unnoticed: count } : { noticed_at: tx.now, unnoticed: 0 };
    this.deps.registry.setHealth(tx, endpoint, noted);
    if (!isSoon) this.notice(tx, endpoint, "ninefold.delivery.failed", { count });
  }

  private disable(tx: Tx, endpoint: Endpoint, reason: string, eventType: string | null): void {
    const { registry, scheduler, outbox, emailOf, stateChanged } = this.deps;
    const { row, terms } = endpoint;
    registry.setHealth(tx, endpoint, {
      state: DISABLED,
      disabled_reason: reason,
      breaker: CLOSED,
      probes: 0,
      next_probe_at: null,
    });
    scheduler.cancel(tx, PROBE, String(row.ref));
    this.changed(tx, endpoint);
    if (!isNotice(eventType)) this.notice(tx, endpoint, "ninefold.endpoint.disabled", { reason });
    stateChanged(tx, row.ref);
    const to = terms.notify_email && outbox.available ? emailOf(row.accountRef) : null;
    if (to !== null) outbox.enqueue(tx, row.accountRef, { to, ...disabledMail(endpoint, reason) });
  }

  private probeAt(tx: Tx, endpoint: Endpoint, moment: number): void {
    this.deps.registry.setHealth(tx, endpoint, { next_probe_at: moment });
    this.deps.scheduler.enqueue(tx, PROBE, String(endpoint.row.ref), moment, null);
  }

  private async probe({ key }: Job): Promise<JobOutcome> {
    return { record: (tx) => this.letOnePass(tx, Number(key)) };
  }

  private letOnePass(tx: Tx, endpointRef: number): void {
    const { registry, endpoints, scheduler } = this.deps;
    const endpoint = registry.get(endpointRef);
    if (endpoint === null || endpoint.health.state !== LIVE || endpoint.health.breaker !== OPEN) return;
    const [oldest] = endpoints.unpark(tx, endpointRef, 1);
    if (oldest === undefined) {
      registry.setHealth(tx, endpoint, { next_probe_at: null, holds: 0 });
      return;
    }
    registry.setHealth(tx, endpoint, { breaker: PROBING, next_probe_at: null });
    const job = { ref: oldest.ref, probe: endpointRef };
    scheduler.enqueueAnonymous(tx, DELIVER, tx.now, job, endpoint.lane);
  }

  private changed(tx: Tx, { row: { projectRef, endpoint_id } }: Endpoint): void {
    this.deps.changes.inProject(tx, projectRef, "relay", endpoint_id);
  }

  private notice(tx: Tx, endpoint: Endpoint, type: NoticeType, more: object = {}): void {
    const { row, terms, health } = endpoint;
    this.deps.notice(tx, endpoint, type, {
      endpoint_id: row.endpoint_id,
      name: row.name,
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
      `Nothing more is sent to ${terms.url}. What waited for it has failed and can be sent again.`,
      "Once it works, enable it: PATCH its path with a state of live, or press Enable in the console.",
    ].join("\n"),
  };
}
