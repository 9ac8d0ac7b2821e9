import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "../scripts/steps/debian.ts";
import { endsWithUs } from "../test/harness/processes/children.ts";
import { freePort } from "../test/harness/processes/ports.ts";
import type { Benchmark, Finding, WrkRequest, WrkScript } from "./benchmark.ts";
import { median } from "./results.ts";
import { METERS, type Stage } from "./stage.ts";
import { runWrk } from "./wrk.ts";

/** Customers, each with a key and one of the meters, spread over the whole file. */
const CUSTOMERS = 2_000;
/** Concurrent requests that create them. */
const MAKERS = 32;
const FLAGS = ["check-1", "check-2", "check-3", "check-4", "check-5"];
/** Limits that no benchmark reaches. */
const LIMITS = ["requests", "exports"].map((name) => ({ name, limit: 1_000_000, duration_ms: 1_000 }));

const CALLS = 4;
/** How much faster one call must be than the four calls that check and deduct the same. */
const QUICKER = 2.5;

/** Connections and pairs of measurements through nginx. There are few, so that no request waits for a processor. */
const CONNECTIONS = 2;
const PAIRS = 5;
const ADDED_MS_MAX = 1;
/** Timeout for the start of a worker of nginx. */
const START_MS = 300;

/** Name that selects the measurement through nginx. */
export const CHECK_BY_NGINX = "check by nginx's auth_request";

/** A key that can only verify. */
function termsOf(meter: string) {
  return { prefix: "bench", name: meter, scopes: ["bench:*"], meter_id: meter, ratelimits: LIMITS };
}

/** The body of a check that includes everything. */
export function checkBodyOf(secret: string) {
  return { secret, require: ["bench:read"], deduct: { amount: 1 }, flags: FLAGS };
}

/** Creates the flags of the checks. */
export async function makeFlags(stage: Pick<Stage, "post">): Promise<void> {
  const split = [
    { variant: "on", weight: 25 },
    { variant: "off", weight: 75 },
  ];
  for (const flag_key of FLAGS) await stage.post("/v1/gate", { flag_key, enabled: true, default: { split } });
}

/** Creates a customer and returns its secret. */
export async function makeCustomer(stage: Pick<Stage, "post">, meter: string): Promise<string> {
  return String((await stage.post("/v1/keys", termsOf(meter)))["secret"]);
}

function meterAt(index: number): string {
  return `meter-${String(index * Math.floor(METERS / CUSTOMERS)).padStart(6, "0")}`;
}

let secrets: readonly string[] = [];

async function makeCustomers(stage: Stage): Promise<void> {
  if (secrets.length > 0) return;
  await makeFlags(stage);
  const made: string[] = [];
  let next = 0;
  const maker = async (): Promise<void> => {
    for (let at = next++; at < CUSTOMERS; at = next++) made[at] = await makeCustomer(stage, meterAt(at));
  };
  await Promise.all(Array.from({ length: MAKERS }, maker));
  secrets = made;
}

/** Sends the requests in turn, for one customer after another. In each, `%s` is the secret and `%m` the meter. */
function inTurn(stage: Stage, requests: readonly (readonly [line: string, body: string])[]): WrkScript {
  const head = ` HTTP/1.1\\r\\nHost: ${new URL(stage.url).host}\\r\\nAuthorization: Bearer ${stage.key}\\r\\nContent-Type: application/json\\r\\n`;
  return {
    lua: `
local secrets = { ${secrets.map((secret) => `"${secret}"`).join(", ")} }
local requests = { ${requests.map(([line, body]) => `{ '${line}', '${body}' }`).join(", ")} }
local head = "${head}"
local number = -1
function request()
  number = number + 1
  local one = requests[number % #requests + 1]
  local at = math.floor(number / #requests) % #secrets
  local meter = string.format("meter-%06d", at * ${Math.floor(METERS / CUSTOMERS)})
  local line = string.gsub(one[1], "%%m", meter)
  local body = string.gsub(one[2], "%%s", secrets[at + 1])
  return line .. head .. "Content-Length: " .. #body .. "\\r\\n\\r\\n" .. body
end
`,
  };
}

