import type { BrowserContext, Request, Route } from "playwright-core";

// Until the server itself has sessions and what the console reads beside the areas' own routes.

const ENTRY = {
  sequence: "1",
  at: "2026-03-10T12:00:00.000Z",
  action: "gate.save",
  summary: "Flag new-checkout switched on",
  actor: { type: "key", key_id: null, key_name: "CI", user_id: "usr_1" },
  project_id: null,
  target: { type: "flag", id: "new-checkout" },
  before: { enabled: false },
  after: { enabled: true },
  ip: "203.0.113.7",
  user_agent: "curl/8.5",
  request_id: null,
};

const ANSWERS: Readonly<Record<string, unknown>> = {
  "/v1/overview": {
    ...{ meter: { balance: 1_000, meters: 3 }, projects: { total: 2 }, keys: { total: 4, ending_soon: 1 } },
    ...{ gate: { total: 3, on: 2 }, latch: { held: 2, waiting: 0 }, pulse: { total: 2, up: 1, down: 1 } },
    ...{ relay: { scheduled: 2, failed: 1 }, catch: { pending: 6, failed: 0, delivered: 0 } },
    ...{ witness: { receipts: 3, buffered: 0 }, incidents_open: 1, recent: [ENTRY] },
  },
  "/v1/audit": { entries: [ENTRY], cursor: null },
  "/v1/meter": {
    meters: [{ meter_id: "customer-42", balance: 12, updated_at: "2026-03-10T12:00:00.000Z" }],
    cursor: null,
  },
  "/v1/latch": {
    locks: [
      { key: "invoice:42", fencing_token: 7, acquired_at: 1, expires_at: 4_000_000_000_000, queue_depth: 3 },
    ],
    cursor: null,
  },
  "/v1/admin/backups": {
    backups: [{ name: "ninefold.db", size: 12_345, created_at: "2026-03-10T12:00:00.000Z" }],
  },
  "/v1/admin/status": { version: "0.1.0", started_at: "2026-03-10T12:00:00.000Z", rss_bytes: 90_000_000 },
};

/** Scopes of a key by how its name ends. */
const READ_ONLY = ["keys:read", "gate:read", "catch:read", "pulse:read", "relay:read", "projects:read"];

/** Answers in the server's place, and lends the logged-in key to what the server answers itself. */
export async function standInForSession(context: BrowserContext, url: string): Promise<void> {
  let key: string | null = null;
  const session = async (route: Route, request: Request): Promise<void> => {
    if (request.method() === "POST") {
      const given = (request.postDataJSON() as { key?: string }).key ?? "";
      const known = await fetch(`${url}/v1/keys`, { headers: { authorization: `Bearer ${given}` } });
      key = known.ok ? given : null;
      const message = "This key opens nothing here.";
      const refusal = { error: { code: "unauthorized", message, request_id: "0199" } };
      return route.fulfill(
        key === null ? { status: 401, json: refusal } : { status: 201, json: await who(url, key) },
      );
    }
    const json = { session: key === null ? null : await who(url, key) };
    if (request.method() === "DELETE") key = null;
    return route.fulfill(request.method() === "DELETE" ? { status: 204 } : { json });
  };
  await context.route(`${url}/v1/**`, async (route, request) => {
    const { pathname } = new URL(request.url());
    if (pathname === "/v1/session") return session(route, request);
    if (pathname === "/v1/changes")
      return route.fulfill({ contentType: "text/event-stream", body: "retry: 2000\n\n" });
    const json = ANSWERS[pathname];
    if (json !== undefined && request.method() === "GET") return route.fulfill({ json });
    return route.continue({ headers: { ...request.headers(), authorization: `Bearer ${key}` } });
  });
}

async function who(url: string, key: string): Promise<object> {
  const headers = { authorization: `Bearer ${key}` };
  const isOperator = (await fetch(`${url}/v1/admin/accounts`, { headers })).ok;
  const all = (await fetch(`${url}/v1/projects`, { method: "POST", headers })).status !== 403;
  return {
    ...{ user_id: "usr_1", email: "ada@example.com", tier: "scale", operator: isOperator },
    ...{ key_id: null, key_name: null, scopes: all ? ["*"] : READ_ONLY, project_id: null },
    ...{ expires_at: "2030-01-01T00:00:00.000Z", version: "0.1.0" },
  };
}
