import { statSync } from "node:fs";
import { join } from "node:path";
import { endsWithUs } from "../test/harness/processes/children.ts";
import type { Command } from "../test/harness/processes/server-process.ts";
import type { Finding } from "./benchmark.ts";
import { median } from "./results.ts";
import type { Stage } from "./stage.ts";
import { SteadyLoad, type SteadyResult } from "./steady-load.ts";

const BYTES = 1_000_000_000;
const METERS = 100_000;
const PER_SECOND = 1_000;
const ROUNDS = 3;
const WARM_UP_MS = 3_000;
/** Length of a measurement without a backup. With one, it lasts as long as the backup. */
const WITHOUT_MS = 10_000;
const RATIO_MAX = 2;

/** Name that selects this measurement. */
export const BACKUP = "backup of 1 GB under 1,000 writes/s";

/** Backs up a large database during a steady load of writes, and measures how much slower the slowest writes get. */
export async function measureBackup(
  stage: Stage,
  command: Command,
  say: (text: string) => void,
): Promise<Finding[]> {
  say("making a database of 1 GB");
  const data = stage.subfolder("large");
  const { key } = await stage.fillLarge(data, METERS, BYTES);
  const file = join(stage.folder, "backup.db");
  const server = await stage.startNinefold(data);
  const load = await SteadyLoad.open(server.url, key);
  const ratios: number[] = [];
  const p99: { without: number[]; during: number[] } = { without: [], during: [] };
  const seconds: number[] = [];
  let verified = true;
  let walBytes = 0;
  try {
    await load.run(PER_SECOND, METERS, (elapsed) => elapsed > WARM_UP_MS);
    for (let round = 1; round <= ROUNDS; round += 1) {
      say(`${BACKUP}, round ${round} of ${ROUNDS}`);
      const without = whole(await load.run(PER_SECOND, METERS, (elapsed) => elapsed > WITHOUT_MS));
      const begun = performance.now();
      // From the second round on the file exists and is replaced.
      const args = ["backup", file, "--data", data, "--force", "--verify"];
      const child = Bun.spawn([...command, ...args], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
      endsWithUs(child);
      const during = whole(await load.run(PER_SECOND, METERS, () => child.exitCode !== null));
      verified &&= child.exitCode === 0;
      seconds.push((performance.now() - begun) / 1_000);
      walBytes = Math.max(walBytes, statSync(join(data, "ninefold.db-wal")).size);
      p99.without.push(without.p99Ms);
      p99.during.push(during.p99Ms);
      ratios.push(during.p99Ms / without.p99Ms);
      const latencies = [without, during].map(
        (one) => `p99 ${one.p99Ms.toFixed(1)} max ${one.maxMs.toFixed(0)} ms`,
      );
      say(`without: ${latencies[0]}; during: ${latencies[1]}`);
    }
  } finally {
    load.close();
    await server.stop("SIGKILL");
  }
  const ratio = median(ratios);
  return [
    {
      what: `${BACKUP}: p99 of the writes meanwhile, to that without`,
      measured: `× ${ratio.toFixed(2)} (${median(p99.during).toFixed(1)} to ${median(p99.without).toFixed(1)} ms)`,
      required: `≤ ${RATIO_MAX}`,
      ok: ratio <= RATIO_MAX,
    },
    {
      what: `${BACKUP}: the copy verifies`,
      measured: `${verified ? "yes" : "no"}, in ${median(seconds).toFixed(0)} s, log of ${(walBytes / 1_000_000).toFixed(0)} MB`,
      required: "yes",
      ok: verified,
    },
  ];
}

/** @throws Error when a write was not acknowledged. */
function whole(result: SteadyResult): SteadyResult {
  if (result.failed > 0) throw new Error(`${result.failed} writes failed`);
  return result;
}
