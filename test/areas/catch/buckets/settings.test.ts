import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { PREVIOUS_DAYS_MAX, RESPONSE_LENGTH_MAX } from "../../../../src/areas/catch/settings-schema.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import {
  accepted,
  balanceOf,
  bucketOf,
  eventOf,
  eventsOf,
  ingest,
  newBucket,
  stripeSignature,
} from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  const scale = { ...DEFAULT_TIERS.scale, requestsPerMinute: 1e6 };
  server = await startTestServer({ manualClock: true, config: { tiers: { ...DEFAULT_TIERS, scale } } });
});
afterAll(() => server.stop());

const TARGET = "https://hooks.example.com/in";
const HOUR_MS = 3_600_000;
const hmac = (body: string, secret = "s") => createHmac("sha256", secret).update(body).digest("hex");
const CUSTOM = {
  provider: "custom",
  signature: { header: "x-sig", algorithm: "hmac-sha256", template: "{body}" },
};

/** Sends a body to a bucket and returns the response. */
function post(bucketId: string, body = "{}", headers: Record<string, string> = {}) {
  return server.client(null).post(`/v1/catch/${bucketId}`, body, { headers });
}

describe("settings", () => {
  const later = (days: number) => new Date(server.clock.now() + days * 24 * HOUR_MS).toISOString();
  const refused: readonly (readonly [string, () => object, string])[] = [
    ["a mode of its own", () => ({ verification_mode: "drop" }), "verification_mode"],
    ["a status of 199", () => ({ response: { status: 199 } }), "response.status"],
    ["a status of 300", () => ({ response: { status: 300 } }), "response.status"],
    ["a page as a response", () => ({ response: { content_type: "text/html" } }), "response.content_type"],
    ["a long response", () => ({ response: { body: "x".repeat(RESPONSE_LENGTH_MAX + 1) } }), "response.body"],
    [
      "a response of many bytes",
      () => ({ response: { body: "€".repeat(RESPONSE_LENGTH_MAX / 2) } }),
      "response.body",
    ],
    ["another invalid_status", () => ({ invalid_status: 404 }), "invalid_status"],
    ["another overload_status", () => ({ overload_status: 500 }), "overload_status"],
    ["169 hours of deduplication", () => ({ deduplicate_hours: 169 }), "deduplicate_hours"],
    ["negative ones", () => ({ deduplicate_hours: -1 }), "deduplicate_hours"],
    ["no retention", () => ({ retention_hours: 0 }), "retention_hours"],
    ["more than the tier's", () => ({ retention_hours: 90 * 24 + 1 }), "retention_hours"],
    ["no methods", () => ({ methods: [] }), "methods"],
    ["a method twice", () => ({ methods: ["POST", "POST"] }), "methods"],
    ["a method that nobody has", () => ({ methods: ["BREW"] }), "methods.0"],
    ["a secret without its end", () => ({ previous_signing_secret: "x" }), "previous_expires_at"],
    ["an end without its secret", () => ({ previous_expires_at: later(1) }), "previous_signing_secret"],
    [
      "an end in the past",
      () => ({ previous_signing_secret: "x", previous_expires_at: later(0) }),
      "previous_expires_at",
    ],
    [
      "an end too far away",
      () => ({ previous_signing_secret: "x", previous_expires_at: later(PREVIOUS_DAYS_MAX + 0.001) }),
      "previous_expires_at",
    ],
    [
      "an end that is no time",
      () => ({ previous_signing_secret: "x", previous_expires_at: "soon" }),
      "previous_expires_at",
    ],
    ["custom without a recipe", () => ({ provider: "custom" }), "signature"],
    ["a recipe in addition to a preset", () => ({ ...CUSTOM, provider: "slack" }), "signature"],
    ["a recipe without a provider", () => ({ signature: CUSTOM.signature }), "signature"],
    [
      "a template without the body",
      () => ({ ...CUSTOM, signature: { ...CUSTOM.signature, template: "x" } }),
      "signature.template",
    ],
    [
      "a pointer of nine levels",
      () => ({ ...CUSTOM, signature: { ...CUSTOM.signature, event_id: "/a".repeat(9) } }),
      "signature.event_id",
    ],
    [
      "pairs without a key",
      () => ({ ...CUSTOM, signature: { ...CUSTOM.signature, pairs: "," } }),
      "signature.signature_key",
    ],
    [
      "a tolerance of more than a day",
      () => ({ ...CUSTOM, signature: { ...CUSTOM.signature, tolerance_seconds: 86_401 } }),
      "signature.tolerance_seconds",
    ],
    ["a URL without --public-url", () => ({ provider: "square" }), "provider"],
    [
      "the same in a recipe",
      () => ({ ...CUSTOM, signature: { ...CUSTOM.signature, template: "{url}{body}" } }),
      "signature",
    ],
    ["meta without a token", () => ({ provider: "meta" }), "challenge"],
    ["a token that no challenge uses", () => ({ ...CUSTOM, challenge: { token: "t" } }), "challenge.token"],
    ["a challenge of slack's", () => ({ provider: "slack", challenge: { query: "c" } }), "challenge"],
    ["a challenge without its name", () => ({ ...CUSTOM, challenge: { as: "text" } }), "challenge.query"],
    ["two kinds of challenges", () => ({ ...CUSTOM, challenge: { query: "c", pointer: "/c" } }), "challenge"],
    [
      "a pointer that is none",
      () => ({ ...CUSTOM, challenge: { pointer: "challenge" } }),
      "challenge.pointer",
    ],
    [
      "a pointer of nine levels",
      () => ({ ...CUSTOM, challenge: { pointer: "/a".repeat(9) } }),
      "challenge.pointer",
    ],
    [
      "a condition without a pointer",
      () => ({ ...CUSTOM, challenge: { query: "c", when: {} } }),
      "challenge.when",
    ],
    [
      "an unknown operator in a condition",
      () => ({ ...CUSTOM, challenge: { pointer: "/c", when: { a: { $no: 1 } } } }),
      "challenge.when.a.$no",
    ],
    ["no origins", () => ({ ...CUSTOM, challenge: { origins: [] } }), "challenge.origins"],
    [
      "an origin with a path",
      () => ({ ...CUSTOM, challenge: { origins: ["a.example/x"] } }),
      "challenge.origins.0",
    ],
    [
      "a field of origins",
      () => ({ ...CUSTOM, challenge: { origins: ["*"], as: "json", field: "f" } }),
      "challenge.field",
    ],
    [
      "a pointer of a provider with a challenge",
      () => ({ provider: "event-grid", challenge: { pointer: "/c" } }),
      "challenge",
    ],
    ["a recipe of mailgun's", () => ({ provider: "mailgun", signature: CUSTOM.signature }), "signature"],
    ["a field of a text", () => ({ ...CUSTOM, challenge: { query: "c", field: "f" } }), "challenge.field"],
  ];

  test.each(refused)("rejected: %s", async (_, terms, field) => {
    const account = await server.account();
    const answer = await account.post("/v1/catch/buckets", { target_url: TARGET, ...terms() });
    expect({ status: answer.status, fields: Object.keys(answer.body["fields"] ?? {}) }).toEqual({
      status: 400,
      fields: [field],
    });
    const [[message = ""] = []] = Object.values(answer.body["fields"] as Record<string, string[]>);
    expect(message).toMatch(/^[a-z]/);
  });

  test("are returned as set, except secrets, also after a restart; null restores the default", async () => {
    const account = await server.account();
    const set = {
      verification_mode: "reject",
      response: { status: 202, content_type: "text/plain", body: "ok" },
      invalid_status: 403,
      overload_status: 503,
      deduplicate_hours: 168,
      retention_hours: 90 * 24,
      methods: ["GET", "POST"],
      challenge: { query: "c", as: "json", field: "f" },
      signature: { ...CUSTOM.signature, tolerance_seconds: 86_400, event_id: "/a".repeat(8) },
    };
    const previous = {
      previous_signing_secret: "older-secret",
      previous_expires_at: later(PREVIOUS_DAYS_MAX),
    };
    const { id } = await newBucket(account, { ...CUSTOM, ...set, ...previous });
    const shown = {
      ...set,
      previous_expires_at: previous.previous_expires_at,
      challenge: { has_token: false, query: "c", as: "json", field: "f" },
    };
    const { text, body } = await account.get(`/v1/catch/buckets/${id}`);
    expect(body).toMatchObject(shown);
    expect(text).not.toContain("older-secret");
    await server.restart();
    const again = server.client(account.key);
    expect(await bucketOf(again, id)).toMatchObject(shown as never);
    const back = {
      response: null,
      invalid_status: null,
      retention_hours: null,
      challenge: null,
      previous_signing_secret: null,
    };
    const changed = await again.patch(`/v1/catch/buckets/${id}`, back);
    expect(changed.body).toMatchObject({
      response: null,
      invalid_status: 200,
      retention_hours: null,
      challenge: null,
      previous_expires_at: null,
      verification_mode: "reject",
      deduplicate_hours: 168,
    });
  });

  test("secrets and tokens are neither in the file nor in the audit log", async () => {
    const account = await server.account();
    const terms = { provider: "meta", challenge: { token: "very-secret-token" } };
    const { id } = await newBucket(account, {
      ...terms,
      previous_signing_secret: "very-old-secret",
      previous_expires_at: later(1),
    });
    await account.patch(`/v1/catch/buckets/${id}`, { challenge: { token: "very-new-token" } });
    const { text } = await account.get("/v1/audit?limit=10");
    expect(text).toContain(id);
    const file = await Bun.file(`${server.folder}/ninefold.db`).text();
    const log = await Bun.file(`${server.folder}/ninefold.db-wal`).text();
    for (const secret of ["very-secret-token", "very-old-secret", "very-new-token"])
      expect([text, file, log].map((where) => where.includes(secret))).toEqual([false, false, false]);
  });

  test("providers with Standard Webhooks are stored as standard", async () => {
    const account = await server.account();
    for (const provider of ["clerk", "resend", "gitlab-signed", "openai", "polar"])
      expect((await newBucket(account, { provider })).provider).toBe("standard");
  });
});

