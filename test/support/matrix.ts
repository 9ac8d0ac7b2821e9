import { EXAMPLE_TOKEN } from "../../src/areas/locks/schema.ts";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import { Browser } from "../areas/session/support.ts";
import type { Client } from "./client.ts";
import type { TestServer } from "./server.ts";

/**
 * Whether a route is for keys: not for anyone, for proxies, which are rejected otherwise, for the links of a portal, or for
 * people alone.
 */
export function isForKeys({ operation }: Pick<DeclaredRoute, "operation">): boolean {
  const isForPeople = operation.name.startsWith("people.me.");
  return operation.access !== "public" && !operation.forProxies && !operation.byPortal && !isForPeople;
}

/** Routes that ask for a scope: every area's, also those yet to come. People have tests of their own: no managed key changes them. */
export function scopedRoutes(server: TestServer): DeclaredRoute[] {
  const { routes } = server.server.app.http;
  const scoped = routes.filter((route) => route.operation.access.includes(":") && isForKeys(route));
  return scoped.filter(({ operation }) => !operation.access.startsWith("people:"));
}

/** What a request can come with: a key, or a browser session of it. Both are the same to every gate. */
export const CREDENTIALS = ["key", "session of a key"] as const;
/** One of {@link CREDENTIALS}. */
export type Credential = (typeof CREDENTIALS)[number];

/** A client with a key, or logged in with it, on a server that trusts this machine as a proxy. */
export async function clientOf(
  server: TestServer,
  key: string | null,
  credential: Credential,
): Promise<Client> {
  if (credential === "key") return server.client(key);
  const browser = new Browser(server);
  // An account logs in ten times a minute.
  await server.clock.advance(6_000);
  return browser.logIn(key);
}

/** The path of a route with its parameters filled in. @throws Error when one is not known. */
export function pathOf({ path }: DeclaredRoute, params: Readonly<Record<string, string>>): string {
  return path.replace(/:([A-Za-z_]+)/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined) throw new Error(`${path}: the resource of the matrix has no ${name}`);
    return encodeURIComponent(value);
  });
}

/** The names of a route's parameters. */
export function parametersOf({ path }: DeclaredRoute): string[] {
  return [...path.matchAll(/:([A-Za-z_]+)/g)].map(([, name = ""]) => name);
}

/** The segment that names the area: the one after `/v1`, and elsewhere the first. */
export function segmentOf({ path }: Pick<DeclaredRoute, "path">): string {
  const [, first = "", second = ""] = path.split("/");
  return first === "v1" ? second : first;
}