const BY_CALLS: Benchmark = {
  name: "check: the same by four calls",
  connections: [32],
  prepare: makeCustomers,
  request: (stage) =>
    inTurn(stage, [
      ["POST /v1/keys/verify", '{"secret":"%s","require":["bench:read"]}'],
      ["GET /v1/meter/%m/balance", ""],
      [`GET /v1/gate/${FLAGS[0]}`, ""],
      ["POST /v1/meter/%m/deduct", '{"amount":1}'],
    ]),
  requires: [{ kind: "ratio", to: "bare", atLeast: 0, connections: [32] }],
};

/** A check that includes everything. */
export const CHECK: Benchmark = {
  name: "check: verify, 2 limits, 5 flags, deduct",
  connections: [32],
  prepare: makeCustomers,
  request: (stage) => inTurn(stage, [["POST /v1/check", JSON.stringify(checkBodyOf("%s"))]]),
  requires: [
    { kind: "ratio", to: "bare", atLeast: 0.45, connections: [32] },
    { kind: "ratio", to: BY_CALLS.name, atLeast: QUICKER / CALLS, connections: [32] },
  ],
};

/** A check, and four calls that check the same separately. One of them counts as a fourth of a check. */
export const CHECKS: readonly Benchmark[] = [CHECK, BY_CALLS];

/**
 * Requests a file from nginx with and without a check before it, in turn, and returns what the check adds to the median
 * latency.
 */
export async function measureByNginx(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  const what = `${CHECK_BY_NGINX}: added at p50, ${CONNECTIONS} connections`;
  const required = `≤ ${ADDED_MS_MAX} ms`;
  const program = findProgram("nginx");
  if (program === null) {
    say("nginx is omitted because it is not installed: apt-get install nginx");
    return [{ what, measured: "–", required, ok: null }];
  }
  say("nginx before a file");
  const server = await stage.startNinefold(stage.subfolder("nginx-data"));
  const folder = stage.subfolder("nginx");
  const key = server.key ?? "";
  const post = (path: string, body: object) => stage.post(path, body, key, server.url);
  await post("/v1/meter/acme/refill", { amount: Number.MAX_SAFE_INTEGER });
  const secret = await makeCustomer({ post }, "acme");
  const url = `http://127.0.0.1:${writeConfiguration(folder, server.url, key)}`;
  const child = Bun.spawn([program, "-p", folder, "-e", "errors", "-c", "nginx.conf"], { stderr: "inherit" });
  endsWithUs(child);
  try {
    await Bun.sleep(START_MS);
    const added: number[] = [];
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const p50 = async (path: string): Promise<number> => {
        const request: WrkRequest = { method: "GET", path, headers: { Authorization: `Bearer ${secret}` } };
        const found = await runWrk({ url, connections: CONNECTIONS, seconds: 2, request, folder });
        if (found.otherStatuses + found.broken > 0)
          throw new Error(`nginx returned an unexpected status for ${path}`);
        return found.p50Ms ?? Number.NaN;
      };
      added.push(-(await p50("/plain")) + (await p50("/checked")));
    }
    const ms = median(added);
    return [{ what, measured: `${ms.toFixed(2)} ms`, required, ok: ms <= ADDED_MS_MAX }];
  } finally {
    child.kill();
    await child.exited;
    await server.stop("SIGKILL");
  }
}

/** Writes the configuration of nginx and its file. Returns the port. */
function writeConfiguration(folder: string, ninefold: string, key: string): number {
  const port = freePort();
  mkdirSync(join(folder, "tmp"), { recursive: true });
  for (const name of ["plain", "checked"]) writeFileSync(join(folder, name), "here\n");
  const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path tmp/${name};`,
  );
  const user = process.getuid?.() === 0 ? "user root;" : "";
  writeFileSync(
    join(folder, "nginx.conf"),
    `${user} daemon off; pid pid; events {}
http {
  access_log off; ${places.join(" ")}
  upstream ninefold { server ${new URL(ninefold).host}; keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    root ${folder};
    location = /_check {
      internal; proxy_pass http://ninefold/v1/check/http?require=bench:read&deduct=1&deny=403;
      proxy_http_version 1.1; proxy_pass_request_body off;
      proxy_set_header Connection ""; proxy_set_header Content-Length ""; proxy_set_header X-Ninefold-Key ${key};
    }
    location /plain { }
    location /checked { auth_request /_check; }
  }
}
`,
  );
  return port;
}