describe("invalid signatures", () => {
  test("reject: neither stored nor charged; valid ones are", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account, { ...CUSTOM, signing_secret: "s", verification_mode: "reject" });
    expect(await ingest(server, id, "{}", { "x-sig": "00" })).toEqual({
      status: "rejected",
      verification: "invalid",
    });
    expect(await balanceOf(account)).toBe(10);
    expect((await bucketOf(account, id)).events.failed).toBe(0);
    await accepted(server, id, "{}", { "x-sig": hmac("{}") });
    expect(await balanceOf(account)).toBe(9);
  });

  test("invalid_status, in both modes; 401 for Discord by default", async () => {
    const account = await server.account();
    for (const verification_mode of ["mark", "reject"]) {
      const { id } = await newBucket(account, {
        ...CUSTOM,
        signing_secret: "s",
        verification_mode,
        invalid_status: 403,
      });
      const answer = await post(id);
      expect(answer.status).toBe(403);
      expect(answer.body).toMatchObject({ status: verification_mode === "mark" ? "accepted" : "rejected" });
      expect((await post(id, "{}", { "x-sig": hmac("{}") })).status).toBe(200);
    }
    const discord = await newBucket(account, { provider: "discord", signing_secret: "00".repeat(32) });
    expect(discord.invalid_status).toBe(401);
    expect((await post(discord.id)).status).toBe(401);
    await account.patch(`/v1/catch/buckets/${discord.id}`, { invalid_status: 200 });
    expect((await post(discord.id)).status).toBe(200);
  });

  test("a replaced secret is valid until it expires, and only that one", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, { ...CUSTOM, signing_secret: "old" });
    const end = new Date(server.clock.now() + HOUR_MS).toISOString();
    const change = { signing_secret: "new", previous_signing_secret: "old", previous_expires_at: end };
    expect((await account.patch(`/v1/catch/buckets/${id}`, change)).status).toBe(200);
    const by = async (secret: string) =>
      (await ingest(server, id, "{}", { "x-sig": hmac("{}", secret) })).verification;
    expect([await by("old"), await by("new"), await by("other")]).toEqual(["valid", "valid", "invalid"]);
    await server.clock.advance(HOUR_MS);
    expect([await by("old"), await by("new")]).toEqual(["invalid", "valid"]);
  });
});

