import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setSystemTime, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { Webhook as Svix } from "svix";
import { GRACE_HOURS_MAX } from "../../../../src/areas/relay/deliveries/schema.ts";
import { signingSecret } from "../../../../src/kernel/outbound/signing.ts";
import { VALID_SECRETS_MAX } from "../../../../src/kernel/outbound/webhook-secrets.ts";
import { endpoint } from "../../../support/scenario.ts";
import {
  type AccountClient,
  startTestServer,
  TEST_START_MS,
  type TestServer,
} from "../../../support/server.ts";
import { isSigned, type Received, WebhookSink } from "../../../support/webhook-sink.ts";

const HOUR = 3_600_000;
const OWN = signingSecret(new Uint8Array(24).fill(9));

let server: TestServer;
let account: AccountClient;
const sink = new WebhookSink();
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
beforeEach(async () => {
  account = await server.account();
  sink.take();
  sink.answersBy(() => 200);
});
afterEach(() => void setSystemTime());
afterAll(async () => {
  await server.stop();
  sink.stop();
});

/** Whether the standard libraries accept a request, at the time of its receipt. */
function isTaken({ headers, body }: Received, secret: string): boolean {
  setSystemTime(server.clock.now());
  const given = Object.fromEntries(headers as unknown as Iterable<[string, string]>);
  const verdicts = [
    () => new Webhook(secret).verify(body, given, { jsonParse: false }),
    () => new Svix(secret).verify(body, given),
  ].map((verify) => {
    try {
      verify();
      return true;
    } catch (error) {
      expect(String(error)).toContain("No matching signature found");
      return false;
    }
  });
  expect(new Set(verdicts).size).toBe(1);
  return verdicts[0] === true;
}

async function revealed(client = account): Promise<string> {
  const answer = await client.post("/v1/relay/secret");
  expect(answer.status).toBe(200);
  return String(answer.body["secret"]);
}

async function rotated(body: object = {}): Promise<string> {
  const answer = await account.post("/v1/relay/secret/rotate", body);
  expect(answer.status, answer.text).toBe(200);
  return String(answer.body["secret"]);
}

/** Sends one delivery now. */
async function delivered(change: object = {}): Promise<Received> {
  const body = { target_url: sink.url("/hook"), method: "POST", delay: "0s", payload: { n: "ü" }, ...change };
  const answer = await account.post("/v1/relay", body);
  expect(answer.status, answer.text).toBe(201);
  await server.clock.advance(0);
  const [received, ...more] = sink.take();
  if (received === undefined || more.length > 0) throw new Error(`${more.length} more than one came`);
  expect(received.headers.get("webhook-id")).toBe(String(answer.body["relay_id"]));
  return received;
}

function signaturesOf({ headers }: Received): number {
  return (headers.get("webhook-signature") ?? "").split(" ").length;
}

describe("POST /v1/relay/secret", () => {
  endpoint(() => server, "POST /v1/relay/secret", [
    {
      name: "creates a secret on first use",
      request: ["POST", "/v1/relay/secret"],
      status: 200,
      holds: { previous: [] },
      after: async ({ account: owner }, { body, headers }) => {
        expect(body["secret"]).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
        expect(headers.get("cache-control")).toBe("no-store");
        expect((await owner.post("/v1/relay/secret")).body).toEqual(body);
      },
    },
    {
      name: "no key",
      as: "nobody",
      request: ["POST", "/v1/relay/secret"],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "a too long Idempotency-Key",
      request: ["POST", "/v1/relay/secret"],
      headers: { "idempotency-key": "k".repeat(256) },
      status: 400,
      code: "validation_error",
    },
    {
      name: "an Idempotency-Key of another request",
      request: ["POST", "/v1/relay/secret"],
      headers: { "idempotency-key": "once" },
      before: ({ account: owner }) =>
        owner.post("/v1/gate", { flag_key: "a", enabled: true }, { headers: { "idempotency-key": "once" } }),
      status: 409,
      code: "conflict",
    },
  ]);

  test("each project has a separate secret; a read-only key cannot get it", async () => {
    const project = await account.post("/v1/projects", { name: "Shop" });
    const key = async (scopes: readonly string[]) => {
      const terms = { prefix: "sm", name: "k", scopes };
      const created = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
      return server.client(String(created.body.secret));
    };
    const own = await (await key(["relay:write"])).post("/v1/relay/secret");
    expect(own.body["secret"]).not.toBe(await revealed());
    const reader = await (await key(["relay:read"])).post("/v1/relay/secret");
    expect([reader.status, reader.body["code"]]).toEqual([403, "forbidden"]);
  });

  test("it is not in plain text in the database file", async () => {
    const secret = await revealed();
    for (const name of ["ninefold.db", "ninefold.db-wal"]) {
      const bytes = Buffer.from(await Bun.file(`${server.folder}/${name}`).arrayBuffer());
      expect(bytes.includes(secret.slice("whsec_".length))).toBe(false);
    }
  });
});

