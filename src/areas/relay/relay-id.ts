import { createHmac } from "node:crypto";

/** Bytes of a delivery's id that name its row: enough for a million million deliveries. */
const REF_BYTES = 5;
const REF_DIGITS = 2 * REF_BYTES;
/** The digits of a UUIDv7 that are its millisecond, with their dash. */
const TIME_DIGITS = 13;
const LOW_RANGE = 2 ** 32;

/**
 * The ids of deliveries: UUIDs whose last digits name the row, so that they need no index. The rows of all accounts are
 * numbered together, so the digits are veiled: by themselves or compared with another id's they would tell how many
 * deliveries others have made. The veil is another one each millisecond, and takes a key to lift.
 */
export class RelayIds {
  /** The veil of the millisecond asked for last: a busy server needs one for many ids. */
  private time = "";
  private veil = 0;

  constructor(private readonly key: Uint8Array) {}

  /** The id of a delivery: a UUIDv7 with the last digits of its row. */
  idOf(uuid: string, ref: number): string {
    return uuid.slice(0, -REF_DIGITS) + this.veiled(uuid, ref).toString(16).padStart(REF_DIGITS, "0");
  }

  /**
   * The rows that an id can name; whether one has this very id is to be seen there. The second is for ids of before
   * the digits were veiled.
   */
  refsOf(relayId: string): [number, number] {
    const digits = Number.parseInt(relayId.slice(-REF_DIGITS), 16);
    return [this.veiled(relayId, digits), digits];
  }

  /** Puts the veil on, or takes it off. */
  private veiled(uuid: string, digits: number): number {
    const veil = this.veilOf(uuid.slice(0, TIME_DIGITS));
    const high = Math.floor(digits / LOW_RANGE) ^ Math.floor(veil / LOW_RANGE);
    return high * LOW_RANGE + ((digits ^ veil) >>> 0);
  }

  private veilOf(time: string): number {
    if (time !== this.time) {
      this.veil = createHmac("sha256", this.key).update(time).digest().readUIntBE(0, REF_BYTES);
      this.time = time;
    }
    return this.veil;
  }
}
