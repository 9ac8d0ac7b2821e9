import { beforeEach, describe, expect, test } from "bun:test";
import { SECRET_FIELDS } from "../../src/areas/relay/endpoints/secret-settings.ts";
import type { Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { customerOf, OWNER } from "../support/portal.ts";
import { type AccountClient, useTestServer } from "../support/server.ts";

const server = useTestServer({ manualClock: true, args: ["--allow-private-targets", "all"] });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
});

const HERE = "https://here.example.com/hooks";
const BESIDE = "https://here.example.com/other?x=1";
const ELSEWHERE = "https://elsewhere.example.com/hooks";
const SECRET = "Bearer very-secret-value-4711";
const HEADERS = { Authorization: SECRET };

/** A resource whose stored secret is sent to a URL that can be changed. */
interface Bound {
  readonly update: string;
  readonly create: string;
  readonly body: object;
  readonly id: string;
  readonly field: string;
  readonly secret: Readonly<Record<string, unknown>>;
  /** Scopes that can change it, and cannot read the secret. */
  readonly scopes: readonly string[];
}

const BOUND: readonly Bound[] = [
  {
    update: "PATCH /v1/relay/endpoints/{endpoint_id}",
    create: "/v1/relay/endpoints",
    body: { url: HERE, headers: HEADERS },
    id: "endpoint_id",
    field: "url",
    secret: { headers: HEADERS },
    scopes: ["relay:read", "relay:write"],
  },
  {
    update: "PATCH /v1/relay/schedules/{schedule_id}",
    create: "/v1/relay/schedules",
    body: { cron: "0 3 * * *", target_url: HERE, headers: HEADERS },
    id: "schedule_id",
    field: "target_url",
    secret: { headers: HEADERS },
    scopes: ["relay:read", "relay:write"],
  },
  {
    update: "PUT /v1/pulse/{monitorId}",
    create: "/v1/pulse",
    body: { url: HERE, interval: 60_000, headers: HEADERS },
    id: "id",
    field: "url",
    secret: { headers: HEADERS },
    scopes: ["pulse:read", "pulse:write"],
  },
  {
    update: "PATCH /v1/catch/buckets/{bucket_id}",
    create: "/v1/catch/buckets",
    body: { target_url: HERE, provider: "gitlab", signing_secret: SECRET },
    id: "id",
    field: "target_url",
    secret: { signing_secret: SECRET },
    scopes: ["catch:write"],
  },
];

test("every secret setting of an endpoint has a row", () => {
  const rows = BOUND.filter(({ create }) => create === "/v1/relay/endpoints");
  expect(rows.flatMap(({ secret }) => Object.keys(secret)).sort()).toEqual([...SECRET_FIELDS].sort());
});

async function keyWith(scopes: readonly string[]): Promise<Client> {
  const { body, text } = await account.post("/v1/keys", { prefix: "sm", name: "narrow", scopes });
  if (body["secret"] === undefined) throw new Error(text);
  return server.client(String(body["secret"]));
}

async function make({ create, body, id, update }: Bound): Promise<{ method: string; path: string }> {
  const created = await account.post(create, body);
  expect(created.status, created.text).toBe(201);
  const [method = "", path = ""] = update.split(" ");
  return { method, path: path.replace(/\{\w+\}/, String(created.body[id])) };
}

