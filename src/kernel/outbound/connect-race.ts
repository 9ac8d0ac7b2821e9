import { isIPv6 } from "node:net";
import { type Cancel, realTimeout } from "../time/clock.ts";
import type { Connection, Opening } from "./connection.ts";
import { OutboundFailure } from "./outcome.ts";

/** How long an address is waited for until the next one is tried as well (RFC 8305, section 5). */
const ATTEMPT_DELAY_MS = 250;

/**
 * Addresses with those of the two families in turns, beginning with the first one's: where one family leads nowhere, the
 * second address is of the other (RFC 8305, section 4).
 */
export function inTurns(addresses: readonly string[]): string[] {
  const [first = "", ...rest] = addresses;
  const same = [first, ...rest.filter((address) => isIPv6(address) === isIPv6(first))];
  const other = rest.filter((address) => isIPv6(address) !== isIPv6(first));
  const mixed = same.flatMap((address, at) => [address, ...other.slice(at, at + 1)]);
  return addresses.length === 0 ? [] : [...mixed, ...other.slice(same.length)];
}

/** Connects to several addresses of a target, of which the first one that accepts a connection is used. */
export class ConnectRace {
  private readonly outcome = Promise.withResolvers<Connection>();
  /** Those that have not failed. */
  private readonly openings = new Set<Opening>();
  private failure = new OutboundFailure("connect", "no connection was made");
  private cancelNext: Cancel | null = null;
  private next = 0;
  /** Whether no further address is tried. */
  private isStopped = false;

  constructor(
    private readonly addresses: readonly string[],
    private readonly open: (address: string) => Opening,
  ) {}

  /** @throws OutboundFailure `connect` of the last address that failed; `tls`, `timeout`, `local` of any */
  async run(): Promise<Connection> {
    this.tryNext();
    try {
      return await this.outcome.promise;
    } catch (error) {
      for (const opening of this.openings) opening.giveUp();
      throw error;
    } finally {
      this.stop();
    }
  }

  private tryNext(): void {
    this.cancelNext?.();
    const address = this.addresses[this.next];
    if (address === undefined) {
      if (this.openings.size === 0) this.outcome.reject(this.failure);
      return;
    }
    this.next += 1;
    const opening = this.open(address);
    this.openings.add(opening);
    void opening.accepted.then(() => this.choose(opening));
    opening.done.then(this.outcome.resolve, (error) => this.onFailure(opening, error));
    if (this.next < this.addresses.length)
      this.cancelNext = realTimeout(ATTEMPT_DELAY_MS, () => this.tryNext());
  }

  private onFailure(opening: Opening, error: unknown): void {
    // It was given up.
    if (!this.openings.delete(opening)) return;
    if (!(error instanceof OutboundFailure) || error.kind !== "connect" || this.isStopped) {
      this.outcome.reject(error);
      return;
    }
    this.failure = error;
    this.tryNext();
  }

  /** Gives up all others: the target is reached, and its certificate counts, whichever address it has. */
  private choose(chosen: Opening): void {
    if (this.isStopped) return;
    this.stop();
    for (const opening of this.openings) {
      if (opening === chosen) continue;
      this.openings.delete(opening);
      opening.giveUp();
    }
  }

  private stop(): void {
    this.isStopped = true;
    this.cancelNext?.();
  }
}
