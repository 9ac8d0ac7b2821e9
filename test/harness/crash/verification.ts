import { checkIntegrity } from "./ledger-checks.ts";
import { databaseOf } from "./meters.ts";
import type { Tally, Target, Workload } from "./workload.ts";

/** Compares every workload's record with a server, and checks its file. Returns the differences. */
export async function verifyWorkloads(workloads: readonly Workload[], target: Target): Promise<string[]> {
  const problems: string[] = [];
  for (const workload of workloads) {
    try {
      problems.push(...(await workload.verify(target)));
    } catch (error) {
      problems.push(`${workload.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return [...problems, ...checkIntegrity(databaseOf(target))];
}

/** Counts of the workloads since the last call. */
export function tallyOf(workloads: readonly Workload[]): Tally {
  const sum = { acknowledged: 0, inDoubt: 0, happened: 0 };
  for (const workload of workloads) {
    const tally = workload.takeTally();
    sum.acknowledged += tally.acknowledged;
    sum.inDoubt += tally.inDoubt;
    sum.happened += tally.happened;
  }
  return sum;
}
