import type { Scheduler } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Writer } from "../../../kernel/storage/writer.ts";
import type { VoteStore } from "../votes/store.ts";
import type { ProbeRow, ProbeStore } from "./store.ts";

/** Monitors that one unit of work takes from a removed probe: a few milliseconds. */
export const MONITORS_PER_PART = 200;
/** Ids of results that one unit of work removes: a few milliseconds. */
const RESULTS_PER_PART = 2_000;
/** The job that removes what is left of a probe; its key is the reference and the name of the probe. */
const REMOVAL_JOB = "monitors.probe-removal";
const CONCURRENCY = 1;

interface Deps {
  readonly scheduler: Scheduler;
  readonly writer: Writer;
  readonly probes: ProbeStore;
  readonly votes: VoteStore;
}

type RemovedProbe = Pick<ProbeRow, "ref" | "name">;

/** Removes probes: the first part in the unit of work that asks for it, and what is left of large ones in further ones. */
export class ProbeRemoval {
  constructor(private readonly deps: Deps) {
    deps.scheduler.register(REMOVAL_JOB, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => {
        const [ref = "", name = ""] = key.split(" ");
        const probe = { ref: Number(ref), name };
        while (await deps.writer.submit((tx) => this.removePart(tx, probe)));
        return {};
      },
    });
  }

  /** Removes a probe: its votes no longer count, and it leaves the `probes` of its monitors. */
  remove(tx: Tx, probe: RemovedProbe): void {
    const isLeft = this.removePart(tx, probe);
    this.deps.probes.remove(tx, probe.ref);
    if (isLeft) this.deps.scheduler.enqueue(tx, REMOVAL_JOB, `${probe.ref} ${probe.name}`, tx.now, null);
  }

  /** Returns whether something may be left. */
  private removePart(tx: Tx, { ref: probeRef, name }: RemovedProbe): boolean {
    const { probes, votes } = this.deps;
    votes.removeFromSettings(tx, { name, probeRef, now: tx.now, rowsMax: MONITORS_PER_PART });
    if (votes.removeOfProbe(tx, { probeRef, rowsMax: MONITORS_PER_PART }) === MONITORS_PER_PART) return true;
    return probes.forgetResults(tx, { probeRef, rowsMax: RESULTS_PER_PART }) === RESULTS_PER_PART;
  }
}
