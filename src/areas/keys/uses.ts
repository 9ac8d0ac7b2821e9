import type { Logger } from "../../kernel/log.ts";
import { Rounds, type WrittenLater } from "../../kernel/rounds.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { KeyStore, KeyUseRow } from "./store.ts";

/** Keys used since the last round after which a round begins: bounds what is held in memory for it. */
export const USES_WAITING_MAX = 50_000;
/** Longest wait for a round: what a crash can lose of the last uses. */
const WRITE_AFTER_MS = 5_000;
/** Rows written in one unit of work: under a millisecond. */
const ROWS_PER_UNIT = 100;

/** The last use of a key, as far as it is not written yet. */
export interface KeyUse extends WrittenLater {
  at: number;
  /** Null when the caller has not said it: what is stored stays. */
  ip: string | null;
  ua: string | null;
  /** Set when the key's row is gone: nothing is written for it. */
  gone: boolean;
}

/** What remembers the use of its key, to be found without a look-up. */
export interface UsedKey {
  readonly ref: number;
  use: KeyUse | null;
}

/** What a caller says of the client that showed the key. */
export interface ClientMeta {
  readonly ip: string | null;
  readonly userAgent: string | null;
}

const NOTHING_SAID: ClientMeta = { ip: null, userAgent: null };

/** When keys were last used. A use costs no write: it is noted in memory, and the rows follow in {@link Rounds}. */
export class KeyUses {
  private readonly store: KeyStore;
  private readonly rounds: Rounds<KeyUse>;

  constructor({ store, writer, log }: { store: KeyStore; writer: Writer; log: Logger }) {
    this.store = store;
    this.rounds = new Rounds({
      writer,
      log,
      warning: "uses of keys could not be written yet",
      waitMs: WRITE_AFTER_MS,
      marksMax: USES_WAITING_MAX,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, { ref, at, ip, ua, gone }) => {
        if (!gone) store.saveUse(tx, ref, at, ip, ua);
      },
    });
  }

  /** Notes a use of a key. */
  note(key: UsedKey, at: number, client: ClientMeta = NOTHING_SAID): void {
    if (key.use === null || !this.rounds.isDue(key.use)) key.use = this.mark(key.ref);
    const { use } = key;
    use.at = at;
    if (client.ip !== null) use.ip = client.ip;
    if (client.userAgent !== null) use.ua = client.userAgent;
  }

  /** The last use of a key, written or not; null when it was never used. */
  lastOf(ref: number): KeyUseRow | null {
    const stored = this.store.use(ref);
    const use = this.rounds.held(ref);
    if (use === undefined) return stored;
    return { at: use.at, ip: use.ip ?? stored?.ip ?? null, ua: use.ua ?? stored?.ua ?? null };
  }

  /** Forgets a key whose row is going. */
  forget(ref: number): void {
    const use = this.rounds.held(ref);
    if (use !== undefined) use.gone = true;
  }

  /** Writes everything down, as far as the disk lets it. For the end of the process. */
  finish(): Promise<void> {
    return this.rounds.finish();
  }

  /** Once per key and round, so that a round begins after as many keys, not uses. */
  private mark(ref: number): KeyUse {
    const use = this.rounds.held(ref) ?? { ref, at: 0, ip: null, ua: null, gone: false, dueInRound: 0 };
    this.rounds.mark(use);
    return use;
  }
}