describe("POST /v1/relay/secret/rotate", () => {
  const path = "/v1/relay/secret/rotate";
  const rotation = (body: object) => ["POST", path, body] as const;
  endpoint(() => server, `POST ${path}`, [
    {
      name: "a generated secret with the default grace period",
      request: rotation({}),
      status: 200,
      holds: { previous_expires_at: TEST_START_MS + 24 * HOUR },
      spent: 1,
      after: async ({ account: owner }, { body, headers }) => {
        expect(headers.get("cache-control")).toBe("no-store");
        expect((await owner.post("/v1/relay/secret")).body).toEqual({
          secret: body["secret"],
          created_at: TEST_START_MS,
          previous: [{ expires_at: TEST_START_MS + 24 * HOUR }],
        });
      },
    },
    {
      name: "a given secret with the longest grace period",
      request: rotation({ grace_hours: GRACE_HOURS_MAX, secret: OWN }),
      status: 200,
      body: { secret: OWN, previous_expires_at: TEST_START_MS + GRACE_HOURS_MAX * HOUR },
      spent: 1,
    },
    {
      name: "no grace period",
      request: rotation({ grace_hours: 0 }),
      status: 200,
      holds: { previous_expires_at: TEST_START_MS },
      spent: 1,
      after: async ({ account: owner }) =>
        expect((await owner.post("/v1/relay/secret")).body["previous"]).toEqual([]),
    },
    ...[-1, GRACE_HOURS_MAX + 1, 1.5, "1"].map((grace_hours) => ({
      name: `a grace of ${JSON.stringify(grace_hours)}`,
      request: rotation({ grace_hours }),
      status: 400,
      code: "validation_error",
    })),
    ...["whsec_", "whsec_AA==", "sm_x", signingSecret(new Uint8Array(65)), 7].map((secret) => ({
      name: `the secret ${JSON.stringify(secret).slice(0, 20)}`,
      request: rotation({ secret }),
      status: 400,
      code: "validation_error",
    })),
    { name: "no key", as: "nobody", request: rotation({}), status: 401, code: "unauthorized" },
    {
      name: "no credits",
      account: { balance: 0 },
      request: rotation({}),
      status: 402,
      code: "insufficient_balance",
    },
    {
      name: "an Idempotency-Key of another request",
      request: rotation({}),
      headers: { "idempotency-key": "once" },
      before: ({ account: owner }) =>
        owner.post(path, { grace_hours: 1 }, { headers: { "idempotency-key": "once" } }),
      status: 409,
      code: "conflict",
    },
  ]);

  test("the old secret also signs in the grace period, over a restart; then only the new one", async () => {
    const old = await revealed();
    const secret = await rotated({ grace_hours: 2 });
    await server.clock.advance(2 * HOUR - 1);
    const within = await delivered();
    expect([isTaken(within, old), isTaken(within, secret), signaturesOf(within)]).toEqual([true, true, 2]);
    await server.restart();
    const { key, userId, email } = account;
    account = new (account.constructor as typeof AccountClient)(server.url, key ?? "", userId, email);
    const restarted = await delivered();
    expect([isTaken(restarted, old), isTaken(restarted, secret)]).toEqual([true, true]);
    await server.clock.advance(1);
    const after = await delivered();
    expect([isTaken(after, old), isTaken(after, secret), signaturesOf(after)]).toEqual([false, true, 1]);
  });

  test(`${VALID_SECRETS_MAX} secrets are valid at most: the oldest expires; a later rotation does not extend a grace period`, async () => {
    const secrets = [await revealed()];
    for (const grace_hours of [100, 50, 168]) secrets.push(await rotated({ grace_hours }));
    const received = await delivered();
    expect(secrets.map((secret) => isTaken(received, secret))).toEqual([false, true, true, true]);
    const { previous } = (await account.post("/v1/relay/secret")).body as {
      previous: { expires_at: number }[];
    };
    expect(previous.map(({ expires_at }) => (expires_at - server.clock.now()) / HOUR)).toEqual([168, 50]);
  });

  test("the same secret, given again, signs once", async () => {
    await rotated({ secret: OWN });
    await rotated({ secret: OWN });
    const received = await delivered();
    expect([isTaken(received, OWN), signaturesOf(received)]).toEqual([true, 2]);
  });

  test("rejected without credits, it changes nothing, also not in memory", async () => {
    const secret = await revealed();
    const { balance } = (await account.get("/v1/meter/balance")).body as { balance: number };
    await account.post("/v1/meter/deduct", { amount: balance });
    expect((await account.post("/v1/relay/secret/rotate", {})).status).toBe(402);
    expect(await revealed()).toBe(secret);
  });
});

