import type { Benchmark, Finding, WrkScript } from "./benchmark.ts";
import { FIRST_CREATED_AT, PREFIX, secretOf } from "./key-secrets.ts";
import { median } from "./results.ts";
import { KEYS, type Stage } from "./stage.ts";

/** Flags in the project, of which one is evaluated. */
const FLAGS = 10_000;
/** Concurrent requests that create the flags. */
const MAKERS = 32;
/** Number of keys that are verified in turn, spread over the whole file. */
const VERIFIED_KEYS = 2_000;
/** Keys with uses and a limit. */
const LIMITED_KEYS = 1_000;
/** Pages of the list that are timed, spread over its whole length. */
const PAGES = 60;
const PAGE_MS_MAX = 5;

/** Name that selects the measurement of the list. */
export const KEY_LIST = "list of 1,000,000 keys";

async function makeMany(count: number, make: (number: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const maker = async (): Promise<void> => {
    for (let number = next++; number < count; number = next++) await make(number);
  };
  await Promise.all(Array.from({ length: MAKERS }, maker));
}

function makeFlags(stage: Stage): Promise<void> {
  return makeMany(FLAGS, (number) =>
    stage.post("/v1/gate", { flag_key: `flag-${number}`, enabled: number % 2 === 0 }),
  );
}

/** Secrets of the keys with uses and a limit. */
const limitedSecrets: string[] = [];

function makeLimited(stage: Stage): Promise<void> {
  const terms = {
    prefix: PREFIX,
    name: "Limited",
    scopes: ["orders:*"],
    ratelimits: [{ name: "requests", limit: 1_000_000, duration_ms: 1_000 }],
    uses: { remaining: Number.MAX_SAFE_INTEGER },
  };
  return makeMany(LIMITED_KEYS, async () => {
    limitedSecrets.push(String((await stage.post("/v1/keys", terms))["secret"]));
  });
}

/** Verifies keys in turn. */
function verifyInTurn(stage: Stage, secrets: readonly string[], more = ""): WrkScript {
  const head = `POST /v1/keys/verify HTTP/1.1\\r\\nHost: ${new URL(stage.url).host}\\r\\nAuthorization: Bearer ${stage.key}\\r\\n`;
  return {
    lua: `
local secrets = { ${secrets.map((secret) => `"${secret}"`).join(", ")} }
local number = 0
function request()
  number = number % #secrets + 1
  local body = '{"secret":"' .. secrets[number] .. '","meta":{"ip":"203.0.113.7"}${more}}'
  return "${head}Content-Type: application/json\\r\\nContent-Length: " .. #body .. "\\r\\n\\r\\n" .. body
end
`,
  };
}

/** Evaluates one of {@link FLAGS} flags. */
export const FLAG_EVALUATE: Omit<Benchmark, "requires"> = {
  name: "flag evaluate",
  connections: [32],
  prepare: makeFlags,
  request: (stage) => ({
    method: "GET",
    path: "/v1/gate/flag-42",
    headers: { Authorization: `Bearer ${stage.key}` },
  }),
};

/** Verifies keys spread over the whole file. */
export const KEY_VERIFY: Benchmark = {
  name: "key verify",
  connections: [32],
  request: (stage) => verifyInTurn(stage, spreadSecrets()),
  requires: [
    { kind: "ratio", to: "bare", atLeast: 0.7, connections: [32] },
    { kind: "p99", atMostMs: 10, connections: [32] },
  ],
};

function spreadSecrets(): string[] {
  const step = Math.floor(KEYS / VERIFIED_KEYS);
  return Array.from({ length: VERIFIED_KEYS }, (_, index) => secretOf(index * step));
}

/** Verifies keys with a scope, a token and a use to deduct: a change, which waits for the disk. */
export const LIMITED_KEY_VERIFY: Benchmark = {
  name: "key verify with uses and a limit",
  connections: [32],
  prepare: makeLimited,
  request: (stage) => verifyInTurn(stage, limitedSecrets, ',"require":["orders:read"]'),
  requires: [
    { kind: "ratio", to: "bare", atLeast: 0, connections: [32] },
    { kind: "p99", atMostMs: 15, connections: [32] },
  ],
};

/** Latency of a page of the list, from the first to the last page, including the HTTP request. */
export async function measureKeyList(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say("making 1,000,000 keys");
  const data = stage.subfolder("keys");
  const { key } = await stage.fillKeys(data, KEYS);
  const server = await stage.startNinefold(data);
  try {
    const times: number[] = [];
    for (let page = 0; page < PAGES; page += 1) {
      const cursor = new Date(FIRST_CREATED_AT + KEYS - Math.floor((page * KEYS) / PAGES)).toISOString();
      const begun = performance.now();
      const response = await fetch(`${server.url}/v1/keys?limit=100&cursor=${cursor}`, {
        headers: { authorization: `Bearer ${key}` },
      });
      const { keys } = (await response.json()) as { keys?: unknown[] };
      times.push(performance.now() - begun);
      if (keys?.length !== 100) throw new Error(`page ${page}: ${response.status}`);
    }
    const slow = times.sort((a, b) => a - b).at(Math.floor(PAGES * 0.95)) ?? 0;
    return [
      {
        what: `${KEY_LIST}: a page of 100, median and 95th of 100`,
        measured: `${median(times).toFixed(1)}, ${slow.toFixed(1)} ms`,
        required: `≤ ${PAGE_MS_MAX} ms`,
        ok: median(times) <= PAGE_MS_MAX,
      },
    ];
  } finally {
    await server.stop("SIGKILL");
  }
}
