import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import http2 from "node:http2";
import type { Server } from "node:net";
import tls from "node:tls";
import { SMTPServer } from "smtp-server";
import { CLIENT_KEY_LENGTH_MAX } from "../../../../src/areas/monitors/client-certificate.ts";
import {
  CLIENT_CERTIFICATE_LENGTH_MAX,
  KEYWORD_LENGTH_MAX,
  KEYWORDS_MAX,
} from "../../../../src/areas/monitors/options.ts";
import { FIRST_BYTES_MAX } from "../../../../src/kernel/outbound/first-bytes.ts";
import { type Certificate, CertificateAuthority } from "../../../support/certificates.ts";
import { expectError } from "../../../support/errors.ts";
import { mailDialog } from "../../../support/mail-dialog.ts";
import { RawServer } from "../../../support/raw-server.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
let authority: CertificateAuthority;
let own: Certificate;
let client: Certificate;
let others: Certificate;
let server: TestServer;
let account: AccountClient;
const open = new Set<{ close(): unknown }>();

beforeAll(async () => {
  authority = new CertificateAuthority();
  own = authority.issue("localhost", "IP:127.0.0.1,DNS:localhost");
  client = authority.issue("client", "DNS:client.example");
  others = authority.issue("others", "DNS:others.example");
  server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "loopback"],
    deps: { outbound: { certificateAuthorities: authority.pem } },
  });
});
afterAll(async () => {
  await server.stop();
});
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
});
afterEach(() => {
  for (const one of open) one.close();
  open.clear();
});

