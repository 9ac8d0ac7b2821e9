import { join } from "node:path";
import { buildShim, missingForShim } from "../powercuts/build-shim.ts";
import type { Finding, WrkRequest } from "./benchmark.ts";
import { median } from "./results.ts";
import { deductRequest } from "./rows.ts";
import type { Stage } from "./stage.ts";
import { runWrk, type WrkResult } from "./wrk.ts";

const CONNECTIONS = 32;
const METERS = 1_000;
/** Reads change nothing, so they wait for no fsync. */
const READ_P99_MS_MAX = 2;
/** A change that arrives during an fsync waits for its end, for the next one, and for the batch to gather. */
const WRITE_FSYNCS_MAX = 2.5;
/** Minimum number of changes per commit, out of all connections, and so of changes per fsync. */
const WRITES_PER_FSYNC = 20;

/** Name that selects this measurement. */
export const SLOW_DISK = "slow disk: reads and writes";

/** Settings of the measurement. */
export interface SlowDisk {
  /** Duration of each fsync. */
  readonly fsyncMs: number;
  readonly rounds: number;
  readonly seconds: number;
}

/** Reads and writes of a server with slow fsyncs. Nothing is really synced: only the duration is simulated. */
export async function measureSlowDisk(
  stage: Stage,
  say: (text: string) => void,
  { fsyncMs, rounds, seconds }: SlowDisk,
): Promise<Finding[]> {
  const missing = missingForShim();
  if (missing !== null) return [{ what: SLOW_DISK, measured: missing, required: "-", ok: null }];
  say(`${SLOW_DISK}, fsync of ${fsyncMs} ms`);
  const data = join(stage.subfolder("slow-disk"), "data");
  const { key } = await stage.fill(data, METERS);
  const shim = { LD_PRELOAD: buildShim(stage.folder), POWERCUT_SYNC_US: `${fsyncMs * 1_000}` };
  const server = await stage.startNinefold(data, [], shim);
  try {
    await stage.post("/v1/gate", { flag_key: "slow", enabled: true }, key, server.url);
    const headers = { Authorization: `Bearer ${key}` };
    const requests: Readonly<Record<"reads" | "writes", WrkRequest>> = {
      reads: { method: "GET", path: "/v1/gate/slow", headers },
      writes: { ...deductRequest({ key }), below: METERS },
    };
    const results: Record<"reads" | "writes", WrkResult[]> = { reads: [], writes: [] };
    const run = { url: server.url, connections: CONNECTIONS, seconds, folder: stage.folder };
    for (let round = 0; round < rounds; round += 1)
      for (const what of ["reads", "writes"] as const)
        results[what].push(await runWrk({ ...run, request: requests[what] }));
    return findings(fsyncMs, results);
  } finally {
    await server.stop("SIGKILL");
  }
}

function findings(fsyncMs: number, results: Readonly<Record<"reads" | "writes", WrkResult[]>>): Finding[] {
  const p99Of = (what: "reads" | "writes"): number => median(results[what].map(({ p99Ms }) => p99Ms ?? 0));
  const rateOf = (what: "reads" | "writes"): number =>
    median(results[what].map(({ perSecond }) => perSecond));
  const failed = Object.values(results)
    .flat()
    .reduce((sum, { otherStatuses, broken }) => sum + otherStatuses + broken, 0);
  const under = `fsync of ${fsyncMs} ms, ${CONNECTIONS} connections`;
  const writesMin = (WRITES_PER_FSYNC * 1_000) / fsyncMs;
  return [
    {
      what: `${under}: flag evaluation, p99`,
      measured: `${p99Of("reads").toFixed(2)} ms, ${rateOf("reads").toFixed(0)}/s`,
      required: `≤ ${READ_P99_MS_MAX} ms`,
      ok: p99Of("reads") <= READ_P99_MS_MAX && failed === 0,
    },
    {
      what: `${under}: deducts`,
      measured: `${rateOf("writes").toFixed(0)}/s`,
      required: `≥ ${writesMin.toFixed(0)}/s`,
      ok: rateOf("writes") >= writesMin && failed === 0,
    },
    {
      what: `${under}: deducts, p99`,
      measured: `${p99Of("writes").toFixed(1)} ms`,
      required: `≤ ${(WRITE_FSYNCS_MAX * fsyncMs).toFixed(0)} ms`,
      ok: p99Of("writes") <= WRITE_FSYNCS_MAX * fsyncMs,
    },
  ];
}
