import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { PIECE_BYTES as STORED_PIECE_BYTES } from "../../src/kernel/http/requests/large-body.ts";
import { LARGE_RESPONSE_BYTES, OUTGOING_LIMITS } from "../../src/kernel/http/responses/outgoing-bodies.ts";
import { ANYONE } from "../../src/kernel/storage/tx.ts";
import { eventually, until } from "../support/eventually.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

/** Logs of receipts; all together fill a page of an export. */
const LOG_BYTES = 1_000_000;
const LOGS = 9;
/** Seconds after which a reader that takes nothing is disconnected, here. */
const READER_IDLE_SECONDS = 2;
const TEXT = "xü€".repeat(12_000);

let server: TestServer;
let account: AccountClient;
/** Paths by operation; `public` ones are read without a key. */
const paths: Record<string, string> = {};
beforeAll(async () => {
  server = await startTestServer();
  server.server.app.http.deps.outgoing.readerIdleSeconds = READER_IDLE_SECONDS;
  account = await server.account({ tier: "scale" });
  await account.post("/v1/witness/sys/init", {});
  for (let at = 0; at < LOGS; at += 1)
    expect((await account.post("/v1/witness/log", { log: { at, x: "x".repeat(LOG_BYTES) } })).status).toBe(
      200,
    );
  const variants = { a: TEXT.slice(0, 8_000), b: "b" };
  for (let at = 0; at < 12; at += 1) {
    const flag = { flag_key: `f${at}`, type: "string", enabled: true, variants, default: { variant: "a" } };
    expect((await account.post("/v1/gate", flag)).status).toBe(201);
  }
  const target_url = "https://example.com/";
  const delivery = await account.post("/v1/relay", {
    target_url,
    method: "POST",
    delay: "1h",
    payload: { text: TEXT },
  });
  const bucket = await account.post("/v1/catch/buckets", { target_url, delivery: "pull" });
  const event = await account.post(`/v1/catch/${bucket.body["id"]}`, { text: TEXT });
  Object.assign(paths, {
    "witness.export": "/v1/witness/export",
    "witness.receipts.read": "/v1/witness/receipts/1",
    "witness.receipts.list": "/v1/witness/receipts",
    "gate.config": "/v1/gate/config?full=true",
    "relay.body": `/v1/relay/${delivery.body["relay_id"] ?? delivery.body["id"]}/body`,
    "catch.events.get": `/v1/catch/${bucket.body["id"]}/events/${event.body["event_id"] ?? event.body["id"]}`,
    "audit.export": "/v1/audit/export",
    "openapi.read": "/openapi.json",
  });
});
afterAll(() => server.stop());

const held = (): number => server.server.app.http.deps.outgoing.total;

/** Sends a request and returns its connection, which reads nothing after the first bytes, with these. */
async function unread(path: string): Promise<{ socket: Socket; head: string; closed: Promise<void> }> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  const closed = Promise.withResolvers<void>();
  socket.on("error", () => undefined);
  socket.on("close", () => closed.resolve());
  socket.write(`GET ${path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${account.key}\r\n\r\n`);
  const head = await new Promise<string>((resolve) => {
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk;
      if (!received.includes("\r\n\r\n")) return;
      socket.removeAllListeners("data").pause();
      resolve(received.slice(0, received.indexOf("\r\n\r\n")));
    });
  });
  return { socket, head, closed: closed.promise };
}

describe("a response that is larger than 64 KiB", () => {
  test("is sent piece by piece, and complete, whatever its operation", async () => {
    for (const [operation, path] of Object.entries(paths)) {
      const { socket, head } = await unread(path);
      expect([operation, head.toLowerCase()]).toEqual([
        operation,
        expect.stringContaining("transfer-encoding: chunked"),
      ]);
      socket.destroy();
      const response = await fetch(server.url + path, {
        headers: { authorization: `Bearer ${account.key}`, "accept-encoding": "identity" },
      });
      const text = await response.text();
      expect([operation, response.status, text.length > LARGE_RESPONSE_BYTES / 2]).toEqual([
        operation,
        200,
        true,
      ]);
      if (operation !== "audit.export" && operation !== "witness.export") JSON.parse(text);
      await eventually(() => expect(held()).toBe(0));
    }
  });

  test("is counted until it is read, is rejected beyond the account's limit, and is counted no longer when its reader leaves", async () => {
    const readers = await Promise.all(Array.from({ length: 8 }, () => unread(paths["witness.export"] ?? "")));
    const accepted = readers.filter(({ head }) => head.includes(" 200 "));
    expect(accepted.length).toBeGreaterThan(0);
    expect(held()).toBeGreaterThan(LOG_BYTES * accepted.length);
    expect(held()).toBeLessThanOrEqual(OUTGOING_LIMITS.senderBytesMax);
    const more = await unread(paths["witness.export"] ?? "");
    expect(more.head).toContain(" 503 ");
    expect(more.head.toLowerCase()).toContain("retry-after: 1");
    // Other accounts, and small responses of this one, are served.
    expect((await account.get("/v1/gate/f0")).status).toBe(200);
    expect((await server.client(null).get("/openapi.json")).status).toBe(200);
    for (const { socket } of [...readers, more]) socket.destroy();
    await eventually(() => expect(held()).toBe(0));
    expect((await account.get("/v1/witness/export")).status).toBe(200);
  });

  test("and is stored in pieces is counted with one of them", async () => {
    const bucket = await account.post("/v1/catch/buckets", { target_url: "https://example.com/" });
    const path = `/v1/in/${bucket.body["id"]}`;
    // More than the buffers of a connection take.
    const sent = await fetch(server.url + path, { method: "POST", body: new Uint8Array(16 * 1024 * 1024) });
    const { event_id } = (await sent.json()) as { event_id: string };
    const raw = `/v1/catch/${bucket.body["id"]}/events/${event_id}/raw`;
    const readers = await Promise.all([unread(raw), unread(raw)]);
    expect(held()).toBe(2 * STORED_PIECE_BYTES);
    for (const { socket } of readers) socket.destroy();
    await eventually(() => expect(held()).toBe(0));
  });

  test("whose reader takes nothing is ended", async () => {
    const { socket, head, closed } = await unread(paths["witness.export"] ?? "");
    expect(head).toContain(" 200 ");
    await eventually(() => expect(held()).toBe(0));
    socket.resume();
    await closed;
  });

  test("is counted while it waits for the disk", async () => {
    const { writer } = server.server.kernel;
    const disk = Promise.withResolvers<void>();
    const follower = { beforeBatch() {}, beforeCommit() {}, afterCommit() {}, confirmation: disk.promise };
    writer.follow(follower);
    const written = account.post("/v1/meter/m/refill", { amount: 1 });
    await until(() => writer.confirmationFor(ANYONE) !== null);
    const read = account.get("/v1/witness/receipts/1");
    await eventually(() => expect(held()).toBeGreaterThan(LOG_BYTES));
    writer.follow({ ...follower, confirmation: null });
    disk.resolve();
    expect([(await written).status, (await read).status]).toEqual([200, 200]);
    await eventually(() => expect(held()).toBe(0));
  });

  test("is not made for HEAD", async () => {
    const response = await fetch(server.url + paths["witness.receipts.read"], {
      method: "HEAD",
      headers: { authorization: `Bearer ${account.key}` },
    });
    expect([response.status, await response.text(), held()]).toEqual([200, "", 0]);
  });
});
