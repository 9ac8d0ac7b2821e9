import { insufficientBalance } from "../../../kernel/data/ledger.ts";
import { uuidToBytes } from "../../../kernel/data/uuid.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import { pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import type { MeterActor } from "../actor.ts";
import type { MeterChange } from "../book.ts";
import { HOLD_STATUSES, type HoldStatus } from "../domain.ts";
import type { MeterService } from "../service.ts";
import { type HoldRow, type HoldStore, holdStatus } from "../store.ts";
import type { DueWork } from "./due.ts";
import {
  type CaptureBody,
  HOLD_METADATA_BYTES_MAX,
  HOLD_SECONDS_DEFAULT,
  HOLDS_LIMIT,
  type HoldBody,
  type HoldQuery,
  type HoldsPage,
  type MeterHold,
} from "./schema.ts";

/** Open holds per meter: they are summed when the meter is loaded. */
export const HOLDS_OPEN_MAX = 1_000;
/** Captures that leave a hold open. Each adds a ledger entry, and only the creation of the hold costs a credit. */
export const CAPTURES_MAX = 1_000;
/** Retention of closed holds in milliseconds, the same as of finished deliveries. */
export const HOLD_RETENTION_MS = 7 * DAY_MS;

/** A change of a hold. */
export interface HoldChange extends MeterChange {
  readonly holdId: string;
}

/** Result of a request for a hold. */
export interface HoldResult {
  /** False if an earlier request created it, so that nothing was taken. */
  readonly isNew: boolean;
  readonly hold: MeterHold;
}

interface MeterHoldRow {
  readonly meter: MeterActor;
  readonly row: HoldRow;
}

/** The operations of holds: credits reserved for work in progress, and captured or released afterwards. */
export class HoldService {
  private nextRef: number;

  constructor(
    private readonly store: HoldStore,
    private readonly meters: MeterService,
    private readonly due: DueWork,
    private readonly kernel: Pick<Kernel, "clock" | "ids">,
  ) {
    this.nextRef = store.highestRef() + 1;
  }

  /**
   * Creates a hold, or returns the hold that the same request has created before.
   * @throws ApiError `insufficient_balance`; `conflict` for the id of another request; `forbidden` at the limit of open holds.
   */
  create(tx: Tx, change: MeterChange, body: HoldBody): HoldResult {
    const meter = this.meters.book.current(tx, change);
    const repeated = this.findRepeated(change, meter, body);
    if (repeated !== null) return { isNew: false, hold: this.view(repeated, meter, change.meterId, tx.now) };
    const { meterId } = change;
    const { amount: requested, at_most = false, ttl_seconds = HOLD_SECONDS_DEFAULT } = body;
    const { balance, available } = this.meters.stateOf(meter, meterId, tx.now);
    const amount = at_most ? Math.min(requested, available) : requested;
    if (meter === undefined || amount < 1 || amount > available) {
      const message = `The hold needs ${requested} credits, but only ${available} are available.${this.meters.planAdvice(change)}`;
      throw insufficientBalance(message, balance, { meter_id: meterId, available });
    }
    if ((meter.extras?.holds.open ?? 0) >= HOLDS_OPEN_MAX) {
      throw new ApiError(
        "forbidden",
        `The meter has ${HOLDS_OPEN_MAX} open holds, the maximum. Capture or release some first.`,
      );
    }
    const row: HoldRow = {
      ref: this.nextRef++,
      project_ref: change.projectRef,
      meter_ref: meter.ref,
      hold_id: body.hold_id ?? this.kernel.ids.uuidV7(),
      status: holdStatus("open"),
      requested,
      at_most: Number(at_most),
      amount,
      captured: 0,
      asked: null,
      shortfall: 0,
      created_at: tx.now,
      expires_at: tx.now + ttl_seconds * 1_000,
      ended_at: null,
      metadata: metadataText(body),
      captures: 0,
    };
    this.store.insert(tx, row);
    this.updateOpenHolds(tx, meter, null, row);
    this.meters.book.notifyIfLow(tx, change, meter, available);
    return { isNew: true, hold: this.view(row, meter, meterId, tx.now) };
  }

