import { errorText } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Database } from "../storage/database.ts";
import { CLOCK_TRUSTED } from "../storage/examine.ts";
import { NOBODY, type Tx } from "../storage/tx.ts";
import type { Writer } from "../storage/writer.ts";
import { type Cancel, type Clock, realTimeout } from "../time/clock.ts";
import { isoTime } from "../time/date-time.ts";
import { DAY_MS, HOUR_MS } from "../time/units.ts";

/** A clock that has jumped by more is not trusted: machines without a battery start with one that is wrong by years. */
export const JUMP_MS_MAX = DAY_MS;
/** How long a clock must run steadily after a jump until it is trusted. NTP corrects a wrong clock within minutes. */
export const STEADY_MS = HOUR_MS;
/** Real time between two notes of the time: a crash forgets no more. */
const NOTE_MS = 60_000;

/** The setting with the time that was seen last; the same as {@link CLOCK_TRUSTED} unless the clock has jumped. */
const CLOCK_SEEN = "clock_seen";

/**
 * Knows whether the wall clock can be trusted. After a jump of more than a day, while the server runs or since its last
 * stop, it is not until it has run steadily for an hour. What depends on it and cannot be undone waits: nothing expired is
 * deleted. A jump that is undone meanwhile ends the wait.
 */
export class ClockTrust {
  private readonly note;
  /** The wall clock when it was trusted last, and the monotonic clock at that time. */
  private trusted: { readonly wall: number; readonly monotonic: number };
  /** The jump since then, and the monotonic time at which it was seen; null: there was none. */
  private jump: { readonly byMs: number; readonly at: number } | null = null;
  private readonly seenBefore: number;
  private cancelNote: Cancel | null = null;
  private stopListening: Cancel | null = null;

  constructor(
    db: Database,
    private readonly writer: Writer,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {
    const setting = (name: string) => db.number(`SELECT value AS n FROM settings WHERE name = '${name}'`)();
    this.note = db.change<[name: string, value: number]>(
      "INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)",
    );
    this.seenBefore = setting(CLOCK_SEEN);
    // In a folder without a note, nothing is known of an earlier time.
    this.trusted = { wall: setting(CLOCK_TRUSTED) || clock.now(), monotonic: clock.monotonic() };
  }

  /** Milliseconds that the clock shows less than it did at the last stop; 0 where it shows more. */
  get behindLastStop(): number {
    return Math.max(0, this.seenBefore - this.clock.now());
  }

  /** Whether what has expired may be deleted. Looks now. */
  get isTrusted(): boolean {
    return this.look();
  }

  private look(): boolean {
    const [wall, monotonic] = [this.clock.now(), this.clock.monotonic()];
    const byMs = wall - this.trusted.wall - (monotonic - this.trusted.monotonic);
    const before = this.jump;
    if (Math.abs(byMs) > JUMP_MS_MAX) {
      const hasJumped = before === null || Math.abs(byMs - before.byMs) > JUMP_MS_MAX;
      if (hasJumped) this.jumped({ byMs, at: monotonic });
      if (hasJumped || monotonic - before.at < STEADY_MS) return false;
    }
    this.jump = null;
    this.trusted = { wall, monotonic };
    if (before !== null)
      this.log.info("the clock is trusted again: expired data is deleted", { time: isoTime(wall) });
    return true;
  }

  /** Notes the time, and continues to do so regularly. A server starts on a full disk, too. */
  async start(): Promise<void> {
    // Noted at once: after a crash, what was stored with the new time would seem to be from the future, or long past.
    this.stopListening = this.clock.onWallSet(() => {
      this.look();
      this.clock.track(this.tryNote());
    });
    await this.tryNote();
    this.noteLater();
  }

  /** Notes the time once more. */
  async stop(): Promise<void> {
    this.stopListening?.();
    this.cancelNote?.();
    await this.tryNote();
  }

  private noteLater(): void {
    this.cancelNote = realTimeout(NOTE_MS, () => {
      this.noteLater();
      void this.tryNote();
    });
  }

  private async tryNote(): Promise<void> {
    try {
      await this.writer.submit((tx) => this.noteNow(tx));
    } catch (error) {
      this.log.debug("the time could not be noted", { error: errorText(error) });
    }
  }

  private noteNow(tx: Tx): void {
    tx.affects = NOBODY;
    const { isTrusted } = this;
    this.note(tx, CLOCK_SEEN, tx.now);
    this.note(tx, CLOCK_TRUSTED, isTrusted ? tx.now : this.trusted.wall);
  }

  private jumped(jump: { readonly byMs: number; readonly at: number }): void {
    this.jump = jump;
    this.log.warn(
      "the clock has jumped by more than a day: nothing expired is deleted until it has run steadily for an hour",
      {
        by_ms: Math.round(jump.byMs),
        time: isoTime(this.clock.now()),
      },
    );
  }
}
