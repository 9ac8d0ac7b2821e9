import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ManualClock } from "../../src/kernel/time/clock.ts";
import type { Client } from "../support/client.ts";
import type { TestServer } from "../support/server.ts";
import { unpack } from "./archive.ts";
import { githubSignature, SEALED_HEADER, STORAGE_SECRET } from "./fill.ts";
import { answerTo } from "./reads.ts";
import { ask, FORMS, Receiver, type Recorded, receiverUrl, serverAt } from "./world.ts";

const HOUR_MS = 3_600_000;
const VERSIONS = readdirSync(import.meta.dir, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

test("kept folders exist", () => {
  expect(VERSIONS).toContain("0.1.0");
});

describe.each(VERSIONS.flatMap((version) => FORMS.map((form) => [version, form] as const)))(
  "a data folder of %s, %s",
  (version, form) => {
    const kept = join(import.meta.dir, version, form);
    const recorded = JSON.parse(readFileSync(`${kept}.json`, "utf8")) as Recorded;
    const { keys, things } = recorded;
    let receiver: Receiver;
    let server: ReturnType<typeof serverAt>;
    const by = (name: string): Client => server.client(String(keys[name]));

    beforeAll(async () => {
      receiver = new Receiver();
      server = serverAt(recorded.at, receiver);
      unpack(`${kept}.tar.zst`, server.makeFolder());
      server.key = String(keys["operator"]);
      await server.start();
    });
    afterAll(async () => {
      await server.stop();
      await receiver.stop();
    });

    // The tests depend on each other: first reads, then changes.
    test("responds as before", async () => {
      for (const asked of recorded.reads) {
        const { status, answer } = await answerTo(server.url, keys, asked);
        const what = `${asked.method} ${asked.path} by ${asked.as}`;
        expect({ what, status, answer }).toMatchObject({
          what,
          status: asked.status,
          answer: withAnyCursor(asked.answer) as object,
        });
      }
    });

    test("replays stored responses free of charge", async () => {
      const before = await balanceOf(by("scale"));
      for (const asked of recorded.stored) {
        const { status, body, headers } = await ask(server.url, keys, asked);
        expect({ key: asked.idempotencyKey, status, body }).toEqual({
          key: asked.idempotencyKey,
          status: asked.status,
          body: asked.answer as Record<string, unknown>,
        });
        expect(headers.get("idempotent-replayed")).toBe("true");
      }
      expect(await balanceOf(by("scale"))).toBe(before);
      const other = await by("scale").post(
        "/v1/meter/customer-1/deduct",
        { amount: 11 },
        { headers: { "idempotency-key": "deduct" } },
      );
      expect(other.status).toBe(409);
    });

    test("takes changes of meters, projects, keys and flags", () => changeRecords(by, things, keys));

    test("locks continue in their previous state", () => changeLocks(by("scale"), things));

    test("receipts are verified, and the chain continues", () =>
      extendChain(server.time, by("scale"), receiver));

    test("buckets verify and forward", () => forward(server, by("scale"), things, receiver));

    test("monitors and deliveries come at their times, with the headers that were sealed", async () => {
      const [header, value] = SEALED_HEADER;
      receiver.hits.length = 0;
      await server.time.advance(HOUR_MS);
      const [later, ...more] = receiver.at("/relay/later");
      expect({ more, body: later?.body, header: later?.headers.get(header) }).toEqual({
        more: [],
        body: '{"number":1}',
        header: value,
      });
      expect(later?.headers.get("x-svc-delivery-id")).toBe(String(things["relay waiting"]));
      const checks = receiver.at("/well");
      // Two monitors, each every five minutes.
      expect(checks.length).toBeGreaterThanOrEqual(2 * 11);
      expect(new Set(checks.map(({ headers }) => headers.get(header)))).toEqual(new Set([value]));
      expect(receiver.at("/alerts").length).toBeGreaterThan(0);
      expect(receiver.at("/relay/never")).toEqual([]);
    });

    test("starts again, its database is whole", async () => {
      await server.restart();
      expect((await by("scale").get("/v1/meter/customer-1/balance")).body).toMatchObject({ balance: 1_000 });
      await server.server.stop();
      const db = new Database(join(server.folder, "ninefold.db"), { readonly: true });
      expect(db.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
      expect(db.query("PRAGMA foreign_key_check").values()).toEqual([]);
      db.close();
      await server.start();
    });
  },
);

/** Cursors are opaque: one must exist, with any value. */
function withAnyCursor(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withAnyCursor);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name,
      /cursor$/.test(name) && typeof field === "string" ? expect.any(String) : withAnyCursor(field),
    ]),
  );
}

async function balanceOf(client: Client): Promise<number> {
  return Number((await client.get("/v1/meter/balance")).body["balance"]);
}

