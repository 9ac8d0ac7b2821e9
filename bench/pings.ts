import type { Benchmark, WrkScript } from "./benchmark.ts";
import type { Stage } from "./stage.ts";

/** Heartbeats that are pinged in turn. */
const CHECKS = 1_000;
const paths: string[] = [];

/** The tier `unlimited`, because other tiers limit the pings of one check per minute. */
async function prepare(stage: Stage): Promise<void> {
  const account = { email: "pings@example.com", tier: "unlimited" };
  const { api_key } = await stage.post("/v1/admin/accounts", account, stage.operatorKey);
  for (let made = 0; made < CHECKS; made += 1) {
    const beat = await stage.post("/v1/pulse", { type: "heartbeat" }, String(api_key));
    paths.push(new URL(String(beat["ping_url"])).pathname);
  }
  const response = await fetch(stage.url + paths[0]);
  if ((await response.text()) !== "OK") throw new Error(`no ping: ${response.status}`);
}

/** The request of a cron job, each time for another check. */
function request(stage: Stage): WrkScript {
  return {
    lua: `
local tail = " HTTP/1.1\\r\\nHost: ${new URL(stage.url).host}\\r\\nUser-Agent: curl/8.5.0\\r\\nAccept: */*\\r\\n\\r\\n"
local paths = {${paths.map((path) => `"${path}"`).join(",")}}
function init(args)
  number = thread_index * 37
end
function request()
  number = number + 1
  return "GET " .. paths[number % #paths + 1] .. tail
end
`,
  };
}

/** Pings: each is durable, counted as a check, and moves its check's deadline before the response is sent. */
export const PINGS: Benchmark = {
  name: "ping of a heartbeat",
  connections: [32],
  prepare,
  request,
  requires: [
    { kind: "ratio", to: "bare", atLeast: 0.45, connections: [32] },
    { kind: "ratio", to: "ceiling", atLeast: 0.8, connections: [32] },
    { kind: "p99", atMostMs: 10, connections: [32] },
  ],
};