async function portOf(listener: Server | tls.Server | http2.Http2SecureServer): Promise<number> {
  open.add(listener);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** The port of a mail server of such replies. */
const dialog = (greeting: string, replies: Readonly<Record<string, string>>, startsTls: string) =>
  portOf(mailDialog(own, greeting, replies, startsTls));

async function create(terms: object): Promise<string> {
  const { status, text, body } = await account.post("/v1/pulse", { interval: MINUTE, ...terms });
  expect([status, text]).toEqual([201, expect.any(String)]);
  return String(body["id"]);
}

/** Status and error of a manual check. */
async function checked(id: string): Promise<[status: unknown, error: unknown]> {
  const { body } = await account.post(`/v1/pulse/${id}/check`);
  const history = (await account.get(`/v1/pulse/${id}/history?limit=1`)).body["checks"];
  const [check] = history as Record<string, unknown>[];
  return [body["status"], check?.["error"]];
}

const tcp = (port: number, change: object = {}) => ({
  type: "tcp",
  host: "127.0.0.1",
  port,
  timeout: 10_000,
  ...change,
});

describe("a tcp monitor with TLS", () => {
  test("shows the certificate, and is down if it is not valid", async () => {
    const good = tls.createServer({ cert: own.cert, key: own.key }, (socket) => {
      socket.on("error", () => {});
      socket.write("* OK ready\r\n");
    });
    const port = await portOf(good);
    const id = await create(tcp(port, { tls: true, keyword: "ready" }));
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({ tls: "direct", certificate: null });
    expect(await checked(id)).toEqual(["up", null]);
    expect((await account.get(`/v1/pulse/${id}`)).body["certificate"]).toMatchObject({
      issuer: "Test Authority",
      days_left: expect.any(Number),
    });
    await account.put(`/v1/pulse/${id}`, { tls: "starttls-imap", timeout: 1_000 });
    expect((await checked(id))[0]).toBe("down");
    const bad = tls.createServer({ cert: others.cert, key: others.key }, (socket) =>
      socket.on("error", () => {}),
    );
    const other = await create(tcp(await portOf(bad), { tls: "direct" }));
    expect(await checked(other)).toEqual(["down", expect.stringMatching(/^tls: the TLS handshake failed/)]);
    const plain = await create(tcp(port, { tls: null }));
    expect(await checked(plain)).toEqual(["up", null]);
    expect((await account.get(`/v1/pulse/${plain}`)).body).toMatchObject({ tls: null, certificate: null });
  });

  test("begins it by STARTTLS of a mail server", async () => {
    const smtp = new SMTPServer({ cert: own.cert, key: own.key, authOptional: true, banner: "mail.example" });
    smtp.on("error", () => {});
    const listener = smtp.listen(0, "127.0.0.1");
    open.add({ close: () => smtp.close() });
    await new Promise<void>((resolve) => listener.once("listening", resolve));
    const address = listener.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const id = await create(tcp(port, { tls: "starttls-smtp", keyword: "ESMTP" }));
    expect(await checked(id)).toEqual(["up", null]);
    expect((await account.get(`/v1/pulse/${id}`)).body["certificate"]).toMatchObject({
      issuer: "Test Authority",
    });
    await account.put(`/v1/pulse/${id}`, { keyword: "Exim" });
    expect(await checked(id)).toEqual(["down", "keyword: not found in what the server sent first"]);
  });

  test("begins it by STARTTLS of IMAP, and by STLS of POP3", async () => {
    const imap = await dialog("* OK ready\r\n", { STARTTLS: "* CAPABILITY\r\na1 OK begin\r\n" }, "STARTTLS");
    expect(await checked(await create(tcp(imap, { tls: "starttls-imap" })))).toEqual(["up", null]);
    const pop = await dialog("+OK ready\r\n", { STLS: "+OK begin\r\n" }, "STLS");
    expect(await checked(await create(tcp(pop, { tls: "starttls-pop3" })))).toEqual(["up", null]);
  });

  const failures: readonly (readonly [greeting: string, reply: string, error: string])[] = [
    ["220 a\r\n", "502 no\r\n", "tls: the server does not accept STARTTLS"],
    ["554 no\r\n", "", "malformed: the greeting is not that of this protocol"],
    ["* OK\r\n", "", "timeout: no complete response within 1000 ms"],
    ["220 a\r\n", "220 go\r\n250 injected\r\n", "tls: the server sent more before the TLS handshake"],
    [`220-${"x".repeat(FIRST_BYTES_MAX)}\r\n`, "", "too-large: the server's replies before TLS are too long"],
  ];
  for (const [greeting, reply, error] of failures)
    test(`is down with ${error.slice(0, 40)}`, async () => {
      const port = await dialog(greeting, { EHLO: "250-a\r\n250 STARTTLS\r\n", STARTTLS: reply }, "");
      const id = await create(
        tcp(port, { tls: "starttls-smtp", timeout: error.startsWith("timeout") ? 1_000 : 10_000 }),
      );
      expect(await checked(id)).toEqual(["down", error]);
    });
});

describe("an http monitor", () => {
  /** An HTTPS server that says whose certificate it got. */
  async function secured(options: tls.TlsOptions = {}): Promise<string> {
    const listener = tls.createServer({ cert: own.cert, key: own.key, ...options }, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => {
        const name = String(socket.getPeerCertificate().subject?.CN ?? "nobody");
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${name.length}\r\nConnection: close\r\n\r\n${name}`);
      });
    });
    return `https://127.0.0.1:${await portOf(listener)}/`;
  }

  test("accepts an invalid certificate if it is told to, and watches its expiry", async () => {
    const url = await secured({ cert: others.cert, key: others.key });
    const id = await create({ url });
    expect(await checked(id)).toEqual(["down", expect.stringMatching(/^tls: the TLS handshake failed/)]);
    expect((await account.put(`/v1/pulse/${id}`, { tls_verify: false })).body["tls_verify"]).toBe(false);
    expect(await checked(id)).toEqual(["up", null]);
    expect((await account.get(`/v1/pulse/${id}`)).body["certificate"]).toMatchObject({
      issuer: "Test Authority",
    });
  });

  test("checks a target that offers HTTP/2 only, also after a redirect", async () => {
    const site = http2.createSecureServer({ cert: own.cert, key: own.key }, (request, response) => {
      response.setHeader("Content-Type", "application/json");
      if (request.url === "/down") response.writeHead(503);
      response.end(JSON.stringify({ state: "ready", version: `HTTP ${request.httpVersion}` }));
    });
    site.on("sessionError", () => {}).on("tlsClientError", () => {});
    const url = `https://127.0.0.1:${await portOf(site)}`;
    const state = { json_path: "$.state", json_op: "==", json_value: "ready" };
    const terms = { keyword: "HTTP 2.0", ...state };
    const id = await create({ url, ...terms });
    expect(await checked(id)).toEqual(["up", null]);
    expect((await account.get(`/v1/pulse/${id}`)).body["certificate"]).toMatchObject({
      issuer: "Test Authority",
    });
    expect(await checked(await create({ url: `${url}/down` }))).toEqual([
      "down",
      "the target responded with 503",
    ]);
    const from = await new RawServer((socket) =>
      socket.end(`HTTP/1.1 302 Found\r\nLocation: ${url}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`),
    ).start();
    expect(await checked(await create({ url: `http://127.0.0.1:${from.port}/`, ...terms }))).toEqual([
      "up",
      null,
    ]);
    from.stop();
  });

  const pair = () => ({ tls_client_certificate: client.cert, tls_client_key: client.key });

  test("presents its client certificate, whose key is never shown", async () => {
    const url = await secured({ requestCert: true, rejectUnauthorized: true, ca: authority.pem });
    const anonymous = await create({ url, keyword: "client" });
    expect((await checked(anonymous))[0]).toBe("down");
    const created = await account.post("/v1/pulse", { url, interval: MINUTE, keyword: "client", ...pair() });
    expect(created.body).toMatchObject({ tls_client_certificate: client.cert });
    const id = String(created.body["id"]);
    expect(await checked(id)).toEqual(["up", null]);
    const later = await account.put(`/v1/pulse/${id}`, { name: "With a certificate" });
    const audit = await account.get("/v1/audit");
    for (const { text } of [
      created,
      later,
      await account.get(`/v1/pulse/${id}`),
      await account.get("/v1/pulse"),
      audit,
    ])
      expect(text).not.toContain("PRIVATE KEY");
    const cleared = await account.put(`/v1/pulse/${id}`, { tls_client_certificate: null });
    expect(cleared.body["tls_client_certificate"]).toBeNull();
    expect((await checked(id))[0]).toBe("down");
  });

  test("does not present it to another origin", async () => {
    const there = await secured({ requestCert: true, rejectUnauthorized: false });
    const here = tls.createServer({ cert: own.cert, key: own.key }, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () =>
        socket.end(
          `HTTP/1.1 302 Found\r\nLocation: ${there}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
        ),
      );
    });
    const url = `https://127.0.0.1:${await portOf(here)}/`;
    expect(await checked(await create({ url, keyword: "nobody", ...pair() }))).toEqual(["up", null]);
  });

  test("moves to another origin only with the key", async () => {
    const id = await create({ url: "https://a.example.com/", ...pair() });
    const moved = { url: "https://b.example.com/" };
    const rejected = await account.put(`/v1/pulse/${id}`, moved);
    expect([rejected.status, rejected.body["code"]]).toEqual([409, "conflict"]);
    expect(rejected.text).toContain("tls_client_key");
    expect((await account.put(`/v1/pulse/${id}`, { url: "https://a.example.com/x" })).status).toBe(200);
    expect((await account.put(`/v1/pulse/${id}`, { ...moved, tls_client_key: client.key })).status).toBe(200);
    const without = { url: "https://c.example.com/", tls_client_certificate: null };
    expect((await account.put(`/v1/pulse/${id}`, without)).status).toBe(200);
  });

  test("needs a certificate and its key", async () => {
    const url = "https://a.example.com/";
    const cases: readonly (readonly [terms: object, field: string])[] = [
      [{ tls_client_certificate: client.cert }, "tls_client_key"],
      [{ tls_client_key: client.key }, "tls_client_certificate"],
      [{ tls_client_certificate: client.cert, tls_client_key: others.key }, "tls_client_key"],
      [{ tls_client_certificate: "x", tls_client_key: client.key }, "tls_client_certificate"],
      [{ tls_client_certificate: client.cert, tls_client_key: "x" }, "tls_client_key"],
      [
        { ...pair(), tls_client_certificate: "x".repeat(CLIENT_CERTIFICATE_LENGTH_MAX + 1) },
        "tls_client_certificate",
      ],
      [{ ...pair(), tls_client_key: "x".repeat(CLIENT_KEY_LENGTH_MAX + 1) }, "tls_client_key"],
    ];
    for (const [terms, field] of cases) {
      const answer = await account.post("/v1/pulse", { url, interval: MINUTE, ...terms });
      expectError(answer, "validation_error");
      expect(Object.keys(Object(answer.body["fields"]))).toEqual([field]);
    }
    const id = await create({ url, ...pair() });
    for (const [terms, field] of [
      [{ tls_client_certificate: others.cert }, "tls_client_key"],
      [{ tls_client_key: others.key }, "tls_client_key"],
      [{ tls_client_key: null }, "tls_client_key"],
    ] as const) {
      const answer = await account.put(`/v1/pulse/${id}`, terms);
      expectError(answer, "validation_error");
      expect(Object.keys(Object(answer.body["fields"]))).toEqual([field]);
    }
    const renewed = { tls_client_certificate: others.cert, tls_client_key: others.key };
    expect((await account.put(`/v1/pulse/${id}`, renewed)).body["tls_client_certificate"]).toBe(others.cert);
  });

  test("sends any method but CONNECT and TRACE, with its body", async () => {
    const site = await new RawServer((socket) =>
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    ).start();
    const url = `http://127.0.0.1:${site.port}/`;
    for (const method of ["PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "M-SEARCH", "X".repeat(32)]) {
      const id = await create({ url, method, body: '{"a":1}' });
      expect([method, ...(await checked(id))]).toEqual([method, "up", null]);
      const [request = ""] = site.requests.splice(0);
      expect([request.startsWith(`${method} / HTTP/1.1\r\n`), request.endsWith('{"a":1}')]).toEqual([
        true,
        true,
      ]);
    }
    await checked(await create({ url, body: "not sent" }));
    expect(site.requests.join()).not.toContain("not sent");
    site.stop();
    for (const method of ["CONNECT", "TRACE", "get", "", "A B", "A\r\nB", "X".repeat(33)]) {
      const answer = await account.post("/v1/pulse", {
        url: "https://a.example.com/",
        interval: MINUTE,
        method,
      });
      expectError(answer, "validation_error");
      expect(Object.keys(Object(answer.body["fields"]))).toEqual(["method"]);
    }
  });

  test("finds several keywords", async () => {
    const site = new WebhookSink();
    site.answersBy(() => new Response("in stock, add to cart"));
    const id = await create({ url: site.url("/"), keywords_all: ["in stock", "add to cart"] });
    expect(await checked(id)).toEqual(["up", null]);
    await account.put(`/v1/pulse/${id}`, { keywords_all: ["in stock", "checkout"] });
    expect(await checked(id)).toEqual(["down", 'keywords_all: "checkout" was not found in the first 64 KiB']);
    await account.put(`/v1/pulse/${id}`, { keywords_all: null, keywords_any: ["sold out", "in stock"] });
    expect(await checked(id)).toEqual(["up", null]);
    await account.put(`/v1/pulse/${id}`, { keywords_any: ["sold out", "closed"] });
    expect(await checked(id)).toEqual(["down", "keywords_any: none of 2 was found in the first 64 KiB"]);
    site.stop();
  });

  const longest = Array.from({ length: KEYWORDS_MAX }, (_, index) =>
    `${index}`.padStart(KEYWORD_LENGTH_MAX, "x"),
  );
  for (const field of ["keywords_all", "keywords_any"]) {
    test(`accepts ${field} at their limits, and rejects others`, async () => {
      const terms = { url: "https://a.example.com/", interval: MINUTE };
      const id = await create({ ...terms, [field]: longest });
      expect((await account.get(`/v1/pulse/${id}`)).body[field]).toEqual(longest);
      for (const value of [[], [""], ["a", "a"], [...longest, "one more"], [`${longest[0]}x`], "a"]) {
        const answer = await account.post("/v1/pulse", { ...terms, [field]: value });
        expectError(answer, "validation_error");
        expect(Object.keys(Object(answer.body["fields"]))[0]).toStartWith(field);
      }
      const head = await account.post("/v1/pulse", { ...terms, method: "HEAD", [field]: ["a"] });
      expect(Object.keys(Object(head.body["fields"]))).toEqual([field]);
    });
  }

  test("is the only type with these settings, but for tls", async () => {
    for (const change of [
      { tls_verify: false },
      { keywords_all: ["a"] },
      pair(),
      { method: "PUT", keywords_any: ["a"] },
    ])
      expectError(
        await account.post("/v1/pulse", { ...tcp(25, change), interval: MINUTE }),
        "validation_error",
      );
    const url = "https://a.example.com/";
    for (const value of ["direct", true])
      expectError(await account.post("/v1/pulse", { url, interval: MINUTE, tls: value }), "validation_error");
    for (const value of ["starttls-ldap", false, "", 1])
      expectError(
        await account.post("/v1/pulse", { ...tcp(25, { tls: value }), interval: MINUTE }),
        "validation_error",
      );
  });
});
