import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { freePort } from "../harness/processes/ports.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { Proxies } from "../support/proxies.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

const PAGE = readFileSync(join(ROOT, "docs/deployment.md"), "utf8");
const DOMAIN = "api.example.com";
const MIB = 1024 * 1024;
/** Long because the machine may be busy. */
const TIMEOUT_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "ninefold-proxies-"));
const authority = new CertificateAuthority();
const { cert, key } = authority.issue(DOMAIN, `DNS:${DOMAIN},IP:127.0.0.1`);
const [certPath, keyPath] = [join(folder, "cert.pem"), join(folder, "key.pem")];
writeFileSync(certPath, cert);
writeFileSync(keyPath, key);
const proxies = new Proxies(folder);
const tls = { ca: authority.pem };

let server: TestServer;
let account: AccountClient;
let url: string;
let port: number;
beforeEach(async () => {
  port = freePort();
  url = `https://127.0.0.1:${port}`;
  server = await startTestServer({ args: ["--trust-proxy", "127.0.0.1", "--public-url", url] });
  account = await server.account({ tier: "unlimited" });
});
afterEach(async () => {
  await proxies.stop();
  await server.stop();
});
afterAll(() => {
  authority.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** The page's block that contains a text, with this test's addresses. */
function blockWith(text: string): string {
  const blocks = [...PAGE.matchAll(/^```[a-z]*\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
  const block = blocks.find((block) => block.includes(text));
  if (block === undefined) throw new Error(`the page has no block with ${text}`);
  return block
    .replace("127.0.0.1:9909", new URL(server.url).host)
    .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replace(`/etc/letsencrypt/live/${DOMAIN}/fullchain.pem`, certPath)
    .replace(`/etc/letsencrypt/live/${DOMAIN}/privkey.pem`, keyPath)
    .replace(`${DOMAIN} {`, `${url} {\ntls ${certPath} ${keyPath}`);
}

const PROXIES = [
  ["nginx", () => proxies.nginx(blockWith("upstream ninefold"), port)],
  ["Caddy", () => proxies.caddy(blockWith("reverse_proxy 127.0.0.1:9909"), port)],
] as const;

const ask = (path: string, init: RequestInit = {}) =>
  fetch(url + path, { ...init, tls, headers: { authorization: `Bearer ${account.key}`, ...init.headers } });

/** What a client receives that waits for `100 Continue` before it sends its body. */
function expectContinue(path: string, body: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let received = "";
  const socket = connect({ host: "127.0.0.1", port, ca: authority.pem, ALPNProtocols: ["http/1.1"] }, () => {
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
    );
  });
  socket.on("data", (bytes) => {
    const isFirst = received === "";
    received += bytes.toString();
    if (isFirst) socket.write(body);
  });
  socket.on("end", () => resolve(received));
  socket.on("error", reject);
  return promise;
}

describe.each(PROXIES)("behind %s with the configuration of the page", (_name, start) => {
  test(
    "webhooks of every size reach their bucket at its ingest_url, with the client's address",
    async () => {
      await start();
      const made = await (
        await ask("/v1/catch/buckets", { method: "POST", body: '{"delivery":"pull"}' })
      ).json();
      const { id, ingest_url } = made as { id: string; ingest_url: string };
      expect(ingest_url).toBe(`${url}/v1/in/${id}`);
      for (const target of [ingest_url, `${url}/v1/catch/${id}`, `${ingest_url}/below?a=1`]) {
        for (const [bytes, code, status] of [
          [2, 200, "accepted"],
          [MIB, 200, "accepted"],
          [MIB + 1, 200, "accepted"],
          [25 * MIB, 200, "accepted"],
          [25 * MIB + 1, 413, "too_large"],
        ] as const) {
          const response = await fetch(target, { method: "POST", body: "x".repeat(bytes), tls });
          const { status: result } = (await response.json()) as { status: string };
          expect([target, bytes, response.status, result]).toEqual([target, bytes, code, status]);
        }
      }
      const page = (await (await ask(`/v1/catch/${id}/events`)).json()) as { events: { id: string }[] };
      expect(page.events).toHaveLength(12);
      const event = await (await ask(`/v1/catch/${id}/events/${page.events[0]?.id}`)).json();
      expect(event).toMatchObject({
        remote_address: "127.0.0.1",
        path: "/below",
        query: "a=1",
        size_bytes: 25 * MIB,
      });
    },
    TIMEOUT_MS,
  );

  test(
    "bodies of the API have the API's own limits",
    async () => {
      await start();
      const delivery = (text: string) =>
        JSON.stringify({ target_url: "https://example.com", method: "POST", delay: "1d", payload: { text } });
      const around = delivery("").length;
      const send = (bytes: number) =>
        ask("/v1/relay", { method: "POST", body: delivery("x".repeat(bytes - around)) });
      expect((await send(MIB)).status).toBe(201);
      const beyond = await send(MIB + 1);
      expect([beyond.status, await beyond.json()]).toEqual([
        413,
        expect.objectContaining({ code: "request_too_large" }),
      ]);
    },
    TIMEOUT_MS,
  );

  test(
    "event streams and long polls respond while they are open, and end with their client",
    async () => {
      await start();
      const closing = new AbortController();
      const changes = await ask("/v1/changes", { signal: closing.signal });
      await account.post("/v1/meter/m/refill", { amount: 1 });
      let events = "";
      for await (const text of (changes.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
        events += text;
        if (events.includes("meter")) break;
      }
      closing.abort();

      const { id } = (await account.post("/v1/catch/buckets", { delivery: "pull" })).body;
      const polled = ask(`/v1/catch/${id}/stream?after=now&wait_ms=30000`);
      await Bun.sleep(100);
      await server.client(null).post(`/v1/in/${id}`, "{}");
      expect(((await (await polled).json()) as { events: unknown[] }).events).toHaveLength(1);

      const lock = (body: object, init: RequestInit = {}) =>
        ask("/v1/latch/l/acquire", { method: "POST", body: JSON.stringify(body), ...init });
      const held = (await (await lock({ ttl_ms: 60_000 })).json()) as { token: string };
      const gone = new AbortController();
      const left = lock({ wait_ms: 60_000 }, { signal: gone.signal }).catch(() => null);
      await Bun.sleep(100);
      gone.abort();
      await left;
      const next = lock({ wait_ms: 60_000 });
      await Bun.sleep(100);
      await account.post("/v1/latch/l/release", { token: held.token });
      // The client that left does not get the lock.
      expect((await next).status).toBe(200);
    },
    TIMEOUT_MS,
  );

  test(
    "a client that expects 100 Continue gets it, and then its response",
    async () => {
      await start();
      const { id } = (await account.post("/v1/catch/buckets", { delivery: "pull" })).body;
      const received = await expectContinue(`/v1/in/${id}`, "x".repeat(100_000));
      expect(received).toMatch(/^(HTTP\/1\.1 100 Continue\r\n[\s\S]*?\r\n)+HTTP\/1\.1 200 OK\r\n/);
      expect(received).toContain('"status":"accepted"');
    },
    TIMEOUT_MS,
  );
});