describe("the bucket's response", () => {
  test("is sent for accepted requests, with headers that prevent its use as a page", async () => {
    const account = await server.account();
    const body = "<?xml version='1.0'?><Response/>";
    const { id } = await newBucket(account, {
      response: { status: 201, content_type: "application/xml", body },
    });
    const answer = await post(id);
    expect([answer.status, answer.text]).toEqual([201, body]);
    expect(answer.headers.get("content-type")).toBe("application/xml");
    expect(answer.headers.get("content-security-policy")).toBe("sandbox");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    for (const status of [204, 205]) {
      await account.patch(`/v1/catch/buckets/${id}`, { response: { status } });
      // Not by the tests' client: the document names this range only in words.
      const sent = await fetch(`${server.url}/v1/catch/${id}`, { method: "POST", body: "{}" });
      expect([sent.status, await sent.text()]).toEqual([status, ""]);
    }
    expect((await eventsOf(account, id)).length).toBe(3);
  });

  test("is not sent for other requests", async () => {
    const account = await server.account({ balance: 1 });
    const { id } = await newBucket(account, { response: { body: "ok" } });
    expect((await post(id)).text).toBe("ok");
    expect((await post(id)).body).toEqual({ status: "insufficient_balance", verification: "none" });
  });
});

describe("requests beyond the limits", () => {
  test("get overload_status with Retry-After, for limit, panic mode and balance", async () => {
    const account = await server.account({ tier: "free", balance: 1 });
    const { id } = await newBucket(account, { overload_status: 503 });
    await post(id);
    const seen = new Map<string, unknown>();
    for (let count = 0; count < 5 * 60 + 2; count += 1) {
      const { status, body, headers } = await post(id);
      seen.set(String(body["status"]), [status, headers.get("retry-after")]);
    }
    expect(Object.fromEntries(seen)).toEqual({
      insufficient_balance: [503, "60"],
      rate_limited: [503, "60"],
      panic_mode: [503, "60"],
    });
  });
});