  /**
   * Returns the open hold that a request with the same terms has created; null if there is none.
   * @throws ApiError `conflict` for the id of another request, or for a hold that is no longer open.
   */
  findOpen(tx: Tx, change: MeterChange, body: HoldBody): MeterHold | null {
    const meter = this.meters.book.current(tx, change);
    const row = this.findRepeated(change, meter, body);
    if (row === null) return null;
    assertOpen(row);
    return this.view(row, meter, change.meterId, tx.now);
  }

  /** @throws ApiError `not_found`. */
  read(projectRef: number, meterId: string, holdId: string): MeterHold {
    const { meter, row } = this.find(projectRef, this.meters.book.find(projectRef, meterId), holdId);
    return this.view(row, meter, meterId, this.kernel.clock.now());
  }

  /** Returns a page of a meter's holds, newest first. @throws ApiError `validation_error` for a cursor of another list. */
  list(projectRef: number, meterId: string, { status, limit = HOLDS_LIMIT, cursor }: HoldQuery): HoldsPage {
    const meter = this.meters.book.find(projectRef, meterId);
    const before = pageStart(cursor);
    const now = this.kernel.clock.now();
    const statuses = status === undefined ? HOLD_STATUSES : [status];
    const rows = statuses
      .flatMap((state) => this.store.page(meter?.ref ?? 0, holdStatus(state), before, limit + 1))
      .sort((a, b) => b.ref - a.ref);
    const { items, ...next } = pageOf(rows.slice(0, limit + 1), limit, ({ ref }) => [ref]);
    return { holds: items.map((row) => this.view(row, meter, meterId, now)), ...next };
  }

  /**
   * Deducts an amount from a hold and releases the rest, unless the capture is not final.
   * @throws ApiError `not_found`; `conflict` if it is no longer open; `invalid_request` for more than the hold; `forbidden` at
   *   the limit of captures that leave it open.
   */
  capture(tx: Tx, change: HoldChange, { amount, final = true, over = "reject" }: CaptureBody): MeterHold {
    const { meter, row } = this.current(tx, change);
    const asked = amount ?? row.amount;
    // A repeated final capture.
    if (final && row.asked === asked) return this.view(row, meter, change.meterId, tx.now);
    assertOpen(row);
    if (over === "reject" && asked > row.amount) {
      const message = `The hold has ${row.amount} credits; ${asked} cannot be captured. Use \`"over": "cap"\` to also take available credits.`;
      throw new ApiError("invalid_request", message);
    }
    const { available } = this.meters.stateOf(meter, change.meterId, tx.now);
    const taken = Math.min(asked, row.amount + available);
    const captured = row.captured + taken;
    const staysOpen = !final && taken < row.amount;
    if (staysOpen && row.captures >= CAPTURES_MAX) {
      const message = `The hold ${row.hold_id} has had ${CAPTURES_MAX} captures that left it open, the maximum. The next one must be final.`;
      throw new ApiError("forbidden", message);
    }
    const left: HoldRow = staysOpen
      ? { ...row, amount: row.amount - taken, captured, captures: row.captures + Number(taken > 0) }
      : { ...row, ...closedFields(tx, captured), asked: final ? asked : null, shortfall: asked - taken };
    this.store.update(tx, left);
    this.updateOpenHolds(tx, meter, row, left);
    if (taken > 0) {
      const request = uuidToBytes(change.requestId);
      this.meters.book.enter(tx, meter, "capture", meter.balance - taken, request, row.hold_id);
    }
    this.meters.book.notifyIfLow(tx, change, meter, available);
    return this.view(left, meter, change.meterId, tx.now);
  }

  /** Releases a hold. A released or expired hold does not change. @throws ApiError `not_found`, `conflict`. */
  release(tx: Tx, change: HoldChange): MeterHold {
    const { meter, row } = this.current(tx, change);
    const status = statusOf(row);
    if (status === "released" || status === "expired") return this.view(row, meter, change.meterId, tx.now);
    assertOpen(row);
    const left = { ...row, ...closedFields(tx, row.captured) };
    this.store.update(tx, left);
    this.updateOpenHolds(tx, meter, row, left);
    return this.view(left, meter, change.meterId, tx.now);
  }

  /** Sets a hold's expiry to `seconds` from now. @throws ApiError `not_found`, `conflict`. */
  extend(tx: Tx, change: HoldChange, seconds: number): MeterHold {
    const { meter, row } = this.current(tx, change);
    assertOpen(row);
    const left = { ...row, expires_at: tx.now + seconds * 1_000 };
    this.store.update(tx, left);
    this.updateOpenHolds(tx, meter, row, left);
    return this.view(left, meter, change.meterId, tx.now);
  }

