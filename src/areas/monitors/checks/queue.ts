import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { firstCheckAt, hostOf } from "../domain.ts";
import type { AreaDeps } from "../ports.ts";
import { TestClockPace } from "./test-clock-pace.ts";

/** The job of a monitor's next scheduled check; its key is the monitor's reference. */
export const CHECK_JOB = "monitors.check";

/** When each monitor is checked next. */
export class CheckQueue {
  readonly pace: TestClockPace;

  constructor(private readonly deps: Pick<AreaDeps, "clock" | "scheduler">) {
    this.pace = new TestClockPace(deps.clock);
  }

  /** Starts or restarts the checks of a monitor. The first one runs within 5 seconds. */
  begin(tx: Tx, accountRef: number, ref: number, url: string): void {
    this.checkAt(tx, { accountRef, ref, url }, firstCheckAt(ref, tx.now));
  }

  /** Reschedules the next check of an active monitor. */
  checkAt(
    tx: Tx,
    { accountRef, ref, url }: { accountRef: number; ref: number; url: string },
    at: number,
  ): void {
    this.pace.forget(ref);
    this.deps.scheduler.enqueue(tx, CHECK_JOB, String(ref), at, null, laneName(accountRef, hostOf(url)));
  }

  /** Stops the checks of a monitor. */
  end(tx: Tx, ref: number): void {
    this.pace.forget(ref);
    this.deps.scheduler.cancel(tx, CHECK_JOB, String(ref));
  }
}
