import { hmacSha256 } from "../../../kernel/hmac.ts";
import type { Kernel } from "../../../kernel/kernel.ts";

/** Bytes of a delivery's id that hold the number of its row: enough for 2^40 deliveries. */
const REF_BYTES = 5;
const REF_DIGITS = 2 * REF_BYTES;
/** The digits of a UUIDv7 that hold its millisecond, with their dash. */
const TIME_DIGITS = 13;
const LOW_RANGE = 2 ** 32;

/**
 * The ids of deliveries: UUIDs that end in the number of the row, which makes an index unnecessary. All accounts share the
 * numbers, so the digits are masked: plain ones would reveal how many deliveries others have created. The mask
 * changes each millisecond, and cannot be lifted without the key.
 */
export class RelayIds {
  /** The mask of the latest millisecond, cached: a busy server needs it for many ids. */
  private time = "";
  private mask = 0;

  constructor(private readonly key: Uint8Array) {}

  /** The id of a delivery: a UUIDv7 with the last digits of its row. */
  idOf(uuid: string, ref: number): string {
    return uuid.slice(0, -REF_DIGITS) + this.masked(uuid, ref).toString(16).padStart(REF_DIGITS, "0");
  }

  /** The rows that an id may refer to; at most one of them has this id. The second is for ids older than the mask. */
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

/** Consecutive references of new deliveries, and the base of their ids. */
export interface ReservedIds {
  readonly first: number;
  readonly uuid: string;
}

/** The ids of deliveries, stored and new. */
export class DeliveryIds extends RelayIds {
  private nextRef: number;

  /** `highestRef`: the largest reference used so far. */
  constructor(
    private readonly deps: Pick<Kernel, "vault" | "ids">,
    highestRef: number,
  ) {
    super(deps.vault.derive("relay ids"));
    this.nextRef = highestRef + 1;
  }

  /** Reserves consecutive references of new deliveries. */
  reserve(count: number): ReservedIds {
    const first = this.nextRef;
    this.nextRef += count;
    return { first, uuid: this.deps.ids.uuidV7() };
  }

  /** Reserves the reference and the id of one new delivery. */
  next(): { ref: number; relay_id: string } {
    const { first, uuid } = this.reserve(1);
    return { ref: first, relay_id: this.idOf(uuid, first) };
  }
}