  private current(tx: Tx, change: HoldChange): MeterHoldRow {
    return this.find(change.projectRef, this.meters.book.current(tx, change), change.holdId);
  }

  private find(projectRef: number, meter: MeterActor | undefined, holdId: string): MeterHoldRow {
    const row = this.store.find(projectRef, holdId);
    if (meter !== undefined && row?.meter_ref === meter.ref) return { meter, row };
    throw new ApiError("not_found", `This meter has no hold ${holdId}.`);
  }

  /** Returns the existing hold of a repeated request; null if there is none. @throws ApiError `conflict` for other terms. */
  private findRepeated(change: MeterChange, meter: MeterActor | undefined, body: HoldBody): HoldRow | null {
    if (body.hold_id === undefined) return null;
    const known = this.store.find(change.projectRef, body.hold_id);
    if (known === null) return null;
    const isSame = known.requested === body.amount && known.at_most === Number(body.at_most ?? false);
    if (isSame && known.meter_ref === meter?.ref) return known;
    throw new ApiError("conflict", `The hold ${body.hold_id} exists with other terms. Use another hold_id.`);
  }

  /** Updates the totals of a meter's open holds. `before` is the open hold before the change, or null for a new one. */
  private updateOpenHolds(
    tx: Tx,
    meter: MeterActor,
    before: HoldRow | null,
    { ended_at, amount, expires_at }: HoldRow,
  ): void {
    const isOpen = ended_at === null;
    const extras = this.meters.book.extrasFor(tx, meter);
    const { holds } = extras;
    extras.setHolds(tx, {
      held: holds.held + (isOpen ? amount : 0) - (before?.amount ?? 0),
      open: holds.open + (isOpen ? 1 : 0) - (before === null ? 0 : 1),
      expiresFrom: isOpen ? Math.min(holds.expiresFrom, expires_at) : holds.expiresFrom,
    });
    if (isOpen) this.due.schedule(tx, expires_at);
  }

  private view(row: HoldRow, meter: MeterActor | undefined, meterId: string, now: number): MeterHold {
    const { ref, project_ref, meter_ref, at_most, asked, shortfall, metadata, captures, ...shown } = row;
    const { balance, available } = this.meters.stateOf(meter, meterId, now);
    // If the disk is full, the row of an expired hold is still open.
    const isOver = row.ended_at === null && row.expires_at <= now;
    return {
      ...shown,
      meter_id: meterId,
      balance,
      available,
      status: isOver ? "expired" : statusOf(row),
      ...(shortfall > 0 ? { shortfall } : {}),
      created_at: isoTime(row.created_at),
      expires_at: isoTime(row.expires_at),
      ended_at: isoTimeOrNull(isOver ? row.expires_at : row.ended_at),
      metadata: metadata === null ? null : (JSON.parse(metadata) as Record<string, string>),
    };
  }
}

/** Returns the fields of a closed hold. */
function closedFields(tx: Tx, captured: number): Pick<HoldRow, "status" | "captured" | "ended_at"> {
  return { status: holdStatus(captured > 0 ? "captured" : "released"), captured, ended_at: tx.now };
}

function statusOf({ status }: HoldRow): HoldStatus {
  return HOLD_STATUSES[status - 1] ?? "expired";
}

function assertOpen(row: HoldRow): void {
  if (row.ended_at === null) return;
  const status = statusOf(row);
  throw new ApiError("conflict", `The hold ${row.hold_id} is ${status}.`, { extras: { status } });
}

/** Called before any charge. @throws ApiError `validation_error` for metadata that is too long. */
export function assertMetadata(body: HoldBody): void {
  const text = metadataText(body) ?? "";
  const isStrings = Object.values(body.metadata ?? {}).every((value) => typeof value === "string");
  if (!isStrings || Buffer.byteLength(text) > HOLD_METADATA_BYTES_MAX) {
    throw invalidField(
      "metadata",
      `must be strings of at most ${HOLD_METADATA_BYTES_MAX} bytes together, as JSON`,
    );
  }
}

function metadataText({ metadata }: HoldBody): string | null {
  return metadata === undefined ? null : JSON.stringify(metadata);
}
