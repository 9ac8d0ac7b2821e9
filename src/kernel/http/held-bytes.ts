import type { ApiError } from "../errors.ts";

/** Limits on bytes that requests hold in memory. */
export interface HoldLimits {
  /** Bytes of one account together; where no key is needed, of one network. */
  readonly senderBytesMax: number;
  /** Bytes of all together. */
  readonly bytesMax: number;
}

/** Whom bytes are counted for: an account's number, or a network. */
export type Sender = number | string;

/** Bytes that requests hold in memory, by sender and in all. */
export class HeldBytes {
  private readonly bySender = new Map<Sender, number>();
  private bytes = 0;

  /** `excess`: makes the error of what is beyond a limit. */
  constructor(
    private readonly most: HoldLimits,
    private readonly excess: () => ApiError,
  ) {}

  /** Bytes that are held now. */
  get total(): number {
    return this.bytes;
  }

  /** Counts more bytes of a sender. @throws ApiError beyond a limit. */
  add(sender: Sender, bytes: number): void {
    const ofSender = (this.bySender.get(sender) ?? 0) + bytes;
    if (ofSender > this.most.senderBytesMax || this.bytes + bytes > this.most.bytesMax) throw this.excess();
    this.bySender.set(sender, ofSender);
    this.bytes += bytes;
  }

  /** Counts bytes of a sender no longer. */
  remove(sender: Sender, bytes: number): void {
    const left = (this.bySender.get(sender) ?? 0) - bytes;
    if (left > 0) this.bySender.set(sender, left);
    else this.bySender.delete(sender);
    this.bytes -= bytes;
  }
}
