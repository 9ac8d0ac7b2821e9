import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash, createHmac, generateKeyPairSync, sign } from "node:crypto";
import { connect } from "node:net";
import { join } from "node:path";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { eventually } from "../../../support/eventually.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import {
  balanceOf,
  bucketOf,
  eventOf,
  eventsOf,
  LOOPBACK_ALLOWED,
  newBucket,
  Receiver,
  setState,
} from "../support.ts";

const MIB = 1024 * 1024;
const PIECE = 256 * 1024;

/** A bucket of `starter` accepts 20 MiB within a minute. */
const TIERS = { ...DEFAULT_TIERS, starter: { ...DEFAULT_TIERS.starter, catchPerMinute: 20 } };

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED, config: { tiers: TIERS } });
});
afterAll(() => server.stop());
beforeEach(async () => {
  account = await server.account({ tier: "pro" });
});

/** Bytes of which no two pieces are equal. */
function bytesOf(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at + 4 <= length; at += 4)
    bytes.writeUInt32LE(Math.imul(at + seed, 2_654_435_761) >>> 0, at);
  return bytes;
}

async function sent(
  bucketId: string,
  body: Uint8Array | ReadableStream<Uint8Array>,
  headers: Readonly<Record<string, string>> = {},
) {
  const response = await fetch(`${server.url}/v1/in/${bucketId}`, { method: "POST", body, headers });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

async function stored(bucketId: string, body: Uint8Array | ReadableStream<Uint8Array>, headers = {}) {
  const answer = await sent(bucketId, body, headers);
  expect(answer).toMatchObject({ status: 200, body: { status: "accepted" } });
  return String(answer.body["event_id"]);
}

async function raw(bucketId: string, eventId: string): Promise<Buffer> {
  const response = await fetch(`${server.url}/v1/catch/${bucketId}/events/${eventId}/raw`, {
    headers: { authorization: `Bearer ${account.key}` },
  });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

/** A body without a declared length. */
function inChunks(bytes: Uint8Array, chunk = 100_000): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, at + chunk));
      at += chunk;
    },
  });
}

