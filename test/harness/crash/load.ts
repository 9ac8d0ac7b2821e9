import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Launch } from "../processes/server-process.ts";
import type { Random } from "./random.ts";
import type { Target, Workload } from "./workload.ts";

/** The load must stay below every limit: only crashes are tested here. */
const CONFIG = `
[tiers.scale]
requests_per_minute = 1000000000
catch_per_minute = 1000000000
`;

/** Options of the server under load. Its configuration is written into `folder`. */
export function launchUnderLoad(command: Command, folder: string, data: string): Launch {
  const config = join(folder, "ninefold.toml");
  writeFileSync(config, CONFIG);
  return {
    command,
    args: [
      ...["--port", "0", "--data", data, "--config", config, "--log-level", "error"],
      // The address where workloads receive deliveries.
      ...["--allow-private-targets", "127.0.0.1"],
    ],
  };
}

/** A load. */
export interface Load {
  readonly workloads: readonly Workload[];
  readonly target: Target;
  readonly random: Random;
  /** Concurrent requests. */
  readonly connections: number;
  /** Called before each step. */
  readonly goesOn: () => boolean;
}

/** Runs steps of the workloads according to their weights until `isOver`. */
export async function runLoad({ workloads, target, random, connections, goesOn }: Load): Promise<void> {
  const lottery = workloads.flatMap((workload) => Array<Workload>(workload.weight).fill(workload));
  const act = async (): Promise<void> => {
    while (goesOn()) await random.pick(lottery).act(target, random);
  };
  await Promise.all(Array.from({ length: connections }, act));
}