describe("signatures", () => {
  test("of a delivery, next to the old signature, with the attempt's time", async () => {
    const received = await delivered();
    expect(isSigned(received, account.key ?? "")).toBe(true);
    expect(received.headers.get("webhook-timestamp")).toBe(String(Math.floor(server.clock.now() / 1_000)));
    expect(isTaken(received, await revealed())).toBe(true);
    expect(isTaken({ ...received, body: `${received.body} ` }, await revealed())).toBe(false);
  });

  test("of a delivery without a body, and of one with bytes", async () => {
    expect(isTaken(await delivered({ method: "GET" }), await revealed())).toBe(true);
    const body_base64 = Buffer.from("<naïve/>").toString("base64");
    const received = await delivered({ payload: undefined, body_base64 });
    expect(isTaken(received, await revealed())).toBe(true);
    expect(isSigned(received, account.key ?? "")).toBe(true);
  });

  test("replace a caller's headers of the same names, in any spelling", async () => {
    const names = ["webhook-id", "Webhook-Signature", "WEBHOOK_TIMESTAMP", "webhook_id", "webhook-other"];
    const received = await delivered({ headers: Object.fromEntries(names.map((name) => [name, "theirs"])) });
    const theirs = [...received.headers.entries()].filter(([, value]) => value.includes("theirs"));
    expect(theirs).toEqual([["webhook-other", "theirs"]]);
    expect(isTaken(received, await revealed())).toBe(true);
  });

  test("of each attempt are new, under the same id", async () => {
    sink.answers(500, 200);
    await account.post("/v1/relay", {
      target_url: sink.url(),
      method: "POST",
      delay: "0s",
      retry_schedule: ["5s"],
    });
    await server.clock.advance(6_000);
    const received = sink.take();
    expect(new Set(received.map(({ headers }) => headers.get("webhook-id"))).size).toBe(1);
    expect(new Set(received.map(({ headers }) => headers.get("webhook-timestamp"))).size).toBe(2);
    const secret = await revealed();
    expect(received.map((one) => isTaken(one, secret))).toEqual([true, true]);
  });

  test("of a monitor's alert", async () => {
    sink.answersBy(({ path }) => (path === "/alerts" ? 200 : 500));
    const monitor = { url: sink.url("/health"), interval: 60_000, webhook_url: sink.url("/alerts") };
    const { body } = await account.post("/v1/pulse", monitor);
    await server.clock.advance(6_000);
    await account.delete(`/v1/pulse/${body["id"]}`);
    const alert = sink.take().find(({ path }) => path === "/alerts");
    if (alert === undefined) throw new Error("no alert came");
    expect(alert.headers.get("webhook-id")).toBe(String(alert.headers.get("x-svc-delivery-id")));
    expect(isTaken(alert, await revealed())).toBe(true);
  });

  test("of a bucket's event, forwarded and replayed, under its id", async () => {
    const bucket = (await account.post("/v1/catch/buckets", { target_url: sink.url() })).body["id"];
    await account.patch(`/v1/catch/buckets/${bucket}`, { state: "live" });
    const caught = await account.post(`/v1/catch/${bucket}`, "not json", {
      headers: { "webhook-id": "theirs" },
    });
    await server.clock.advance(1);
    await account.post(`/v1/catch/${bucket}/events/${caught.body["event_id"]}/replay`);
    const received = sink.take();
    expect(received.map(({ headers }) => headers.get("webhook-id"))).toEqual(
      Array(2).fill(String(caught.body["event_id"])),
    );
    const secret = await revealed();
    expect(received.map((one) => isTaken(one, secret))).toEqual([true, true]);
  });

  test("of a project's first concurrent deliveries, all by one secret", async () => {
    const body = { target_url: sink.url(), method: "POST", delay: "0s" };
    await Promise.all(Array.from({ length: 20 }, () => account.post("/v1/relay", body)));
    await server.clock.advance(0);
    const received = sink.take();
    const secret = await revealed();
    expect(received.map((one) => isTaken(one, secret))).toEqual(Array(20).fill(true));
  });
});

test("the secret is deleted with its project", async () => {
  const project = await account.post("/v1/projects", { name: "Shop" });
  const terms = { prefix: "sm", name: "k", scopes: ["*"] };
  const created = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
  const rows = server.server.kernel.db.number("SELECT count(*) AS n FROM relay_project_secrets");
  const before = rows();
  await server.client(String(created.body.secret)).post("/v1/relay/secret");
  expect(rows()).toBe(before + 1);
  await account.delete(`/v1/projects/${project.body.id}`);
  await server.clock.advance(1_000);
  expect(rows()).toBe(before);
});
