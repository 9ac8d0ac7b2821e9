import type { Answer, Client } from "../support/client.ts";
import type { AccountClient, TestServer } from "../support/server.ts";

/** Clients and ids for the mistakes. */
interface Scene {
  readonly server: TestServer;
  /** Of an account of tier `unlimited`. */
  readonly owner: AccountClient;
  /** Of an account of tier `free` that has no credits. */
  readonly poor: AccountClient;
  /** A key of the owner with the prefix `acme`, for an API of its own. */
  readonly foreign: Client;
  /** A key of the owner that may only read meters. */
  readonly reader: Client;
}

/** A mistake: its description, the request, and the client. */
interface Mistake {
  readonly name: string;
  readonly request: readonly [method: string, path: string, body?: unknown];
  /** The owner unless given. */
  readonly by?: (scene: Scene) => Client;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where a later error shows the mistake, if not in the response. */
  readonly later?: (scene: Scene, answer: Answer) => Promise<string>;
}

const keyless = ({ server }: Scene): Client => server.client(null);
const DELIVERY = { method: "POST", delay: "1s", payload: {}, headers: {} };
const HOOK = "https://example.com/hook";
const MONITOR = { url: "https://example.com/health", interval: 60_000 };

const KEYS: readonly Mistake[] = [
  { name: "No key", request: ["GET", "/v1/meter/balance"], by: keyless },
  {
    name: "A key without its scheme",
    request: ["GET", "/v1/meter/balance"],
    by: keyless,
    headers: { authorization: `sm_${"a".repeat(43)}_00000000` },
  },
  {
    name: "A key that was not copied whole",
    request: ["GET", "/v1/meter/balance"],
    by: ({ server }) => server.client(server.key.slice(0, -1)),
  },
  {
    name: "A key that was made for an API of one's own",
    request: ["GET", "/v1/meter/balance"],
    by: ({ foreign }) => foreign,
  },
  {
    name: "A key that may not do it",
    request: ["POST", "/v1/meter/acme/deduct", { amount: 1 }],
    by: ({ reader }) => reader,
  },
];

const PATHS: readonly Mistake[] = [
  { name: "The name of an area instead of its path", request: ["GET", "/v1/flags"] },
  { name: "The same, of locks", request: ["POST", "/v1/locks/nightly/acquire", {}] },
  { name: "The same, of monitors", request: ["POST", "/v1/monitors", MONITOR] },
  { name: "The same, of the notary", request: ["POST", "/v1/notary/log", { log: {} }] },
  { name: "The singular", request: ["GET", "/v1/project"] },
  { name: "A slash at the end", request: ["GET", "/v1/projects/"] },
  { name: "Another method", request: ["GET", "/v1/meter/acme/deduct"] },
  { name: "An update by PATCH", request: ["PATCH", "/v1/flags/dark-mode", { enabled: true }] },
  { name: "The base URL without /v1", request: ["GET", "/projects"] },
  { name: "The base URL with /v1, and the path as well", request: ["GET", "/v1/v1/projects"] },
  { name: "A variable that is not set", request: ["POST", "/v1/meter//deduct", { amount: 1 }] },
  { name: "A path that never was, without a key", request: ["GET", "/v1/login"], by: keyless },
];

const VALUES: readonly Mistake[] = [
  { name: "Seconds where it is milliseconds", request: ["POST", "/v1/pulse", { ...MONITOR, interval: 60 }] },
  { name: "The same, of a lock", request: ["POST", "/v1/latch/nightly/acquire", { ttl: 60 }] },
  { name: "A delay in words", request: ["POST", "/v1/relay", { ...DELIVERY, delay: "5 minutes", target_url: HOOK }] },
  { name: "A number in quotes", request: ["POST", "/v1/meter/acme/refill", { amount: "100" }] },
  {
    name: "An amount of 0, where nothing is left to pay with",
    request: ["POST", "/v1/meter/acme/deduct", { amount: 0 }],
    by: ({ poor }) => poor,
  },
  { name: "A form instead of JSON", request: ["POST", "/v1/meter/acme/refill", "amount=100"] },
  { name: "A field under another name", request: ["POST", "/v1/gate", { key: "dark-mode", enabled: true }] },
  { name: "A page that is too long", request: ["GET", "/v1/keys?limit=1000"] },
  {
    name: "A date without its time",
    request: [
      "POST",
      "/v1/keys",
      { prefix: "sm", name: "ci", scopes: ["meter:read"], expires_at: "2030-01-31" },
    ],
  },
];

const TARGETS: readonly Mistake[] = [
  {
    name: "A delivery to a program on this machine",
    request: ["POST", "/v1/relay", { ...DELIVERY, target_url: "http://localhost:3000/hook" }],
  },
  {
    name: "A bucket for a program on this machine",
    request: ["POST", "/v1/catch/buckets", { target_url: "http://localhost:3000/hook" }],
  },
  {
    name: "A monitor of the private network",
    request: ["POST", "/v1/pulse", { ...MONITOR, url: "http://192.168.1.7/" }],
  },
  {
    name: "A bucket for another container",
    request: ["POST", "/v1/catch/buckets", { target_url: "http://app:3000/hook" }],
  },
  {
    name: "An alert to another container",
    request: ["POST", "/v1/pulse", { ...MONITOR, webhook_url: "http://app:3000/alert" }],
  },
  {
    name: "A delivery to another container, a second later",
    request: ["POST", "/v1/relay", { ...DELIVERY, target_url: "http://app:3000/hook" }],
    later: async ({ server, owner }, { body }) => {
      await server.clock.advance(2_000);
      const { body: delivery } = await owner.get(`/v1/relay/${body["relay_id"]}`);
      return `${delivery["status"]} ${delivery["error"]}`;
    },
  },
  {
    name: "A target without its scheme",
    request: ["POST", "/v1/relay", { ...DELIVERY, target_url: "example.com/hook" }],
  },
];

/** Typical mistakes and their errors, as a file for readers. The server can resolve a host named `app`. */
export async function renderMistakes(server: TestServer): Promise<string> {
  const scene = await sceneOf(server);
  const parts: string[] = [];
  for (const mistake of [...KEYS, ...PATHS, ...VALUES, ...TARGETS]) {
    const { name, request, by, headers = {}, later } = mistake;
    const [method, path, body] = request;
    const client = by?.(scene) ?? scene.owner;
    const answer = await client.send(method, path, body, { headers });
    const said = later === undefined ? refusalIn(answer) : await later(scene, answer);
    const sent = body === undefined ? "" : ` ${typeof body === "string" ? body : JSON.stringify(body)}`;
    parts.push(`${name}\n  ${method} ${path}${sent}\n  ${said}\n`);
  }
  return parts.join("\n");
}

function refusalIn({ status, body, text }: Answer): string {
  const error = body["error"] as { readonly message: string } | undefined;
  if (status < 400 || error === undefined) throw new Error(`no error, but ${status} ${text}`);
  return `${status} ${error.message}`;
}

async function sceneOf(server: TestServer): Promise<Scene> {
  const owner = await server.account({ tier: "unlimited" });
  const create = async (prefix: string): Promise<Client> => {
    const { body } = await owner.post("/v1/keys", { prefix, name: prefix, scopes: ["meter:read"] });
    return server.client(String(body["secret"]));
  };
  const poor = await server.account({ tier: "free", balance: 0 });
  return { server, owner, poor, foreign: await create("acme"), reader: await create("sm") };
}
