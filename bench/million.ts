import type { Finding } from "./benchmark.ts";
import { median } from "./results.ts";
import type { Stage } from "./stage.ts";
import { runWrk } from "./wrk.ts";

const MILLION = 1_000_000;
const STARTS = 5;
const READY_MS_MAX = 500;
const RSS_MB_MAX = 250;
const TOUCH_CONNECTIONS = 32;
const TOUCH_SECONDS = 5;

/** Name that selects this measurement. */
export const MILLION_METERS = "1,000,000 meters";

/** A file with a million meters: time of a start until it is ready, and memory once all meters were read. */
export async function measureMillion(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say("making 1,000,000 meters");
  const data = stage.subfolder("million");
  const { key } = await stage.fill(data, MILLION);
  const readyMs: number[] = [];
  for (let start = 0; start < STARTS; start += 1) {
    const server = await stage.startNinefold(data);
    readyMs.push(server.readyMs);
    await server.stop();
  }
  say("reading each of them");
  const server = await stage.startNinefold(data);
  try {
    await touchAll(stage, server.url, key);
    const rss = rssMB(server.pid);
    const ready = median(readyMs);
    return [
      {
        what: `${MILLION_METERS}: ready after the start`,
        measured: `${ready.toFixed(0)} ms`,
        required: `≤ ${READY_MS_MAX} ms`,
        ok: ready <= READY_MS_MAX,
      },
      {
        what: `${MILLION_METERS}: memory once all were read (RSS)`,
        measured: `${rss.toFixed(0)} MB`,
        required: `≤ ${RSS_MB_MAX} MB`,
        ok: rss <= RSS_MB_MAX,
      },
    ];
  } finally {
    await server.stop("SIGKILL");
  }
}

async function touchAll(stage: Stage, url: string, key: string): Promise<void> {
  let touched = 0;
  while (touched < MILLION) {
    const request = { lua: readInTurn(touched, key, new URL(url).host) };
    const run = {
      url,
      connections: TOUCH_CONNECTIONS,
      seconds: TOUCH_SECONDS,
      request,
      folder: stage.folder,
    };
    const { requests, otherStatuses, broken } = await runWrk(run);
    if (otherStatuses + broken > 0) throw new Error(`${otherStatuses + broken} reads failed`);
    // Repeats the requests that were in flight when wrk ended.
    touched += Math.max(1, requests - TOUCH_CONNECTIONS);
  }
}

function readInTurn(from: number, key: string, host: string): string {
  return `
function init(args)
  number = ${from}
end
function request()
  local meter = string.format("%06d", number % ${MILLION})
  number = number + 1
  return "GET /v1/meter/meter-" .. meter .. "/balance HTTP/1.1\\r\\nHost: ${host}\\r\\nAuthorization: Bearer ${key}\\r\\n\\r\\n"
end
`;
}

/** Resident memory of a process in MB (10^6 bytes), from `ps`, which every system has. */
function rssMB(pid: number): number {
  const { stdout } = Bun.spawnSync(["ps", "-o", "rss=", "-p", `${pid}`]);
  return (Number(stdout.toString().trim()) * 1024) / 1_000_000;
}
