import type { LogFields, Logger } from "./log.ts";
import type { Clock } from "./time/clock.ts";

/** Minimum time between two warnings of a kind: strangers can cause them at any rate. */
export const WARNING_PAUSE_MS = 1_000;

/** A warning that every request may cause, and that is logged at most once per {@link WARNING_PAUSE_MS} and kind. */
export class ThrottledWarning {
  private readonly kinds = new Map<string, { writtenAt: number; unwritten: number }>();

  constructor(
    private readonly log: Logger,
    private readonly message: string,
    private readonly clock: Clock,
  ) {}

  /** Logs the warning, or counts it if one of this kind (there are few) was logged just before. */
  note(kind: string, fields: LogFields): void {
    const now = this.clock.monotonic();
    const known = this.kinds.get(kind);
    if (known !== undefined && now - known.writtenAt < WARNING_PAUSE_MS) {
      known.unwritten += 1;
      return;
    }
    const unwritten = known?.unwritten ?? 0;
    this.kinds.set(kind, { writtenAt: now, unwritten: 0 });
    this.log.warn(this.message, { ...fields, ...(unwritten === 0 ? {} : { unwritten }) });
  }
}
