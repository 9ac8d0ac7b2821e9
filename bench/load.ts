import { join } from "node:path";
import { endsWithUs } from "../test/harness/processes/children.ts";
import { plainEnvironment } from "../test/harness/processes/server-process.ts";
import type { Measurement } from "./benchmark.ts";

/** Clients of a load script. */
const CLIENTS = 32;

/** The payload that a load script schedules, as Ninefold's own row does: a delivery in an hour. */
export const DELAY_SECONDS = 3_600;
/** See {@link DELAY_SECONDS}. */
export const DATA = {
  url: "https://hooks.example.com/in",
  method: "POST",
  payload: { id: "evt_1", amount: 4200 },
};

/** Runs a load script of this folder as a separate process: `bun SCRIPT PLACE SECONDS`. */
export async function runLoad(script: string, place: string, seconds: number): Promise<Measurement> {
  const command = [process.execPath, "--no-env-file", join(import.meta.dir, script), place, `${seconds}`];
  const child = Bun.spawn(command, {
    env: plainEnvironment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  endsWithUs(child);
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${script} failed (${code}): ${out}${error}`);
  return JSON.parse(out) as Measurement;
}

/** Used by load scripts: repeats `work` with {@link CLIENTS} concurrent clients, and prints the measurement as JSON. */
export async function load(seconds: number, work: () => Promise<unknown>): Promise<void> {
  await work();
  const latencies: number[] = [];
  const begun = performance.now();
  const end = begun + seconds * 1_000;
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      const sent = performance.now();
      await work();
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const elapsed = (performance.now() - begun) / 1_000;
  latencies.sort((a, b) => a - b);
  const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  console.log(JSON.stringify({ perSecond: latencies.length / elapsed, p50Ms: at(0.5), p99Ms: at(0.99) }));
}
