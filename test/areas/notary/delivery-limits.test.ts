import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { RECEIPTS_PER_RUN } from "../../../src/areas/notary/upload-job.ts";
import { CONCURRENT_UPLOADS_MAX } from "../../../src/areas/notary/uploads.ts";
import { sendRaw } from "../../support/raw-http.ts";
import { S3Server } from "../../support/s3-server.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
let s3: S3Server;
let account: AccountClient;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  s3 = await new S3Server().start();
  account = await server.account();
  await account.post("/v1/witness/sys/init");
  await account.post("/v1/witness/config", s3.config());
});
afterEach(async () => {
  await server.stop();
  await s3.stop();
});

/** Logs `count` entries concurrently. */
const logs = (count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => account.post("/v1/witness/log", { log: { n } })));

describe("log requests while a storage hangs", () => {
  test("wait up to the limit; the next one is buffered immediately", async () => {
    s3.mode = "hanging";
    const waiting = logs(CONCURRENT_UPLOADS_MAX);
    while (s3.requests.length < CONCURRENT_UPLOADS_MAX) await Bun.sleep(5);
    // Sent without fetch, which is limited to 256 concurrent requests.
    const body = '{"log":{"next":true}}';
    const head = `POST /v1/witness/log HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${account.key}\r\n`;
    const next = await sendRaw(server.url, [`${head}Content-Length: ${body.length}\r\n\r\n${body}`]);
    expect(next?.body).toMatchObject({ storage_status: "buffered" });
    expect(s3.requests).toHaveLength(CONCURRENT_UPLOADS_MAX);
    expect((await waiting).every(({ status }) => status === 202)).toBe(true);
    expect((await account.get("/v1/witness/config")).body.buffered).toBe(CONCURRENT_UPLOADS_MAX + 1);
  });
});

describe("a backlog longer than one run of the job", () => {
  test("is delivered completely", async () => {
    s3.mode = "down";
    await logs(RECEIPTS_PER_RUN + 1);
    s3.mode = "up";
    await server.clock.advance(6_000);
    expect((await account.get("/v1/witness/config")).body).toMatchObject({ buffered: 0, last_error: null });
    expect(await s3.object(`witness/receipts/${RECEIPTS_PER_RUN + 1}.json`)).not.toBeNull();
  });

  test("is delivered completely although the objects of a whole run exist with different content", async () => {
    s3.mode = "down";
    await logs(RECEIPTS_PER_RUN + 1);
    for (let n = 1; n <= RECEIPTS_PER_RUN; n += 1)
      await s3.place(`witness/receipts/${n}.json`, "someone else's");
    s3.mode = "up";
    await server.clock.advance(6_000);
    expect(await s3.object(`witness/receipts/${RECEIPTS_PER_RUN + 1}.json`)).not.toBeNull();
    expect((await account.get("/v1/witness/config")).body.buffered).toBe(RECEIPTS_PER_RUN);
  });
});
