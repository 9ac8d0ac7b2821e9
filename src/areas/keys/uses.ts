import { type Cancel, realTimeout } from "../../kernel/clock.ts";
import { errorText } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/log.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { KeyStore, KeyUseRow } from "./store.ts";

/** Keys used since the last round after which a round begins: bounds what is held in memory for it. */
export const USES_WAITING_MAX = 50_000;
/** Longest wait for a round: what a crash can lose of the last uses. */
const WRITE_AFTER_MS = 5_000;
/** Rows written in one unit of work: under a millisecond, so that requests get their turn in between. */
const WRITE_SLICE = 100;

/** The last use of a key, as far as it is not written yet. */
export interface KeyUse {
  readonly ref: number;
  at: number;
  /** Null: not told with these uses, so what is stored stays. */
  ip: string | null;
  ua: string | null;
  /** Whether it is still waiting for its round: only then it may be added to. */
  waiting: boolean;
  /** Set when the key's row is gone: nothing is to be written for it. */
  gone: boolean;
}

/** Whatever remembers the use of its key, to be found without a look-up. */
export interface UsedKey {
  readonly ref: number;
  use: KeyUse | null;
}

/** What a caller tells of the client that showed the key. */
export interface ClientMeta {
  readonly ip: string | null;
  readonly userAgent: string | null;
}

const NOTHING_TOLD: ClientMeta = { ip: null, userAgent: null };

/**
 * When keys were last used. A use costs no write: it is noted in memory, and the rows follow in the background,
 * in slices sorted by row, so that each page is written once.
 */
export class KeyUses {
  private readonly store: KeyStore;
  private readonly writer: Writer;
  private readonly log: Logger;
  private due = new Map<number, KeyUse>();
  private inRound = new Map<number, KeyUse>();
  private running: Promise<void> | null = null;
  private cancelTimer: Cancel | null = null;
  private finishing = false;

  constructor(deps: { store: KeyStore; writer: Writer; log: Logger }) {
    this.store = deps.store;
    this.writer = deps.writer;
    this.log = deps.log;
  }

  /** Notes a use of a key. */
  note(key: UsedKey, at: number, client: ClientMeta = NOTHING_TOLD): void {
    let use = key.use;
    if (use === null || !use.waiting) {
      use = this.useOf(key.ref, at);
      key.use = use;
      this.arm();
    }
    use.at = at;
    if (client.ip !== null) use.ip = client.ip;
    if (client.userAgent !== null) use.ua = client.userAgent;
  }

  /** The last use of a key, written or not; null when it was never used. */
  lastOf(ref: number): KeyUseRow | null {
    const stored = this.store.use(ref);
    const { ip = null, ua = null } = stored ?? {};
    const newer = [this.inRound.get(ref), this.due.get(ref)].filter((use) => use !== undefined);
    return newer.reduce<KeyUseRow | null>(
      (known, use) => ({ at: use.at, ip: use.ip ?? known?.ip ?? ip, ua: use.ua ?? known?.ua ?? ua }),
      stored,
    );
  }

  /** Forgets a key whose row is going. */
  forget(ref: number): void {
    for (const use of [this.due.get(ref), this.inRound.get(ref)]) {
      if (use !== undefined) use.gone = true;
    }
  }

  /** Writes everything down, as far as the disk lets it. For the end of the process. */
  async finish(): Promise<void> {
    this.finishing = true;
    this.cancelTimer?.();
    await this.running;
    if (this.due.size > 0) await this.runOrWarn();
  }

  private useOf(ref: number, at: number): KeyUse {
    const known = this.due.get(ref);
    if (known !== undefined) return known;
    const use: KeyUse = { ref, at, ip: null, ua: null, waiting: true, gone: false };
    this.due.set(ref, use);
    return use;
  }

  private arm(): void {
    if (this.running !== null || this.finishing) return;
    if (this.due.size >= USES_WAITING_MAX) {
      this.begin();
      return;
    }
    this.cancelTimer ??= realTimeout(WRITE_AFTER_MS, () => {
      if (this.running === null) this.begin();
    });
  }

  private begin(): void {
    this.cancelTimer?.();
    this.cancelTimer = null;
    this.running = this.runOrWarn().finally(() => {
      this.running = null;
      if (this.due.size > 0) this.arm();
    });
  }

  private runOrWarn(): Promise<void> {
    return this.run().catch((error) =>
      this.log.warn("uses of keys could not be written yet", { error: errorText(error) }),
    );
  }

  private async run(): Promise<void> {
    this.inRound = this.due;
    this.due = new Map();
    const sorted = [...this.inRound.values()].sort((a, b) => a.ref - b.ref);
    for (const use of sorted) use.waiting = false;
    let written = 0;
    try {
      for (; written < sorted.length; written += WRITE_SLICE) {
        const slice = sorted.slice(written, written + WRITE_SLICE);
        await this.writer.submit((tx) => {
          for (const use of slice) {
            if (!use.gone) this.store.saveUse(tx, use.ref, use.at, use.ip, use.ua);
          }
        });
      }
    } catch (error) {
      this.carryOver(sorted.slice(written));
      throw error;
    } finally {
      this.inRound = new Map();
    }
  }

  /** Uses that could not be written wait for the next round, under what has been noted since. */
  private carryOver(uses: readonly KeyUse[]): void {
    for (const use of uses) {
      const newer = this.due.get(use.ref);
      if (newer === undefined) {
        use.waiting = true;
        this.due.set(use.ref, use);
      } else {
        newer.ip ??= use.ip;
        newer.ua ??= use.ua;
      }
    }
  }
}