async function changeRecords(
  by: (name: string) => Client,
  things: Recorded["things"],
  keys: Recorded["keys"],
): Promise<void> {
  const scale = by("scale");
  const { balance } = (await scale.get("/v1/meter/customer-1/balance")).body;
  const amount = 1_000 - Number(balance);
  const refilled = await scale.post("/v1/meter/customer-1/refill", { amount });
  expect(refilled.body).toEqual({ balance: 1_000, meter_id: "customer-1" });
  const { body: ledger } = await scale.get("/v1/meter/customer-1/history?limit=2");
  const [latest, former] = ledger["entries"] as Record<string, number>[];
  expect(latest).toMatchObject({ kind: "refill", amount, balance_after: 1_000 });
  expect(latest?.["sequence"]).toBeGreaterThan(Number(former?.["sequence"]));

  expect((await scale.post("/v1/projects", { name: "Shop" })).body).toMatchObject({ slug: "shop-2" });
  // The slug of the deleted project is free, whether its rows are gone or not.
  expect((await scale.post("/v1/projects", { name: "Gone" })).body).toMatchObject({ slug: "gone" });

  const rotated = await scale.post(`/v1/keys/${things["key customer"]}/rotate`);
  expect(rotated.body).toMatchObject({ old_key_id: String(things["key customer"]) });
  expect((await scale.delete(`/v1/keys/${things["key ending"]}`)).status).toBe(200);
  const { body: revoked } = await scale.post("/v1/keys/verify", { secret: keys["ending"] });
  expect(revoked).toMatchObject({ valid: false, error: "revoked" });

  expect((await by("shop").post("/v1/gate", { flag_key: "new-checkout", enabled: true })).status).toBe(201);
  expect((await by("shop").get("/v1/gate/new-checkout")).body).toMatchObject({ enabled: true });
}

async function changeLocks(scale: Client, things: Recorded["things"]): Promise<void> {
  const path = "/v1/latch/invoice:42";
  const token = String(things["lock token"]);
  const fencing = Number(things["fencing token"]);
  const again = await scale.post(`${path}/acquire`, { token });
  expect(again.body).toMatchObject({ reentrant: true, token, fencing_token: fencing });
  expect((await scale.post(`${path}/release`, { token: crypto.randomUUID() })).status).toBe(403);
  expect((await scale.post(`${path}/release`, { token })).status).toBe(200);
  const next = await scale.post(`${path}/acquire`);
  expect(Number(next.body["fencing_token"])).toBeGreaterThan(fencing);
}

async function extendChain(time: ManualClock, scale: Client, receiver: Receiver): Promise<void> {
  const { body } = await scale.get("/v1/witness/receipts?limit=100");
  const receipts = body["receipts"] as Record<string, unknown>[];
  for (const receipt of receipts)
    expect((await scale.post("/v1/witness/verify", { receipt })).body).toMatchObject({ valid: true });
  const last = receipts[0];
  const logged = await scale.post("/v1/witness/log", { log: { event: "later" } });
  expect(logged.body).toMatchObject({
    sequence_id: String(receipts.length + 1),
    prev_hash: String(last?.["chain_hash"]),
    public_key: last?.["public_key"] as object,
  });
  // Buffered receipts go to the new storage, without duplicates.
  const storage = { bucket: "mended", region: "eu-kept-1", accessKeyId: "AKIAKEPTKEPTKEPTKEPT" };
  const config = { endpoint: receiverUrl(""), ...storage, secretAccessKey: STORAGE_SECRET };
  expect((await scale.post("/v1/witness/config", config)).status).toBe(200);
  const place = (sequence: number): string => `/mended/witness/receipts/${sequence}.json`;
  await time.advance(1_000);
  const delivered = receiver.hits.filter(({ path }) => path.startsWith("/mended/")).map(({ path }) => path);
  expect(delivered.sort()).toEqual([3, 4, 5].map(place));
}

async function forward(
  server: TestServer & { readonly time: ManualClock },
  scale: Client,
  things: Recorded["things"],
  receiver: Receiver,
): Promise<void> {
  const bucketId = String(things["bucket paused"]);
  const body = '{"event":"later"}';
  const headers = { "x-github-event": "push", "x-hub-signature-256": githubSignature(body) };
  const { body: taken } = await server.client(null).post(`/v1/catch/${bucketId}`, body, { headers });
  expect(taken).toMatchObject({ status: "accepted", verification: "valid" });
  expect((await scale.patch(`/v1/catch/buckets/${bucketId}`, { state: "live" })).status).toBe(200);
  await server.time.advance(1_000);
  // The pending one comes first; unsigned events are not forwarded.
  expect(receiver.at("/hooks/later").map((hit) => hit.body)).toEqual(['{"event":"paused"}', body]);
  const replay = `/v1/catch/${things["bucket live"]}/events/${things["event live"]}/replay`;
  expect((await scale.post(replay)).body).toMatchObject({ status: "replayed", response_status: 200 });
}
