import { ApiError } from "../../kernel/errors.ts";
import type { Caller } from "../../kernel/http/caller.ts";
import { pageOf, pageStart } from "../../kernel/http/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { givenHeaders, type RequestHeaders } from "../../kernel/outbound/headers.ts";
import type { TargetPolicy } from "../../kernel/outbound/target.ts";
import { laneName } from "../../kernel/scheduler/dispatcher.ts";
import { hmacSha256 } from "../../kernel/secrets/hmac.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isUuid } from "../../kernel/uuid.ts";
import { payloadText, readDelay } from "./domain.ts";
import {
  LIST_LIMIT,
  RELAY_STATUSES,
  type Relay,
  type RelayBody,
  type RelayCancelled,
  type RelayItem,
  type RelayPage,
  type RelayQuery,
  type RelayScheduled,
  type RelayStatus,
} from "./schema.ts";
import { DELIVER, type DeliveryCounts, sealContext, type WebhookSender } from "./sender.ts";
import type { NewRelay, RelayRow, RelayStore } from "./store.ts";

/** Bytes of a delivery's id that name its row: enough for a million million deliveries. */
const REF_BYTES = 5;
const REF_DIGITS = 2 * REF_BYTES;
/** The digits of a UUIDv7 that are its millisecond, with their dash. */
const TIME_DIGITS = 13;
const LOW_RANGE = 2 ** 32;

/** A notification of a monitor. */
export type Notification = Pick<
  NewRelay,
  "accountRef" | "projectRef" | "event" | "monitor_id" | "target_url" | "body"
>;

/** A delivery that a caller asks for, checked and made ready. */
export type PreparedRelay = ReturnType<RelayService["prepare"]>;

/** The use cases of deliveries. */
export class RelayService {
  private readonly relayIds: RelayIds;
  private nextRef: number;

  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "vault" | "ids"> & {
      readonly store: RelayStore;
      readonly sender: WebhookSender;
      readonly policy: TargetPolicy;
      readonly counts: DeliveryCounts;
    },
  ) {
    this.relayIds = new RelayIds(deps.vault.derive("relay ids"));
    this.nextRef = deps.store.highestRef() + 1;
  }

  /** Checks what a caller asks for. @throws ApiError `validation_error` naming the field. */
  prepare(given: RelayBody, bodyText: string) {
    const { target_url, method } = given;
    const { url } = this.deps.policy.assertUrl("target_url", target_url);
    return {
      host: url.host,
      delayMs: readDelay(given.delay),
      custom: withoutOwn(givenHeaders(given.headers ?? {})),
      relay: { target_url, method, body: method === "GET" ? null : payloadText(bodyText, given.payload) },
    };
  }

  /** Schedules a delivery in the caller's project. */
  schedule(tx: Tx, { account, project }: Caller, prepared: PreparedRelay): RelayScheduled {
    const { host, delayMs, custom, relay } = prepared;
    const id = this.newId();
    const { vault } = this.deps;
    const isPlain = Object.keys(custom).length === 0;
    const headers = isPlain ? null : vault.seal(JSON.stringify(custom), sealContext(id.relay_id));
    const scheduled_for = tx.now + delayMs;
    const owner = { accountRef: account.ref, projectRef: project.ref };
    const origin = { kind: "scheduled", event: null, monitor_id: null } as const;
    this.insert(tx, { ...id, ...owner, ...origin, ...relay, headers, scheduled_for }, host);
    return { relay_id: id.relay_id, scheduled_for, status: "scheduled" };
  }

  /** Queues a monitor's notification, due at once. */
  notify(tx: Tx, notification: Notification): void {
    const fixed = { kind: "pulse", method: "POST", headers: null } as const;
    this.insert(
      tx,
      { ...notification, ...this.newId(), ...fixed, scheduled_for: tx.now },
      new URL(notification.target_url).host,
    );
  }

  /** A page of a project's deliveries, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(projectRef: number, { filter, status, limit = LIST_LIMIT, cursor }: RelayQuery): RelayPage {
    const { store, sender } = this.deps;
    const before = pageStart(cursor);
    // Those whose first attempt is under way are stored as scheduled: a page must be full without them, too.
    const underWay = status === undefined ? [] : sender.underWay(projectRef);
    const limitStored = limit + 1 + underWay.length;
    const stored = (status === undefined ? RELAY_STATUSES : [status]).flatMap((one) =>
      store.page(filter === "pulse", projectRef, one, before, limitStored),
    );
    const added = status === "delivering" ? underWay.filter((ref) => ref < before) : [];
    const rows = new Map<number, RelayRow>(stored.map((row) => [row.ref, row]));
    for (const ref of added) {
      const row = store.request(ref);
      if (row !== null && (filter === undefined || row.item.kind === filter)) rows.set(ref, row);
    }
    const wanted = [...rows.values()]
      .filter((row) => status === undefined || this.statusOf(row) === status)
      .sort((a, b) => b.ref - a.ref);
    const { items, ...next } = pageOf(wanted.slice(0, limit + 1), limit, ({ ref }) => [ref]);
    return { deliveries: items.map((row) => this.itemOf(row)), ...next };
  }

  /** One delivery with each of its attempts. @throws ApiError `not_found` */
  read(projectRef: number, relayId: string): Relay {
    const row = this.find(projectRef, relayId);
    return { ...this.itemOf(row), attempt_log: this.deps.store.attempts(row.ref) };
  }

  /** Cancels a delivery. @throws ApiError `not_found`, `conflict` once its first attempt has begun. */
  cancel(tx: Tx, projectRef: number, relayId: string): RelayCancelled {
    const row = this.find(projectRef, relayId);
    const { relay_id, kind } = row.item;
    const status = this.statusOf(row);
    if (status === "scheduled") {
      const end = { status: "cancelled", attempts: 0, response_status: null, error: null } as const;
      this.deps.store.update(tx, row.ref, end);
      tx.afterCommit(() => this.deps.counts.ended[kind].cancelled.add());
      const target = { type: "delivery", id: relay_id };
      tx.audit({
        summary: "Delivery cancelled",
        target,
        before: { status },
        after: { status: "cancelled" },
      });
    } else if (status !== "cancelled") {
      throw new ApiError(
        "conflict",
        `This delivery is ${status}: only one whose first attempt has not begun can be cancelled.`,
      );
    }
    if (status === "cancelled") tx.audit(null);
    return { relay_id, status: "cancelled" };
  }

  private newId(): { ref: number; relay_id: string } {
    const ref = this.nextRef++;
    return { ref, relay_id: this.relayIds.idOf(this.deps.ids.uuidV7(), ref) };
  }

  /** `host`: where the delivery goes; with the account it is the lane that it waits in. */
  private insert(tx: Tx, relay: NewRelay, host: string): void {
    const { store, scheduler } = this.deps;
    store.insert(tx, relay);
    const lane = laneName(relay.accountRef, host);
    scheduler.enqueueAnonymous(tx, DELIVER, relay.scheduled_for, relay.ref, lane);
  }

  private find(projectRef: number, relayId: string): RelayRow {
    const id = relayId.toLowerCase();
    const refs = isUuid(id) ? this.relayIds.refsOf(id) : [];
    for (const ref of refs) {
      const row = this.deps.store.request(ref);
      if (row !== null && row.item.relay_id === id && row.projectRef === projectRef) return row;
    }
    throw new ApiError("not_found", "There is no delivery with this relay_id in this project.");
  }

  private statusOf({ ref, item: { status } }: RelayRow): RelayStatus {
    return status === "scheduled" && this.deps.sender.isUnderWay(ref) ? "delivering" : status;
  }

  private itemOf(row: RelayRow): RelayItem {
    return { ...row.item, status: this.statusOf(row) };
  }
}

