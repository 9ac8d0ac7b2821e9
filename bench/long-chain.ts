import { join } from "node:path";
import { endsWithUs } from "../test/harness/processes/children.ts";
import type { Command } from "../test/harness/processes/server-process.ts";
import type { Finding } from "./benchmark.ts";
import { median } from "./results.ts";
import { logRequest } from "./rows.ts";
import type { Stage } from "./stage.ts";
import { runWrk } from "./wrk.ts";

const RECEIPTS = 1_000_000;
const ROUNDS = 5;
const SECONDS = 3;
const CONNECTIONS = 32;
/** Minimum rate on a long chain, relative to an empty one. */
const RATIO_MIN = 0.85;
const VERIFIED_PER_SECOND_MIN = 5_000;

/** Name that selects this measurement. */
export const LONG_CHAIN = "chain of 1,000,000 receipts";

/** A chain of a million receipts: its write rate relative to an empty chain's, and the rate of its verification. */
export async function measureLongChain(
  stage: Stage,
  command: Command,
  say: (text: string) => void,
): Promise<Finding[]> {
  say("making 1,000,000 receipts");
  const data = stage.subfolder("chain");
  const lines = join(stage.folder, "chain.jsonl");
  const { key, operatorKey } = await stage.fillReceipts(data, RECEIPTS, lines);
  const server = await stage.startNinefold(data);
  const rates: { long: number[]; empty: number[] } = { long: [], empty: [] };
  try {
    const other = { email: "empty@example.com", tier: "scale" };
    const made = await stage.post("/v1/admin/accounts", other, operatorKey, server.url);
    const emptyKey = String(made["api_key"]);
    await stage.post("/v1/witness/sys/init", {}, emptyKey, server.url);
    for (let round = 0; round <= ROUNDS; round += 1) {
      say(round === 0 ? "warming up" : `round ${round} of ${ROUNDS}`);
      for (const [rate, of] of [
        [rates.long, key],
        [rates.empty, emptyKey],
      ] as const) {
        const run = { url: server.url, connections: CONNECTIONS, seconds: SECONDS, folder: stage.folder };
        const { perSecond } = await runWrk({ ...run, request: logRequest(of) });
        if (round > 0) rate.push(perSecond);
      }
    }
  } finally {
    await server.stop("SIGKILL");
  }
  say("verifying it");
  const verified = await verifyRate(command, lines);
  const ratio = median(rates.long) / median(rates.empty);
  return [
    {
      what: `${LONG_CHAIN}: log rate to that of an empty chain`,
      measured: `× ${ratio.toFixed(2)}`,
      required: `≥ ${RATIO_MIN}`,
      ok: ratio >= RATIO_MIN,
    },
    {
      what: `${LONG_CHAIN}: ninefold verify`,
      measured: `${verified.toFixed(0)} per second`,
      required: `≥ ${VERIFIED_PER_SECOND_MIN}`,
      ok: verified >= VERIFIED_PER_SECOND_MIN,
    },
  ];
}

async function verifyRate(command: Command, lines: string): Promise<number> {
  const startedAt = performance.now();
  const child = Bun.spawn([...command, "verify", lines], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
  });
  endsWithUs(child);
  if ((await child.exited) !== 0) throw new Error("the chain was found not to be valid");
  return RECEIPTS / ((performance.now() - startedAt) / 1_000);
}
