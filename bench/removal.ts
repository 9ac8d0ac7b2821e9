import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { Finding } from "./benchmark.ts";
import type { Stage } from "./stage.ts";
import { runWrk } from "./wrk.ts";

/** Meters in the project, each with one ledger entry: twice as many rows. */
const METERS = 100_000;
const CONNECTIONS = 32;
/** Length of each measurement. They follow one another until the project is completely removed. */
const SECONDS = 5;
const MEASUREMENTS_MAX = 24;
const P99_MS_MAX = 20;
const POLL_MS = 100;
const DONE_MS_MAX = 60_000;

/** Name that selects this measurement. */
export const PROJECT_REMOVAL = "removal of a project with 200,000 rows";

/**
 * Deletes a project while other clients change their meters. Measures their slowest requests until every row is
 * removed, and how long the removal takes without other clients.
 */
export async function measureRemoval(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  const slowest = await removedWith(stage, "loaded", say, async (run, begin, isDone) => {
    const { p99Ms: before } = await runWrk(run);
    await begin();
    let p99 = 0;
    for (let count = 0; count < MEASUREMENTS_MAX && !isDone(); count += 1) {
      const { p99Ms, otherStatuses, broken } = await runWrk(run);
      if (otherStatuses + broken > 0) throw new Error(`${otherStatuses + broken} requests failed`);
      p99 = Math.max(p99, p99Ms ?? 0);
    }
    return { before: before ?? 0, p99, done: isDone() };
  });
  const alone = await removedWith(stage, "alone", say, async (_run, begin, isDone) => {
    await begin();
    const begun = performance.now();
    while (!isDone() && performance.now() - begun < DONE_MS_MAX) await Bun.sleep(POLL_MS);
    return { seconds: (performance.now() - begun) / 1_000, done: isDone() };
  });
  return [
    {
      what: `${PROJECT_REMOVAL}: p99 of deducts at ${CONNECTIONS} connections meanwhile`,
      measured: `${slowest.p99.toFixed(1)} ms (before: ${slowest.before.toFixed(1)})${slowest.done ? "" : ", not removed in time"}`,
      required: `≤ ${P99_MS_MAX} ms`,
      ok: slowest.done && slowest.p99 <= P99_MS_MAX,
    },
    {
      what: `${PROJECT_REMOVAL}: with nobody else there`,
      measured: alone.done ? `${alone.seconds.toFixed(1)} s` : "not removed in time",
      required: "removed",
      ok: alone.done,
    },
  ];
}

type Load = Parameters<typeof runWrk>[0];

async function removedWith<T>(
  stage: Stage,
  name: string,
  say: (text: string) => void,
  during: (run: Load, begin: () => Promise<unknown>, isDone: () => boolean) => Promise<T>,
): Promise<T> {
  say(`${PROJECT_REMOVAL}, ${name}`);
  const data = stage.subfolder(`removal-${name}`);
  const { key } = await stage.fill(data, METERS);
  const server = await stage.startNinefold(data);
  const file = new Database(join(data, "ninefold.db"), { readonly: true });
  try {
    const { projects } = (await send("GET", `${server.url}/v1/projects`, key)) as {
      projects: { id: string }[];
    };
    const other = await stage.post("/v1/projects", { name: "Other" }, key, server.url);
    const terms = { prefix: "sm", name: "load", scopes: ["meter:*"] };
    const { secret } = await stage.post(`/v1/projects/${other["id"]}/keys`, terms, key, server.url);
    await stage.post("/v1/meter/busy/refill", { amount: 1_000_000_000 }, String(secret), server.url);
    const begin = () => send("DELETE", `${server.url}/v1/projects/${projects[0]?.id}`, key);
    const run: Load = {
      url: server.url,
      connections: CONNECTIONS,
      seconds: SECONDS,
      folder: stage.folder,
      request: {
        method: "POST",
        path: "/v1/meter/busy/deduct",
        body: '{"amount":1}',
        headers: { Authorization: `Bearer ${secret}` },
      },
    };
    return await during(run, begin, () => isRemoved(file));
  } finally {
    file.close();
    await server.stop("SIGKILL");
  }
}

/** The row of a deleted project is removed last. */
function isRemoved(file: Database): boolean {
  return file.query("SELECT 1 FROM projects WHERE deleted_at IS NOT NULL").get() === null;
}

async function send(method: string, url: string, key: string): Promise<unknown> {
  const response = await fetch(url, { method, headers: { authorization: `Bearer ${key}` } });
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
  return response.json();
}
