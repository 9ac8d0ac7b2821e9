import { ApiError } from "../../kernel/errors.ts";
import type { Caller } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, pageOf } from "../../kernel/http/pagination.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { RequestHeaders } from "../../kernel/outbound/headers.ts";
import { givenHeaders } from "../../kernel/outbound/headers.ts";
import type { TargetPolicy } from "../../kernel/outbound/target.ts";
import { laneName } from "../../kernel/scheduler/dispatcher.ts";
import type { Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { DeliveryCounts } from "./counts.ts";
import { DELIVER, type Deliveries, sealContext } from "./deliveries.ts";
import { type RelayKind, type RelayStatus, readDelay } from "./domain.ts";
import { payloadText } from "./payload.ts";
import { RelayIds } from "./relay-id.ts";
import type { AttemptRow, NewRelay, RelayRow, RelayStore } from "./store.ts";

/** What the service is built on. */
export interface RelayServiceDeps {
  readonly store: RelayStore;
  readonly deliveries: Deliveries;
  readonly scheduler: Scheduler;
  readonly policy: TargetPolicy;
  readonly vault: Vault;
  readonly ids: Ids;
  readonly counts: DeliveryCounts;
}

/** A delivery that a caller asks for. */
export interface ScheduleRequest {
  readonly target_url: string;
  readonly method: string;
  readonly delay: string;
  readonly payload: object;
  readonly headers: Readonly<Record<string, string>>;
}

/** A scheduled delivery that has been checked and made ready. */
export interface ReadyDelivery {
  readonly host: string;
  readonly targetUrl: string;
  readonly method: string;
  readonly delayMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** A notification of a monitor. */
export interface Notification {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly event: string;
  readonly monitorId: string;
  readonly targetUrl: string;
  readonly body: string;
}

/** A delivery, as lists show it. */
export interface DeliveryView {
  readonly relay_id: string;
  readonly kind: RelayKind;
  readonly event: string | null;
  readonly monitor_id: string | null;
  readonly target_url: string;
  readonly method: string;
  readonly status: RelayStatus;
  readonly attempts: number;
  readonly response_status: number | null;
  readonly error: string | null;
  readonly scheduled_for: number;
  readonly finished_at: number | null;
  readonly created_at: number;
}

/** What a list of deliveries is narrowed by. */
export interface ListQuery {
  readonly filter?: "pulse";
  readonly status?: RelayStatus;
  readonly limit: number;
  readonly cursor: string | undefined;
}

const ALL_STATUSES: readonly RelayStatus[] = ["scheduled", "delivering", "delivered", "failed", "cancelled"];
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The use cases of deliveries. */
export class RelayService {
  private readonly relayIds: RelayIds;
  private nextRef: number;

  constructor(private readonly deps: RelayServiceDeps) {
    this.relayIds = new RelayIds(deps.vault.derive("relay ids"));
    this.nextRef = deps.store.highestRef() + 1;
  }

  /** Checks what a caller asks for. @throws ApiError `validation_error` naming the field. */
  prepare(request: ScheduleRequest, bodyText: string): ReadyDelivery {
    const { url } = this.deps.policy.assertUrl("target_url", request.target_url);
    return {
      host: url.host,
      targetUrl: request.target_url,
      method: request.method,
      delayMs: readDelay(request.delay),
      headers: withoutOwn(givenHeaders(request.headers)),
      body: request.method === "GET" ? null : payloadText(bodyText, request.payload),
    };
  }

  /** Schedules a delivery in the caller's project. */
  schedule(tx: Tx, caller: Caller, ready: ReadyDelivery): object {
    const ref = this.nextRef++;
    const relayId = this.relayIds.idOf(this.deps.ids.uuidV7(), ref);
    const headers =
      Object.keys(ready.headers).length === 0
        ? null
        : this.deps.vault.seal(JSON.stringify(ready.headers), sealContext(relayId));
    const scheduledFor = tx.now + ready.delayMs;
    this.insert(
      tx,
      {
        relayId,
        accountRef: caller.account.ref,
        projectRef: caller.project.ref,
        kind: "scheduled",
        event: null,
        monitorId: null,
        targetUrl: ready.targetUrl,
        method: ready.method,
        headers,
        body: ready.body,
        scheduledFor,
      },
      ref,
      ready.host,
    );
    return { relay_id: relayId, scheduled_for: scheduledFor, status: "scheduled" };
  }

  /** Queues a monitor's notification, due at once. */
  notify(tx: Tx, notification: Notification): void {
    const ref = this.nextRef++;
    this.insert(
      tx,
      {
        ...notification,
        relayId: this.relayIds.idOf(this.deps.ids.uuidV7(), ref),
        kind: "pulse",
        method: "POST",
        headers: null,
        scheduledFor: tx.now,
      },
      ref,
      new URL(notification.targetUrl).host,
    );
  }

  /** A page of a project's deliveries, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(projectRef: number, query: ListQuery): { deliveries: DeliveryView[]; cursor?: string } {
    const before = query.cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(query.cursor);
    const statuses = query.status === undefined ? ALL_STATUSES : [query.status];
    const underWay = query.status === undefined ? 0 : this.deps.deliveries.underWay(projectRef).length;
    const rows = statuses.flatMap((status) =>
      // Those under way are stored as scheduled: so many more are read that a page can be full without them.
      this.deps.store.page(projectRef, query.filter === "pulse", status, before, query.limit + 1 + underWay),
    );
    const wanted = this.narrowed(projectRef, rows, query, before).sort((a, b) => b.ref - a.ref);
    const page = pageOf(wanted.slice(0, query.limit + 1), query.limit, (row) => [row.ref]);
    const deliveries = page.items.map((row) => this.viewOf(row));
    return page.cursor === undefined ? { deliveries } : { deliveries, cursor: page.cursor };
  }

  /** One delivery with each of its attempts. @throws ApiError `not_found` */
  read(projectRef: number, relayId: string): DeliveryView & { attempt_log: object[] } {
    const row = this.find(projectRef, relayId);
    return { ...this.viewOf(row), attempt_log: this.deps.store.attempts(row.ref).map(attemptView) };
  }

  /** Takes a delivery back. @throws ApiError `not_found`, `conflict` once its first attempt has begun. */
  cancel(tx: Tx, projectRef: number, relayId: string): { relay_id: string; status: "cancelled" } {
    const row = this.find(projectRef, relayId);
    const status = this.statusOf(row);
    if (status === "scheduled") {
      this.deps.store.finish(tx, row.ref, {
        status: "cancelled",
        attempts: 0,
        responseStatus: null,
        error: null,
      });
      tx.afterCommit(() => this.deps.counts.ended[row.kind].cancelled.add());
    } else if (status !== "cancelled") {
      throw new ApiError(
        "conflict",
        `This delivery is ${status}: only one whose first attempt has not begun can be cancelled.`,
      );
    }
    return { relay_id: row.relayId, status: "cancelled" };
  }

  /** `host`: where the delivery goes; with the account it is the lane that it waits in. */
  private insert(tx: Tx, relay: NewRelay, ref: number, host: string): void {
    this.deps.store.insert(tx, relay, ref);
    this.deps.scheduler.enqueueAnonymous(
      tx,
      DELIVER,
      relay.scheduledFor,
      ref,
      laneName(relay.accountRef, host),
    );
  }

  private find(projectRef: number, relayId: string): RelayRow {
    const id = relayId.toLowerCase();
    const refs = UUID.test(id) ? this.relayIds.refsOf(id) : [];
    for (const ref of refs) {
      const row = this.deps.store.request(ref);
      if (row !== null && row.relayId === id && row.projectRef === projectRef) return row;
    }
    throw new ApiError("not_found", "There is no delivery with this relay_id in this project.");
  }

  private statusOf(row: RelayRow): RelayStatus {
    return row.status === "scheduled" && this.deps.deliveries.isUnderWay(row.ref) ? "delivering" : row.status;
  }

  /** Those rows that really have the wanted status, whatever is stored. */
  private narrowed(projectRef: number, rows: RelayRow[], query: ListQuery, before: number): RelayRow[] {
    if (query.status === undefined) return rows;
    const underWay =
      query.status !== "delivering"
        ? []
        : this.deps.deliveries
            .underWay(projectRef)
            .filter((ref) => ref < before)
            .map((ref) => this.deps.store.request(ref))
            .filter((row) => row !== null && (query.filter === undefined || row.kind === query.filter));
    const all = [...rows, ...underWay.filter((row) => row !== null)];
    const known = new Map(all.map((row) => [row.ref, row]));
    return [...known.values()].filter((row) => this.statusOf(row) === query.status);
  }

  private viewOf(row: RelayRow): DeliveryView {
    return {
      relay_id: row.relayId,
      kind: row.kind,
      event: row.event,
      monitor_id: row.monitorId,
      target_url: row.targetUrl,
      method: row.method,
      status: this.statusOf(row),
      attempts: row.attempts,
      response_status: row.responseStatus,
      error: row.error,
      scheduled_for: row.scheduledFor,
      finished_at: row.finishedAt,
      created_at: row.createdAt,
    };
  }
}

/** Set by the delivery itself; a caller's are ignored, with underscores too: many receivers take those for dashes. */
const OWN_HEADERS = /^(x[-_]svc[-_].*|host|content[-_]length|connection|transfer[-_]encoding)$/i;

function withoutOwn(headers: RequestHeaders): RequestHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN_HEADERS.test(name)));
}

function attemptView(row: AttemptRow): object {
  return {
    attempt: row.number,
    started_at: row.started_at,
    duration_ms: row.duration_ms,
    response_status: row.response_status,
    error: row.error,
  };
}