describe.each(BOUND.map((one) => [one.update, one] as const))("%s", (_, bound) => {
  const { field, secret, scopes } = bound;

  test("moves a secret to another origin only with the secret", async () => {
    const { method, path } = await make(bound);
    const key = await keyWith(scopes);
    for (const moved of [
      ELSEWHERE,
      HERE.replace("https:", "http:"),
      HERE.replace(".com", ".com:8443"),
      HERE.replace("here", "x.here"),
    ]) {
      const rejected = await key.send(method, path, { [field]: moved });
      expect([moved, rejected.status, rejected.body["code"]]).toEqual([moved, 409, "conflict"]);
      expect(rejected.text).toContain(Object.keys(secret)[0] ?? "");
    }
    expect((await account.get(path)).body[field]).toBe(HERE);
    expect((await key.send(method, path, { [field]: HERE, ...secret })).status).toBe(200);
    expect((await key.send(method, path, { [field]: ELSEWHERE, ...secret })).status).toBe(200);
    expect((await account.get(path)).body[field]).toBe(ELSEWHERE);
  });

  test("changes the URL within its origin, and everything else", async () => {
    const { method, path } = await make(bound);
    const key = await keyWith(scopes);
    expect((await key.send(method, path, { [field]: BESIDE })).status).toBe(200);
    expect((await key.send(method, path, { name: "renamed" })).status).toBe(200);
    expect((await account.get(path)).body[field]).toBe(BESIDE);
  });

  test("moves what has no secret, or with a key that has every scope", async () => {
    const { method, path } = await make(bound);
    expect((await account.send(method, path, { [field]: ELSEWHERE })).status).toBe(200);
    const none = Object.fromEntries(Object.keys(secret).map((name) => [name, undefined]));
    const free = await make({ ...bound, body: { ...bound.body, ...none } });
    const key = await keyWith(scopes);
    expect((await key.send(free.method, free.path, { [field]: ELSEWHERE })).status).toBe(200);
  });

  test("does not return the secret to a key that has not sent it", async () => {
    const { method, path } = await make(bound);
    const key = await keyWith(scopes);
    const { status, text } = await key.send(method, path, { name: "renamed" });
    expect(status).toBe(200);
    expect(text).not.toContain(SECRET);
  });
});

test("every update of a URL and of headers is among them", () => {
  const found = server.server.app.http.routes.flatMap(({ method, path, body }) => {
    const names = Object.keys(body?.properties ?? {});
    const isUpdate = method === "PATCH" || method === "PUT";
    const hasBoth = names.includes("headers") && names.some((name) => /(^|_)url$/.test(name));
    return isUpdate && hasBoth ? [`${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`] : [];
  });
  expect(found.sort()).toEqual(
    BOUND.filter(({ secret }) => "headers" in secret)
      .map(({ update }) => update)
      .sort(),
  );
});

test("a schedule of messages that has headers gets a URL only with them", async () => {
  const body = { cron: "0 3 * * *", event_type: "order.paid", headers: HEADERS };
  const created = await account.post("/v1/relay/schedules", body);
  expect(created.status, created.text).toBe(201);
  const key = await keyWith(["relay:read", "relay:write"]);
  const path = `/v1/relay/schedules/${created.body["schedule_id"]}`;
  expectError(await key.patch(path, { target_url: ELSEWHERE }), "conflict");
  expect((await key.patch(path, { target_url: ELSEWHERE, headers: {} })).status).toBe(200);
});

test("new targets of a bucket get a sender's token only from a key that can read it", async () => {
  const { path } = await make(BOUND.at(-1) as Bound);
  const endpoint = await account.post("/v1/relay/endpoints", { url: ELSEWHERE });
  const targets = [{ endpoint_id: endpoint.body["endpoint_id"] }];
  const writer = await keyWith(["catch:write"]);
  expectError(await writer.patch(path, { target_url: null, targets }), "conflict");
  const reader = await keyWith(["catch:read", "catch:write"]);
  expect((await reader.patch(path, { target_url: null, targets })).status).toBe(200);
  expect((await writer.patch(path, { targets })).status).toBe(200);
});

