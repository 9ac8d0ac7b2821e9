import type { LogFields, Logger } from "../log.ts";
import type { Clock } from "../time/clock.ts";

/** How long one kind of a warning is silent once it has been written: strangers may cause it as often as they like. */
export const WARNING_PAUSE_MS = 1_000;

/** A warning that may have to be given for every request, and is written seldom. */
export class ThrottledWarning {
  private readonly kinds = new Map<string, { writtenAt: number; unwritten: number }>();

  constructor(
    private readonly log: Logger,
    private readonly message: string,
    private readonly clock: Clock,
  ) {}

  /** Writes it, unless one of this kind (there are few) has just been written: then that is counted. */
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
