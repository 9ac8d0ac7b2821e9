import { missingFor, startEtcd } from "../test/harness/failover/engines.ts";
import { Cleanup } from "../test/harness/processes/cleanup.ts";
import type { ServerProcess } from "../test/harness/processes/server-process.ts";
import { S3Server } from "../test/support/s3-server.ts";
import type { Finding } from "./benchmark.ts";
import { median } from "./results.ts";
import { deductRequest } from "./rows.ts";
import type { Stage } from "./stage.ts";
import { runWrk } from "./wrk.ts";

/** The name under which the row of the commit log is chosen. */
export const COMMIT_LOG = "commit log: deduct with three nodes of etcd";
/** The name under which the rows of the archive are chosen. */
export const ARCHIVE = "archive: deduct with and without it";

const CONNECTIONS = 128;
const METERS = 1_000;
/** Least part of a single server's rate that is left with three nodes of etcd on the same machine. */
const COMMIT_LOG_RATIO_MIN = 0.5;
const INTERVAL_SECONDS = 1;
/** The interval, one PUT, and the second in which the status is read. */
const LAG_SECONDS_MAX = INTERVAL_SECONDS + 1;
const LAG_POLL_MS = 100;

/** How the rows are measured. */
export interface Series {
  readonly rounds: number;
  readonly seconds: number;
}

/** Deducts of a leader whose batches wait for a majority of etcd, and of a single server beside the same etcd. */
export async function measureCommitLog(
  stage: Stage,
  say: (text: string) => void,
  series: Series,
): Promise<Finding[]> {
  const missing = missingFor("etcd");
  if (missing !== null) return [{ what: COMMIT_LOG, measured: missing, required: "-", ok: null }];
  say(COMMIT_LOG);
  const cleanup = new Cleanup();
  try {
    const engine = await startEtcd(cleanup, 3);
    const folder = stage.subfolder("commit-log");
    const { alone, other } = await compare(stage, folder, series, ["--commit-log", engine.url], {});
    const ratio = other / alone;
    return [
      {
        what: `${CONNECTIONS} connections: deducts with a commit log`,
        measured: `${other.toFixed(0)}/s, ${ratio.toFixed(2)} of ${alone.toFixed(0)}/s`,
        required: `≥ ${COMMIT_LOG_RATIO_MIN} of a single server`,
        ok: ratio >= COMMIT_LOG_RATIO_MIN,
      },
    ];
  } finally {
    await cleanup.run();
  }
}

/** Deducts of a server that archives each second, and of one that does not; and the lag of the archive meanwhile. */
export async function measureArchive(
  stage: Stage,
  say: (text: string) => void,
  series: Series,
): Promise<Finding[]> {
  say(ARCHIVE);
  const s3 = await new S3Server().start();
  try {
    const options = ["--archive", `s3://${s3.bucket}/bench`, "--archive-interval", `${INTERVAL_SECONDS}`];
    const folder = stage.subfolder("archive");
    const found = await compare(stage, folder, series, options, s3.archiveEnvironment);
    const { alone, other, lagSeconds } = found;
    return [
      {
        what: `${CONNECTIONS} connections: deducts with an archive`,
        measured: `${other.toFixed(0)}/s, ${(other / alone).toFixed(2)} of ${alone.toFixed(0)}/s`,
        required: "-",
        ok: null,
      },
      {
        what: `archive, interval of ${INTERVAL_SECONDS} s: greatest lag`,
        measured: `${lagSeconds.toFixed(1)} s`,
        required: `≤ ${LAG_SECONDS_MAX} s`,
        ok: lagSeconds <= LAG_SECONDS_MAX,
      },
    ];
  } finally {
    await s3.stop();
  }
}

/** Rates of a server without and of one with options, by turns; each has a folder of its own. */
async function compare(
  stage: Stage,
  folder: string,
  { rounds, seconds }: Series,
  options: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<{ alone: number; other: number; lagSeconds: number }> {
  const rates: Record<"alone" | "other", number[]> = { alone: [], other: [] };
  let lagSeconds = 0;
  const accounts = {
    alone: await stage.fill(`${folder}/alone`, METERS),
    other: await stage.fill(`${folder}/other`, METERS),
  };
  for (let round = 0; round < rounds; round += 1)
    for (const which of ["alone", "other"] as const) {
      const { key, operatorKey } = accounts[which];
      const more = which === "other" ? { options, environment } : { options: [], environment: {} };
      const server = await stage.startNinefold(`${folder}/${which}`, more.options, more.environment);
      const poll = setInterval(async () => {
        lagSeconds = Math.max(lagSeconds, await lagOf(server, operatorKey));
      }, LAG_POLL_MS);
      try {
        const request = { ...deductRequest({ key }), below: METERS };
        const run = { url: server.url, connections: CONNECTIONS, seconds, folder: stage.folder, request };
        const { perSecond, otherStatuses, broken } = await runWrk(run);
        if (otherStatuses + broken > 0) throw new Error(`${otherStatuses + broken} requests failed`);
        rates[which].push(perSecond);
      } finally {
        clearInterval(poll);
        await server.stop();
      }
    }
  return { alone: median(rates.alone), other: median(rates.other), lagSeconds };
}

/** The lag that a server states; 0 without an archive, or when it is about to end. */
async function lagOf({ url }: ServerProcess, operatorKey: string): Promise<number> {
  const headers = { authorization: `Bearer ${operatorKey}` };
  const status = await fetch(`${url}/v1/admin/status`, { headers }).then(
    (response) => response.json() as Promise<{ archive?: { lag_seconds: number } | null }>,
    () => null,
  );
  return status?.archive?.lag_seconds ?? 0;
}