describe("a sender's token of a bucket", () => {
  const custom = { header: "X-Token", algorithm: "token" };
  const hashed = { header: "X-Token", algorithm: "hmac-sha256", encoding: "hex", template: "{body}" };
  const body = { target_url: HERE, provider: "custom", signature: custom, signing_secret: SECRET };

  test.each<[string, object]>([
    ["with the target's move", { signing_secret: null, target_url: ELSEWHERE }],
    ["before the target's move", { signing_secret: null }],
    ["by another recipe", { signature: hashed, signing_secret: "another-secret" }],
  ])("stays verified, which keys that cannot read it do not end %s", async (_, change) => {
    const { path } = await make({ ...(BOUND.at(-1) as Bound), body });
    const rejected = await (await keyWith(["catch:write"])).patch(path, change);
    expectError(rejected, "conflict");
    expect(rejected.text).toContain("catch:read");
    const reader = await keyWith(["catch:read", "catch:write"]);
    expect((await reader.patch(path, change)).status).toBe(200);
  });

  test("that is valid for some more time stays, too", async () => {
    const { path } = await make({ ...(BOUND.at(-1) as Bound), body });
    const expires = new Date(server.clock.now() + 86_400_000).toISOString();
    const rotated = { previous_signing_secret: SECRET, previous_expires_at: expires, signing_secret: "new" };
    expect((await account.patch(path, rotated)).status).toBe(200);
    const writer = await keyWith(["catch:write"]);
    const move = { signing_secret: "newer", target_url: ELSEWHERE };
    expectError(await writer.patch(path, move), "conflict");
    expect((await writer.patch(path, { ...move, previous_signing_secret: null })).status).toBe(200);
  });

  test("can be replaced by another one, since its sender's events are no longer valid", async () => {
    const { path } = await make({ ...(BOUND.at(-1) as Bound), body });
    const change = { signing_secret: "another-secret", signature: custom };
    expect((await (await keyWith(["catch:write"])).patch(path, change)).status).toBe(200);
  });
});

test("an endpoint that gets a sender's token from a bucket is moved only by a key that can read it", async () => {
  const endpoint = await account.post("/v1/relay/endpoints", { url: HERE });
  const targets = [{ endpoint_id: endpoint.body["endpoint_id"] }];
  const bucket = await account.post("/v1/catch/buckets", {
    targets,
    provider: "gitlab",
    signing_secret: SECRET,
  });
  expect(bucket.status, bucket.text).toBe(201);
  const path = `/v1/relay/endpoints/${endpoint.body["endpoint_id"]}`;
  const writer = await keyWith(["relay:read", "relay:write"]);
  expectError(await writer.patch(path, { url: ELSEWHERE }), "conflict");
  expect((await writer.patch(path, { url: BESIDE })).status).toBe(200);
  const reader = await keyWith(["relay:write", "catch:read"]);
  expect((await reader.patch(path, { url: ELSEWHERE })).status).toBe(200);
});

describe("a customer with a portal link", () => {
  test("cannot move an endpoint with headers of the account, and learns nothing of keys", async () => {
    const created = await account.post("/v1/relay/endpoints", {
      url: HERE,
      owner_id: OWNER,
      headers: HEADERS,
    });
    const customer = await customerOf(server, account);
    const path = `/v1/relay/portal/endpoints/${created.body["endpoint_id"]}`;
    const rejected = await customer.patch(path, { url: ELSEWHERE });
    expectError(rejected, "conflict");
    expect(rejected.text).not.toMatch(/scope|key|account|Authorization/);
    expect((await customer.patch(path, { url: BESIDE, description: "Shop" })).status).toBe(200);
    // Headers are the account's: the customer cannot replace them.
    expectError(await customer.patch(path, { url: ELSEWHERE, headers: {} }), "conflict");
  });

  test("moves an endpoint whose headers hold no secret", async () => {
    const headers = { "Content-Type": "application/json", "User-Agent": "Shop/1" };
    const created = await account.post("/v1/relay/endpoints", { url: HERE, owner_id: OWNER, headers });
    const customer = await customerOf(server, account);
    const path = `/v1/relay/portal/endpoints/${created.body["endpoint_id"]}`;
    expect((await customer.patch(path, { url: ELSEWHERE })).status).toBe(200);
  });
});