function pieces(): number {
  const db = new Database(join(server.folder, "ninefold.db"), { readonly: true });
  try {
    return (db.query("SELECT count(*) AS n FROM catch_pieces").get() as { n: number }).n;
  } finally {
    db.close();
  }
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

describe("a body above 1 MiB", () => {
  test.each([
    ["of 1 MiB and a byte", MIB + 1],
    ["of whole pieces", 2 * MIB],
    ["of 25 MiB", 25 * MIB],
  ])("%s is stored as sent, with and without a declared length", async (_, length) => {
    const { id } = await newBucket(account);
    const bytes = bytesOf(length);
    for (const body of [bytes, inChunks(bytes)]) {
      const event = await stored(id, body, { "content-type": "application/json" });
      expect((await raw(id, event)).equals(bytes)).toBe(true);
      const shown = await eventOf(account, id, event);
      expect(shown).toMatchObject({
        size_bytes: length,
        sha256: sha256(bytes),
        payload: null,
        payload_base64: null,
        raw_url: `/v1/catch/${id}/events/${event}/raw`,
      });
    }
  });

  test("of exactly 1 MiB is a usual one, which has its hash, too", async () => {
    const { id } = await newBucket(account);
    const bytes = bytesOf(MIB);
    const event = await stored(id, bytes);
    const shown = await eventOf(account, id, event);
    expect(shown).toMatchObject({ size_bytes: MIB, sha256: sha256(bytes) });
    expect(Buffer.from(String(shown.payload_base64), "base64").equals(bytes)).toBe(true);
    expect(shown).not.toHaveProperty("raw_url");
  });

  test("above the tier's size is rejected with 413, which its sender reads, and counted", async () => {
    const { id } = await newBucket(account);
    for (const body of [bytesOf(25 * MIB + 1), inChunks(bytesOf(25 * MIB + 1))])
      expect(await sent(id, body)).toMatchObject({ status: 413, body: { status: "too_large" } });
    expect(await bucketOf(account, id)).toMatchObject({ too_large: 2 });
    account = await server.account({ tier: "free" });
    const small = await newBucket(account);
    expect(await sent(small.id, bytesOf(MIB + 1))).toMatchObject({ status: 413 });
    expect((await sent(small.id, bytesOf(MIB))).status).toBe(200);
  });

  test("costs a credit for each MiB that has begun, as do its replays", async () => {
    const receiver = new Receiver();
    try {
      const { id } = await newBucket(account, { target_url: receiver.url });
      const before = await balanceOf(account);
      const event = await stored(id, bytesOf(3 * MIB + 1));
      expect(await balanceOf(account)).toBe(before - 4);
      await setState(account, id, "live");
      await server.clock.advance(0);
      const replay = () => account.post(`/v1/catch/${id}/events/${event}/replay`);
      expect((await replay()).body).toMatchObject({ status: "replayed" });
      expect(await balanceOf(account)).toBe(before - 8);
      receiver.respond = () => 500;
      expect((await replay()).body).toMatchObject({ status: "failed" });
      expect(await balanceOf(account)).toBe(before - 8);
      receiver.respond = () => 200;
      const started = await account.post(`/v1/catch/${id}/replays`, {});
      expect(started.status).toBe(202);
      await server.clock.advance(2_000);
      expect(await balanceOf(account)).toBe(before - 12);
    } finally {
      await receiver.stop();
    }
  });

  test("is not stored without the credits for all of it", async () => {
    account = await server.account({ tier: "pro", balance: 3 });
    const { id } = await newBucket(account);
    expect((await sent(id, bytesOf(3 * MIB + 1))).body).toMatchObject({ status: "insufficient_balance" });
    expect((await sent(id, inChunks(bytesOf(3 * MIB + 1)))).body).toMatchObject({
      status: "insufficient_balance",
    });
    expect(await balanceOf(account)).toBe(3);
    expect((await sent(id, bytesOf(3 * MIB))).body).toMatchObject({ status: "accepted" });
  });

  test("counts as the MiB that have begun against the bucket's rate limit", async () => {
    account = await server.account({ tier: "starter" });
    const { id } = await newBucket(account);
    const body = bytesOf(5 * MIB);
    for (let count = 0; count < 4; count += 1) await stored(id, body);
    expect((await sent(id, body)).body).toMatchObject({ status: "rate_limited" });
    await server.clock.advance(60_000);
    for (let count = 0; count < 3; count += 1) await stored(id, body);
    await stored(id, bytesOf(MIB));
    expect((await sent(id, inChunks(body))).body).toMatchObject({ status: "rate_limited" });
  });

  test("is forwarded and replayed byte for byte, with its length and valid signatures", async () => {
    const receiver = new Receiver();
    try {
      const { id } = await newBucket(account, { target_url: receiver.url });
      await setState(account, id, "live");
      const bytes = bytesOf(5 * MIB + 7);
      const event = await stored(id, bytes, { "content-type": "application/x-large" });
      await server.clock.advance(0);
      await eventually(() => expect(receiver.hits).toHaveLength(1));
      await account.post(`/v1/catch/${id}/events/${event}/replay`);
      for (const hit of receiver.hits) {
        expect(hit.body.equals(bytes)).toBe(true);
        expect(hit.headers.get("content-length")).toBe(String(bytes.length));
        expect(hit.headers.get("content-type")).toBe("application/x-large");
        const [, seconds, hex] =
          /^t=(\d+),v1=([0-9a-f]{64})$/.exec(hit.headers.get("x-svc-signature") ?? "") ?? [];
        const expected = createHmac("sha256", account.key ?? "")
          .update(`${seconds}.`)
          .update(bytes)
          .digest("hex");
        expect(hex).toBe(expected);
      }
      expect(receiver.hits).toHaveLength(2);
    } finally {
      await receiver.stop();
    }
  });

  test("goes to endpoints, whose filters see no members of it", async () => {
    const receiver = new Receiver();
    try {
      const { origin } = new URL(receiver.url);
      const endpoint = async (path: string, terms: object = {}) =>
        String(
          (await account.post("/v1/relay/endpoints", { url: `${origin}/${path}`, ...terms })).body[
            "endpoint_id"
          ],
        );
      const targets = [
        { endpoint_id: await endpoint("all") },
        { endpoint_id: await endpoint("some"), filter: { a: 1 } },
      ];
      const { id } = await newBucket(account, { target_url: null, targets });
      await setState(account, id, "live");
      const before = await balanceOf(account);
      const body = Buffer.from(`{"a":1,"pad":"${"x".repeat(2 * MIB)}"}`);
      const event = await stored(id, body);
      expect(await balanceOf(account)).toBe(before - 3);
      await server.clock.advance(0);
      await eventually(() => expect(receiver.hits).toHaveLength(1));
      expect(receiver.hits[0]?.path).toBe("/all");
      expect(receiver.hits[0]?.body.equals(body)).toBe(true);
      const [delivery] = (await eventOf(account, id, event)).deliveries;
      expect((await account.get(`/v1/relay/${delivery?.relay_id}/body`)).body).toMatchObject({ body: null });
    } finally {
      await receiver.stop();
    }
  });

  test("is signed as its endpoint says, except by Ed25519, which fails", async () => {
    const receiver = new Receiver();
    try {
      const { origin } = new URL(receiver.url);
      const endpoint = async (path: string, terms: object) =>
        String(
          (await account.post("/v1/relay/endpoints", { url: `${origin}/${path}`, ...terms })).body[
            "endpoint_id"
          ],
        );
      const hmac = { secret: "my-own-secret", signature: { scheme: "hmac-sha256-hex", header: "X-Own" } };
      const targets = [
        { endpoint_id: await endpoint("hmac", hmac) },
        { endpoint_id: await endpoint("ed", { signature: { scheme: "ed25519" } }) },
      ];
      const { id } = await newBucket(account, { target_url: null, targets, state: "live" });
      const bytes = bytesOf(MIB + 1);
      const event = await stored(id, bytes);
      await server.clock.advance(0);
      await eventually(() => expect(receiver.hits).toHaveLength(1));
      const expected = createHmac("sha256", "my-own-secret").update(bytes).digest("hex");
      expect(receiver.hits[0]?.headers.get("x-own")).toBe(expected);
      const { deliveries } = await eventOf(account, id, event);
      expect(deliveries.map(({ status, error }) => [status, error])).toEqual([
        ["delivered", null],
        ["failed", "the body is above 1 MiB"],
      ]);
    } finally {
      await receiver.stop();
    }
  });

  test("is found by what its first MiB contains, and has no preview", async () => {
    const { id } = await newBucket(account);
    const body = Buffer.alloc(3 * MIB, "-");
    body.write("needle-early", MIB - 100);
    body.write("needle-late", MIB + 100);
    await stored(id, body, { "content-type": "text/plain" });
    const found = async (q: string) =>
      (await account.get(`/v1/catch/${id}/events?q=${q}&details=true`)).body["events"] as {
        preview: unknown;
      }[];
    expect(await found("needle-early")).toMatchObject([{ preview: null }]);
    expect(await found("needle-late")).toEqual([]);
  });

  test("is exported with the path of its bytes", async () => {
    const { id } = await newBucket(account);
    const event = await stored(id, bytesOf(2 * MIB));
    const { text } = await account.get(`/v1/catch/${id}/events/export`);
    expect(JSON.parse(text)).toMatchObject({ payload: null, raw_url: `/v1/catch/${id}/events/${event}/raw` });
  });
});

describe("the signature of a body above 1 MiB", () => {
  const body = bytesOf(2 * MIB + 5);
  const custom = (signature: object) => ({ provider: "custom", signature });
  const verified = async (terms: object, headers: Readonly<Record<string, string>>, sentBody = body) => {
    const { id } = await newBucket(account, terms);
    return (await sent(id, sentBody, headers)).body["verification"];
  };

  test("is verified by HMAC, with what stands before and after the body, by the current and the previous secret", async () => {
    const signature = {
      header: "x-sig",
      algorithm: "hmac-sha512",
      encoding: "base64",
      template: "{id:x-id}.{body}.end",
    };
    const terms = {
      ...custom(signature),
      signing_secret: "current-secret",
      previous_signing_secret: "previous-secret",
      previous_expires_at: new Date(server.clock.now() + 3_600_000).toISOString(),
    };
    const by = (secret: string) => ({
      "x-id": "7",
      "x-sig": createHmac("sha512", secret).update("7.").update(body).update(".end").digest("base64"),
    });
    expect(await verified(terms, by("current-secret"))).toBe("valid");
    expect(await verified(terms, by("previous-secret"))).toBe("valid");
    expect(await verified(terms, by("other"))).toBe("invalid");
    const changed = Buffer.from(body);
    changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
    expect(await verified(terms, by("current-secret"), changed)).toBe("invalid");
  });

  test("is verified with a sender's preset", async () => {
    const hex = createHmac("sha256", "it-is-a-secret").update(body).digest("hex");
    const terms = { provider: "github", signing_secret: "it-is-a-secret" };
    expect(await verified(terms, { "x-hub-signature-256": `sha256=${hex}` })).toBe("valid");
  });

  test("is verified by ECDSA, and invalid with Ed25519", async () => {
    const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const pem = String(ec.publicKey.export({ type: "spki", format: "pem" }));
    const signature = { header: "x-sig", encoding: "base64", template: "{body}" };
    const sig = sign("sha256", body, ec.privateKey).toString("base64");
    const ecdsa = { ...custom({ ...signature, algorithm: "ecdsa-p256-sha256" }), signing_secret: pem };
    expect(await verified(ecdsa, { "x-sig": sig })).toBe("valid");
    expect(await verified(ecdsa, { "x-sig": sig.replace(/^.{8}/, "AAAAAAAA") })).toBe("invalid");
    const ed = generateKeyPairSync("ed25519");
    const edPem = String(ed.publicKey.export({ type: "spki", format: "pem" }));
    const edDsa = { ...custom({ ...signature, algorithm: "ed25519" }), signing_secret: edPem };
    const edSignature = sign(null, body, ed.privateKey).toString("base64");
    expect(await verified(edDsa, { "x-sig": edSignature })).toBe("invalid");
  });

  test("that is rejected stores nothing", async () => {
    const before = pieces();
    const { id } = await newBucket(account, {
      provider: "github",
      signing_secret: "s",
      verification_mode: "reject",
    });
    expect((await sent(id, body, { "x-hub-signature-256": "sha256=00" })).body).toMatchObject({
      status: "rejected",
    });
    await eventually(() => expect(pieces()).toBe(before));
    expect(await eventsOf(account, id)).toEqual([]);
  });
});

describe("the pieces of a body", () => {
  test("are removed with their event, and with one that was not completed", async () => {
    const { id } = await newBucket(account);
    const before = pieces();
    await stored(id, bytesOf(2 * MIB));
    expect(pieces()).toBe(before + 8);
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    socket.write(`POST /v1/in/${id} HTTP/1.1\r\nHost: x\r\nContent-Length: ${5 * MIB}\r\n\r\n`);
    socket.write(bytesOf(2 * MIB));
    await eventually(() => expect(pieces()).toBeGreaterThan(before + 8));
    socket.destroy();
    await eventually(() => expect(pieces()).toBe(before + 8));
    const deleted = await account.delete(`/v1/catch/${id}/events?before=2100-01-01T00:00:00Z`);
    expect(deleted.body).toEqual({ deleted_count: 1 });
    await eventually(() => expect(pieces()).toBe(before));
  });

  test("are removed with their bucket", async () => {
    const { id } = await newBucket(account);
    const before = pieces();
    await stored(id, bytesOf(2 * MIB));
    await account.delete(`/v1/catch/buckets/${id}`);
    await server.clock.advance(0);
    await eventually(() => expect(pieces()).toBe(before));
  });

  test("without an event are removed at the start, and later", async () => {
    const { id } = await newBucket(account);
    await server.server.stop();
    const db = new Database(join(server.folder, "ninefold.db"));
    db.run("DELETE FROM catch_pieces WHERE upload > 100000");
    const insert = db.query("INSERT INTO catch_pieces (upload, number, bytes) VALUES (?, ?, ?)");
    for (let number = 0; number < 9; number += 1) insert.run(200_000, number, new Uint8Array(PIECE));
    const before = (db.query("SELECT count(*) AS n FROM catch_pieces").get() as { n: number }).n;
    db.close();
    await server.start();
    await eventually(() => expect(pieces()).toBe(before - 9));
    // What is left behind later is found some minutes after a body.
    expect(
      (await fetch(`${server.url}/v1/in/${id}`, { method: "POST", body: bytesOf(2 * MIB) })).status,
    ).toBe(200);
    const { kernel } = server.server;
    const left = kernel.db.change<[Uint8Array]>(
      "INSERT INTO catch_pieces (upload, number, bytes) VALUES (200000, 0, ?)",
    );
    await kernel.writer.submit((tx) => left(tx, new Uint8Array(PIECE)));
    const later = pieces();
    await server.clock.advance(10 * 60_000);
    await eventually(() => expect(pieces()).toBe(later - 1));
  });

  test("make room for newer events, once the account stores too many bytes", async () => {
    const limited = await startTestServer({
      manualClock: true,
      config: { tiers: { ...DEFAULT_TIERS, pro: { ...DEFAULT_TIERS.pro, storedEventBytes: 6 * MIB } } },
    });
    try {
      const owner = await limited.account({ tier: "pro" });
      const { id } = await newBucket(owner);
      const other = await newBucket(owner);
      const post = async (bucketId: string, body: Uint8Array) =>
        (
          (await (await fetch(`${limited.url}/v1/in/${bucketId}`, { method: "POST", body })).json()) as {
            event_id: string;
          }
        ).event_id;
      const kept = await post(other.id, bytesOf(2 * MIB));
      for (let count = 0; count < 10; count += 1) await post(id, bytesOf(100));
      const first = await post(id, bytesOf(2 * MIB));
      const second = await post(id, bytesOf(2 * MIB));
      const third = await post(id, bytesOf(2 * MIB));
      await eventually(async () =>
        expect((await eventsOf(owner, id)).map((event) => event.id)).toEqual([second, third]),
      );
      expect((await eventsOf(owner, other.id)).map((event) => event.id)).toEqual([kept]);
      expect(first).not.toBe(second);
      const largest = await post(id, bytesOf(7 * MIB));
      await eventually(async () =>
        expect((await eventsOf(owner, id)).map((event) => event.id)).toEqual([largest]),
      );
    } finally {
      await limited.stop();
    }
  });
});

test("a path that is too long keeps its 200", async () => {
  const { id } = await newBucket(account);
  const response = await fetch(`${server.url}/v1/in/${id}/${"p".repeat(1_100)}`, {
    method: "POST",
    body: "x",
  });
  expect([response.status, await response.json()]).toMatchObject([200, { status: "too_large" }]);
  expect(await bucketOf(account, id)).toMatchObject({ too_large: 1 });
});

test("at most 16 large bodies of one network arrive at the same time", async () => {
  const { id } = await newBucket(account);
  const { hostname, port } = new URL(server.url);
  const before = pieces();
  const held = Array.from({ length: 16 }, () => {
    const socket = connect(Number(port), hostname);
    socket.write(`POST /v1/in/${id} HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 * MIB}\r\n\r\n`);
    socket.write(new Uint8Array(PIECE));
    return socket;
  });
  try {
    // Each of them has begun.
    await eventually(() => expect(pieces()).toBe(before + held.length));
    const { status, headers, body } = await sent(id, bytesOf(MIB + 1));
    expect([status, headers.get("retry-after"), body["code"]]).toEqual([503, "1", "service_unavailable"]);
    expect((await sent(id, bytesOf(MIB))).status).toBe(200);
  } finally {
    for (const socket of held) socket.destroy();
  }
  await eventually(() => expect(pieces()).toBe(before));
  expect((await sent(id, bytesOf(MIB + 1))).status).toBe(200);
});
