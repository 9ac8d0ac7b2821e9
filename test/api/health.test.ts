import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { expectError } from "../support/errors.ts";
import { scrape } from "../support/metrics.ts";
import { sendRaw } from "../support/raw-http.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const PATHS = ["/healthz", "/readyz", "/metrics"] as const;
const MODES = ["loopback", "health", "operator", "public"] as const;
type Mode = (typeof MODES)[number];

/** One server for each mode, behind a trusted proxy on another host. */
const servers = new Map<Mode, TestServer>();
const serverOf = (mode: Mode): TestServer => servers.get(mode) as TestServer;
beforeAll(async () => {
  for (const mode of MODES) {
    const args = ["--host", "0.0.0.0", "--metrics-access", mode, "--trust-proxy", "10.0.0.0/8"];
    servers.set(mode, await startTestServer({ manualClock: true, args }));
  }
});
afterAll(async () => {
  for (const server of servers.values()) await server.stop();
});

/** The server's URL by another address of this machine. */
function urlAt(server: TestServer, host: string): string {
  const url = new URL(server.url);
  url.hostname = host;
  return url.origin;
}

/** The statuses of the three paths. */
async function statuses(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number[]> {
  const found: number[] = [];
  for (const path of PATHS) {
    const lines = Object.entries({ Host: new URL(url).host, ...headers }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    const answer = await sendRaw(url, [`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`]);
    found.push(answer?.status ?? 0);
  }
  return found;
}

describe("responses of the health endpoints", () => {
  test("while the server serves", async () => {
    const server = serverOf("loopback");
    const local = server.client(null);
    const alive = await local.get("/healthz");
    expect([alive.status, alive.text]).toEqual([200, '{"status":"ok"}']);
    const ready = await local.get("/readyz");
    expect([ready.status, ready.text]).toEqual([200, '{"status":"ready"}']);
    for (const path of PATHS) {
      const head = await local.send("HEAD", path);
      expect([head.status, head.text]).toEqual([200, ""]);
      expectError(await local.post(path), "not_found");
    }
  });

  test("are not part of the API document", async () => {
    const { body } = await serverOf("loopback").client(null).get("/openapi.json");
    const paths = Object.keys(body["paths"] as object);
    expect(paths).toContain("/v1/ping");
    expect(paths.filter((path) => (PATHS as readonly string[]).includes(path))).toEqual([]);
  });
});

describe("access to health and metrics", () => {
  const ALL = [200, 200, 200];
  const NONE = [404, 404, 404];
  const HEALTH = [200, 200, 404];

  /** Every kind of unauthorized caller, and what the modes show to all of them. */
  const strangers: readonly (readonly [name: string, headers: Record<string, string>])[] = [
    ["through a proxy on this machine", { "X-Forwarded-For": "203.0.113.9" }],
    ["through one that claims to be this machine's client", { "X-Forwarded-For": "127.0.0.1" }],
    ["through one that sends an empty list", { "X-Forwarded-For": "" }],
    ["through one with the standard header", { Forwarded: "for=127.0.0.1" }],
    ["through one that names the address only", { "X-Real-IP": "127.0.0.1" }],
    ["through one that names the host only", { "x-forwarded-host": "api.example.com" }],
    ["through one that names itself", { Via: "1.1 proxy" }],
    ["through a content delivery network's tunnel", { "CF-Connecting-IP": "203.0.113.9" }],
    ["from a page in a browser on this machine", { Origin: "https://app.example.com" }],
    ["under the name that the world knows", { Host: "api.example.com" }],
    ["under a name that begins like this machine's", { Host: "localhost.example.com" }],
    ["under the address of another machine", { Host: "127.0.0.1.example.com:9909" }],
    ["with an invalid key", { "X-Forwarded-For": "203.0.113.9", Authorization: "Bearer sm_none" }],
    ["with another scheme", { "X-Forwarded-For": "203.0.113.9", Authorization: "Basic b3A6b3A=" }],
  ];
  /** A load balancer on another machine reads whether the server is ready. */
  const READINESS = [404, 200, 404];
  const toStrangers: Record<Mode, number[]> = {
    loopback: READINESS,
    health: HEALTH,
    operator: NONE,
    public: ALL,
  };

  test.each(MODES)("%s: direct requests from this machine", async (mode) => {
    const server = serverOf(mode);
    const url = urlAt(server, "127.0.0.1");
    const expected = mode === "operator" ? NONE : ALL;
    expect(await statuses(url)).toEqual(expected);
    expect(await statuses(url, { Host: "LOCALHOST:9909" })).toEqual(expected);
    expect(await statuses(url, { Host: "[::1]:9909" })).toEqual(expected);
    expect(await statuses(url, { Host: "127.1.2.3" })).toEqual(expected);
  });

  for (const [name, headers] of strangers) {
    test.each(MODES)(`%s: ${name}`, async (mode) => {
      expect(await statuses(urlAt(serverOf(mode), "127.0.0.1"), headers)).toEqual(toStrangers[mode]);
    });
  }

  const outer = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address;
  if (outer !== undefined) {
    test.each(MODES)("%s: from another address of this machine", async (mode) => {
      const url = urlAt(serverOf(mode), outer);
      expect(await statuses(url)).toEqual(toStrangers[mode]);
      expect(await statuses(url, { Host: "localhost" })).toEqual(toStrangers[mode]);
    });
  }

  test.each(MODES)("%s: with the operator's key, from anywhere", async (mode) => {
    const server = serverOf(mode);
    const headers = { Authorization: `Bearer ${server.key}`, "X-Forwarded-For": "203.0.113.9" };
    expect(await statuses(urlAt(server, "127.0.0.1"), headers)).toEqual(ALL);
    // As a managed key of the account with every scope, which may use the operator API too.
    const created = await server.operator.post("/v1/keys", {
      prefix: "sm",
      name: "prometheus",
      scopes: ["*"],
    });
    const managed = { ...headers, Authorization: `Bearer ${String(created.body["secret"])}` };
    expect(await statuses(urlAt(server, "127.0.0.1"), managed)).toEqual(ALL);
  });

  test.each(MODES)("%s: with a key that is not the operator's", async (mode) => {
    const server = serverOf(mode);
    const weak = await server.operator.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["meter:*"] });
    for (const key of [(await server.account()).key, String(weak.body["secret"])]) {
      const headers = { Authorization: `Bearer ${key}`, "X-Forwarded-For": "203.0.113.9" };
      expect(await statuses(urlAt(server, "127.0.0.1"), headers)).toEqual(toStrangers[mode]);
    }
  });

  test("a suspended operator's key has no access", async () => {
    const server = serverOf("operator");
    const second = await server.account({ tier: "unlimited" });
    const headers = { Authorization: `Bearer ${second.key}` };
    expect(await statuses(urlAt(server, "127.0.0.1"), headers)).toEqual(ALL);
    await server.operator.patch(`/v1/admin/accounts/${second.userId}`, { suspended: true });
    expect(await statuses(urlAt(server, "127.0.0.1"), headers)).toEqual(NONE);
  });

  test("without access the response is the 404 of an unknown path", async () => {
    const client = serverOf("operator").client(null);
    const shown = async (path: string) => {
      const { status, text, headers } = await client.get(path);
      const names = [...headers.keys()].sort();
      return { status, names, text: text.replaceAll(path.slice(1), "…").replace(/[0-9a-f-]{36}/, "…") };
    };
    for (const path of PATHS) expect(await shown(path)).toEqual(await shown("/unknown"));
  });
});

test("requests through a proxy never count as loopback", async () => {
  const server = await startTestServer({ manualClock: true, args: ["--trust-proxy", "127.0.0.1"] });
  try {
    const local = server.client(null);
    for (const forwarded of ["203.0.113.9", "127.0.0.1", "127.0.0.1, 127.0.0.1", "nonsense"]) {
      expectError(await local.get("/metrics", { headers: { "x-forwarded-for": forwarded } }), "not_found");
    }
    expect((await scrape(local)).counts("ninefold_http_requests_total")).toMatchObject({
      "metrics.read 404": 4,
    });
  } finally {
    await server.stop();
  }
});

test("over IPv6", async () => {
  const server = await startTestServer({ manualClock: true, args: ["--host", "::1"] });
  try {
    for (const path of PATHS) {
      expect((await server.client(null).get(path)).status).toBe(200);
      const byProxy = await server.client(null).get(path, { headers: { via: "1.1 proxy" } });
      if (path === "/readyz") expect([byProxy.status, byProxy.text]).toEqual([200, '{"status":"ready"}']);
      else expectError(byProxy, "not_found");
    }
  } finally {
    await server.stop();
  }
});