/**
 * Headers that the delivery sets itself, so that a caller's are ignored; with underscores too, which many receivers read
 * as dashes.
 */
const OWN_HEADERS = /^(x[-_]svc[-_].*|host|content[-_]length|connection|transfer[-_]encoding)$/i;

function withoutOwn(headers: RequestHeaders): RequestHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN_HEADERS.test(name)));
}

/**
 * The ids of deliveries: UUIDs whose last digits name the row, so that they need no index. The rows of all accounts are
 * numbered together, so the digits are masked: plain ones would show how many deliveries others have made. The mask
 * changes each millisecond, and cannot be lifted without the key.
 */
export class RelayIds {
  /** The mask of the last millisecond asked for: a busy server needs it for many ids. */
  private time = "";
  private mask = 0;

  constructor(private readonly key: Uint8Array) {}

  /** The id of a delivery: a UUIDv7 with the last digits of its row. */
  idOf(uuid: string, ref: number): string {
    return uuid.slice(0, -REF_DIGITS) + this.masked(uuid, ref).toString(16).padStart(REF_DIGITS, "0");
  }

  /** The rows that an id can name, of which at most one has this id. The second is for ids older than the mask. */
  refsOf(relayId: string): [number, number] {
    const digits = Number.parseInt(relayId.slice(-REF_DIGITS), 16);
    return [this.masked(relayId, digits), digits];
  }

  /** Masks the digits, or unmasks them. */
  private masked(uuid: string, digits: number): number {
    const mask = this.maskOf(uuid.slice(0, TIME_DIGITS));
    const high = Math.floor(digits / LOW_RANGE) ^ Math.floor(mask / LOW_RANGE);
    return high * LOW_RANGE + ((digits ^ mask) >>> 0);
  }

  private maskOf(time: string): number {
    if (time !== this.time) {
      this.mask = hmacSha256(this.key).update(time).digest().readUIntBE(0, REF_BYTES);
      this.time = time;
    }
    return this.mask;
  }
}
