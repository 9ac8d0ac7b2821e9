import { join } from "node:path";
import { buildShim, missingForShim } from "../test/harness/powercut/build-shim.ts";
import type { Finding, WrkRequest } from "./benchmark.ts";
import { median } from "./results.ts";
import { deductRequest } from "./rows.ts";
import type { Stage } from "./stage.ts";
import { runWrk, type WrkResult } from "./wrk.ts";

const CONNECTIONS = 32;
const METERS = 1_000;
/** Reads change nothing, so they wait for no sync. */
const READ_P99_MS_MAX = 2;
/** Also while others write: the disk is synced on a thread, and they wait only for changes of their own account. */
const BESIDE_WRITERS = 4;
const BESIDE_P99_MS_MAX = 3;
const BESIDE_PART_MIN = 0.9;
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
  const { key, operatorKey } = await stage.fill(data, METERS);
  const shim = { LD_PRELOAD: buildShim(stage.folder), POWERCUT_SYNC_US: `${fsyncMs * 1_000}` };
  const server = await stage.startNinefold(data, [], shim);
  try {
    const account = { email: "reader@example.com", tier: "scale" };
    const reader = await stage.post("/v1/admin/accounts", account, operatorKey, server.url);
    const readerKey = String(reader["api_key"]);
    await stage.post("/v1/gate", { flag_key: "slow", enabled: true }, readerKey, server.url);
    const read: WrkRequest = {
      method: "GET",
      path: "/v1/gate/slow",
      headers: { Authorization: `Bearer ${readerKey}` },
    };
    const write: WrkRequest = { ...deductRequest({ key }), below: METERS };
    const results: Record<Measured, WrkResult[]> = { reads: [], beside: [], writes: [] };
    const run = { url: server.url, connections: CONNECTIONS, seconds, folder: stage.folder };
    const others = { ...run, connections: BESIDE_WRITERS, folder: stage.subfolder("slow-disk-writers") };
    for (let round = 0; round < rounds; round += 1) {
      results.reads.push(await runWrk({ ...run, request: read }));
      const writing = runWrk({ ...others, request: write });
      results.beside.push(await runWrk({ ...run, request: read }));
      await writing;
      results.writes.push(await runWrk({ ...run, request: write }));
    }
    return findings(fsyncMs, results);
  } finally {
    await server.stop("SIGKILL");
  }
}

/** Reads alone, reads beside writers of another account, and writes alone. */
type Measured = "reads" | "beside" | "writes";

function findings(fsyncMs: number, results: Readonly<Record<Measured, WrkResult[]>>): Finding[] {
  const p99Of = (what: Measured): number => median(results[what].map(({ p99Ms }) => p99Ms ?? 0));
  const rateOf = (what: Measured): number => median(results[what].map(({ perSecond }) => perSecond));
  const part = rateOf("beside") / rateOf("reads");
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
      what: `${under}: flag evaluation beside ${BESIDE_WRITERS} writers of another account, p99`,
      measured: `${p99Of("beside").toFixed(2)} ms, ${part.toFixed(2)} of the rate alone`,
      required: `≤ ${BESIDE_P99_MS_MAX} ms, ≥ ${BESIDE_PART_MIN}`,
      ok: p99Of("beside") <= BESIDE_P99_MS_MAX && part >= BESIDE_PART_MIN && failed === 0,
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