/** The example of a route as the body to send; its URLs lead to where nobody listens. */
export function bodyOf({ operation: { example } }: DeclaredRoute): unknown {
  if (example === undefined) return undefined;
  return JSON.parse(JSON.stringify(example).replace(/https?:\/\/[^/"]+\/?/g, "https://127.0.0.1:9/"));
}

/** Queries that a route cannot do without. */
const QUERIES: Readonly<Record<string, string>> = {
  "catch.events.delete": "?before=2030-01-01T00:00:00Z",
  "catch.stream": "?after=beginning&wait_ms=0",
  "witness.checkpoint": "?format=json",
  "witness.proofs.consistency": "?from=0",
  "witness.proofs.inclusion": "?sequence_id=1",
};

/** The query of a route, with its question mark. */
export function queryOf({ operation }: { readonly operation: { readonly name: string } }): string {
  return QUERIES[operation.name] ?? "";
}

async function create(client: Client, path: string, body: unknown, name: string): Promise<string> {
  const answer = await client.post(path, body);
  if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
  return String(answer.body[name]);
}

type Made = Readonly<Record<string, string>>;

/** How to make one resource in each area, by the segment that names it: the parameters that name it. */
const MAKERS: Readonly<Record<string, (owner: Client) => Promise<Made>>> = {
  admin: async (operator) => {
    const account = { email: `${crypto.randomUUID()}@example.com`, tier: "free" };
    // The first entry of the audit log is the server's start.
    return { user_id: await create(operator, "/v1/admin/accounts", account, "user_id"), sequence: "1" };
  },
  meter: async (owner) => {
    // One of its own each time: fuzzed amounts may have filled another to its bound.
    const meterId = `tenant-${crypto.randomUUID()}`;
    const path = `/v1/meter/${meterId}`;
    await create(owner, `${path}/refill`, { amount: 1_000 }, "meter_id");
    const hold_id = await create(owner, `${path}/holds`, { amount: 60 }, "hold_id");
    const alert = { threshold: 1, webhook_url: "https://127.0.0.1:9/" };
    await owner.put("/v1/meter/alert", alert);
    await owner.put(`${path}/alert`, alert);
    await owner.put(`${path}/plan`, { amount: 5, every: "week" });
    return { meterId, hold_id };
  },
  projects: async (owner) => {
    const project = await owner.post("/v1/projects", { name: "Shop" });
    if (project.status === 201) return { id: String(project.body["id"]) };
    const { body } = await owner.get("/v1/projects");
    // The only one that a key of one project sees.
    return { id: (body.projects as { id: string }[]).at(-1)?.id ?? "" };
  },
  keys: async (owner) => {
    const terms = { prefix: "acme", name: "k", scopes: ["x"] };
    await owner.put("/v1/keys/roles/tenant.role", { permissions: [] });
    return { id: await create(owner, "/v1/keys", terms, "key_id"), name: "tenant.role" };
  },
  people: async (owner) => {
    const person = { email: `${crypto.randomUUID()}@example.com`, role: "viewer" };
    const person_id = await create(owner, "/v1/people", person, "person_id");
    return { person_id, identity_id: "none", session_id: "1", passkey_id: "none" };
  },
  gate: async (owner) => {
    const scheduled = [{ at: "2099-01-01T00:00:00Z", set: { enabled: false } }];
    const flag = { flag_key: "tenant", enabled: true, scheduled };
    const flagKey = await create(owner, "/v1/gate", flag, "flag_key");
    const { body } = await owner.get(`/v1/gate/${flagKey}/definition`);
    const [change] = (body["scheduled"] ?? []) as { id: string }[];
    const proposal_id = await create(
      owner,
      `/v1/gate/${flagKey}/proposals`,
      { tags: [crypto.randomUUID().slice(0, 8)] },
      "proposal_id",
    );
    return { flagKey, id: change?.id ?? "chg_unreadable", proposal_id };
  },
  ofrep: async (owner) => {
    return { key: await create(owner, "/v1/gate", { flag_key: "evaluated", enabled: true }, "flag_key") };
  },
  latch: async (owner) => {
    const terms = { ttl: 900_000, token: EXAMPLE_TOKEN };
    return { key: await create(owner, "/v1/latch/tenant/acquire", terms, "key") };
  },
  pulse: async (owner) => {
    const monitor = { url: "https://127.0.0.1:9/", interval: 300_000 };
    const work = { title: "Move", schedule: "@yearly", duration_ms: 60_000 };
    const page = { slug: `tenant-${crypto.randomUUID()}`, title: "Tenant" };
    const channel = { name: "Chat", kind: "webhook", config: { url: "https://127.0.0.1:9/" } };
    return {
      monitorId: await create(owner, "/v1/pulse", monitor, "id"),
      page_id: await create(owner, "/v1/pulse/pages", page, "id"),
      incident_id: await create(owner, "/v1/pulse/incidents", { title: "Slow" }, "id"),
      channel_id: await create(owner, "/v1/pulse/channels", channel, "id"),
      probe_id: await create(
        owner,
        "/v1/pulse/probes",
        { name: `p-${crypto.randomUUID().slice(0, 8)}` },
        "id",
      ),
      maintenance_id: await create(owner, "/v1/pulse/maintenance", work, "id"),
    };
  },
  ping: async (owner) => {
    const url = await create(owner, "/v1/pulse", { type: "heartbeat" }, "ping_url");
    return { check: new URL(url).pathname.slice("/ping/".length) };
  },
  api: async (owner) => {
    const push_token = crypto.randomUUID();
    await create(owner, "/v1/pulse", { type: "heartbeat", push_token }, "id");
    return { token: push_token };
  },
  // A link is made by an alert alone: tests of incidents follow one.
  alerts: async () => ({ token: "none" }),
  status: async (owner) => {
    const monitor = { url: "https://127.0.0.1:9/", interval: 300_000 };
    const monitor_ids = [await create(owner, "/v1/pulse", monitor, "id")];
    const page = { slug: `seen-${crypto.randomUUID()}`, title: "Seen", groups: [{ name: "", monitor_ids }] };
    const incident = { title: "Seen", public: true, monitor_ids };
    return {
      page: await create(owner, "/v1/pulse/pages", page, "slug"),
      badge: "1.json",
      group: "1",
      incident: await create(owner, "/v1/pulse/incidents", incident, "id"),
    };
  },
  relay: async (owner) => {
    const delivery = {
      target_url: "https://127.0.0.1:9/",
      method: "POST",
      delay: "1d",
      payload: {},
      headers: {},
    };
    const schedule = { cron: "@yearly", target_url: "https://127.0.0.1:9/" };
    await owner.put("/v1/relay/event-types/tenant.type", {});
    return {
      name: "tenant.type",
      relay_id: await create(owner, "/v1/relay", delivery, "relay_id"),
      resend_id: await create(owner, "/v1/relay/resend", { since: 0 }, "resend_id"),
      schedule_id: await create(owner, "/v1/relay/schedules", schedule, "schedule_id"),
      endpoint_id: await create(
        owner,
        "/v1/relay/endpoints",
        { url: "https://127.0.0.1:9/", state: "paused" },
        "endpoint_id",
      ),
      message_id: await create(owner, "/v1/relay/messages", { event_type: "a", payload: {} }, "message_id"),
    };
  },
  catch: async (owner) => {
    // Live, and yet it sends nothing on: what is tried with it is nobody else's business.
    const terms = { target_url: "https://127.0.0.1:9/", delivery: "pull" };
    const bucket_id = await create(owner, "/v1/catch/buckets", terms, "id");
    await owner.patch(`/v1/catch/buckets/${bucket_id}`, { state: "live" });
    const replay_id = await create(owner, `/v1/catch/${bucket_id}/replays`, {}, "replay_id");
    const event_id = await create(owner, `/v1/catch/${bucket_id}`, { hello: "world" }, "event_id");
    return { bucket_id, event_id, replay_id };
  },
  in: async (owner) => {
    const bucket = { target_url: "https://127.0.0.1:9/" };
    return { bucket_id: await create(owner, "/v1/catch/buckets", bucket, "id") };
  },
  audit: async (owner) => {
    await create(owner, "/v1/gate", { flag_key: "audited", enabled: true }, "flag_key");
    const { body } = await owner.get("/v1/audit?limit=1");
    return { sequence: (body.entries as { sequence: string }[])[0]?.sequence ?? "" };
  },
  witness: async (owner) => {
    const chainId = await create(owner, "/v1/witness/sys/init", undefined, "chain_id");
    const sequence_id = await create(
      owner,
      "/v1/witness/log",
      { log: { event: "signed in" } },
      "sequence_id",
    );
    await owner.put("/v1/witness/tlog", { public: true });
    await owner.get("/v1/witness/checkpoint");
    return { chainId, sequence_id, tile: "0", origin: "0".repeat(64) };
  },
};

/** The segments of paths under which {@link makeResource} makes something. */
export const SEGMENTS = Object.keys(MAKERS);

/** What is named by the caller lies in the caller's own project: a stranger finds nothing there, or makes its own. */
export const NOT_404: Readonly<Record<string, number>> = {
  // A flag that does not exist can be proposed.
  "gate.proposals.create": 201,
  "gate.proposals.list_of_flag": 200,
  "meter.balance": 200,
  "meter.history": 200,
  "meter.deduct": 402,
  "meter.refill": 200,
  "meter.reset": 200,
  "meter.usage": 200,
  // Of its own, which it has just filled.
  "meter.holds.create": 201,
  "meter.holds.list": 200,
  "meter.plan.set": 200,
  "meter.plan.delete": 200,
  "meter.alert.set": 200,
  "meter.alert.delete": 200,
  // Its own, which it has just saved by the name.
  "relay.event_types.save": 201,
  "relay.event_types.read": 200,
  "relay.event_types.delete": 204,
  "keys.roles.save": 201,
  "keys.roles.read": 200,
  "keys.roles.delete": 204,
  "latch.status": 200,
  "latch.acquire": 200,
  // Its own, which it has just acquired.
  "latch.release": 200,
};
/** Makes one resource of an area as its owner. @throws Error for an area that the matrix does not know yet. */
export function makeResource(segment: string, owner: Client): Promise<Made> {
  const maker = MAKERS[segment];
  if (maker === undefined) {
    throw new Error(
      `nothing is known that lies under ${segment}: add how to make one to test/support/matrix.ts`,
    );
  }
  return maker(owner);
}