describe("deduplication", () => {
  const terms = { provider: "stripe", signing_secret: "s", deduplicate_hours: 1 };
  const send = (id: string, body: string) =>
    ingest(server, id, body, { "stripe-signature": stripeSignature(server, "s", body) });

  test("a repeat is free of charge, returns the first event and counts there; after the time it is new", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account, terms);
    const first = await send(id, '{"id":"evt_1","type":"a"}');
    expect(first.status).toBe("accepted");
    const repeat = { status: "duplicate", verification: "valid", event_id: String(first.event_id) } as const;
    expect(await send(id, '{"id":"evt_1","type":"b"}')).toEqual(repeat);
    await server.restart();
    expect(await send(id, '{"id":"evt_1"}')).toEqual(repeat);
    expect((await send(id, '{"id":"evt_2"}')).status).toBe("accepted");
    const owner = server.client(account.key);
    expect(await balanceOf(owner)).toBe(8);
    expect(await eventOf(owner, id, String(first.event_id))).toMatchObject({
      duplicates: 2,
      provider_event_id: "evt_1",
      event_type: "a",
      size_bytes: 25,
    });
    await server.clock.advance(HOUR_MS);
    expect((await send(id, '{"id":"evt_1"}')).status).toBe("accepted");
  });

  test("a forged event neither uses an id nor counts; one without an id is never a repeat", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, terms);
    const body = '{"id":"evt_1"}';
    expect((await ingest(server, id, body)).verification).toBe("invalid");
    const first = await send(id, body);
    expect(first.status).toBe("accepted");
    expect((await ingest(server, id, body)).status).toBe("accepted");
    expect((await eventOf(account, id, String(first.event_id))).duplicates).toBe(0);
    expect([(await send(id, "{}")).status, (await send(id, "{}")).status]).toEqual(["accepted", "accepted"]);
  });

  test("one of concurrent repeats is accepted, separately in each bucket", async () => {
    const account = await server.account();
    const [first, second] = [await newBucket(account, terms), await newBucket(account, terms)];
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(first.id, '{"id":"evt_1"}')));
    expect(answers.filter(({ status }) => status === "accepted").length).toBe(1);
    expect(new Set(answers.map(({ event_id }) => event_id)).size).toBe(1);
    expect((await send(second.id, '{"id":"evt_1"}')).status).toBe("accepted");
    await account.delete(`/v1/catch/buckets/${second.id}`);
    await server.clock.advance(2 * HOUR_MS);
    const { db } = server.server.kernel;
    expect(db.number("SELECT count(*) AS n FROM catch_seen")()).toBe(0);
  });
});

describe("retention", () => {
  test("of a bucket: older events are deleted within the hour", async () => {
    const account = await server.account();
    const [short, usual] = [await newBucket(account, { retention_hours: 2 }), await newBucket(account)];
    for (const { id } of [short, usual]) await accepted(server, id);
    await server.clock.advance(HOUR_MS);
    expect((await eventsOf(account, short.id)).length).toBe(1);
    await server.clock.advance(2 * HOUR_MS);
    expect((await eventsOf(account, short.id)).length).toBe(0);
    expect((await eventsOf(account, usual.id)).length).toBe(1);
  });
});
