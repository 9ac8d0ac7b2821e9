import type { Unit } from "./format.ts";
import { createProgress, type Progress } from "./progress.ts";

/** Shows how far work has come that has several parts, one after the other. On standard error. */
export class ShownParts {
  private what = "";
  private progress: Progress | null = null;

  /** Tells how much of a part is done; another name begins another part. */
  show(what: string, unit: Unit, done: number, total: number | null): void {
    if (what !== this.what) {
      this.finish();
      this.what = what;
      this.progress = createProgress({ what, unit, total, out: process.stderr });
    }
    this.progress?.advance(done);
  }

  /** Takes the line away. */
  finish(): void {
    this.progress?.finish();
    this.progress = null;
    this.what = "";
  }
}
