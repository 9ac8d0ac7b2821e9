import { PartedRemoval } from "../../../kernel/scheduler/parted-removal.ts";
import type { Scheduler } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Writer } from "../../../kernel/storage/writer.ts";
import type { VoteStore } from "../votes/store.ts";
import type { ProbeRow, ProbeStore } from "./store.ts";

/** Monitors that one unit of work takes from a removed probe: a few milliseconds. */
export const MONITORS_PER_PART = 200;
/** Ids of results that one unit of work removes: a few milliseconds. */
const RESULTS_PER_PART = 2_000;

interface Deps {
  readonly scheduler: Scheduler;
  readonly writer: Writer;
  readonly probes: ProbeStore;
  readonly votes: VoteStore;
}

/** Removes probes: the first part in the unit of work that asks for it, and what is left of large ones in further ones. */
export class ProbeRemoval {
  private readonly parts: PartedRemoval;

  constructor(private readonly deps: Deps) {
    const { probes, votes } = deps;
    this.parts = new PartedRemoval(deps, {
      job: "monitors.probe-removal",
      removePart(tx, key) {
        const [ref = "", name = ""] = key.split(" ");
        const probeRef = Number(ref);
        votes.removeFromSettings(tx, { name, probeRef, now: tx.now, rowsMax: MONITORS_PER_PART });
        const removed = votes.removeOfProbe(tx, { probeRef, rowsMax: MONITORS_PER_PART });
        if (removed === MONITORS_PER_PART) return true;
        return probes.forgetResults(tx, { probeRef, rowsMax: RESULTS_PER_PART }) === RESULTS_PER_PART;
      },
    });
  }

  /** Removes a probe: its votes no longer count, and it leaves the `probes` of its monitors. */
  remove(tx: Tx, { ref, name }: Pick<ProbeRow, "ref" | "name">): void {
    // Its name, too, which the settings of its monitors have.
    this.parts.remove(tx, `${ref} ${name}`);
    this.deps.probes.remove(tx, ref);
  }
}
