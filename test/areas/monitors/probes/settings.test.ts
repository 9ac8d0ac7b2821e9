import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { SMTPServer } from "smtp-server";
import { freePort } from "../../../harness/processes/ports.ts";
import { type Certificate, CertificateAuthority } from "../../../support/certificates.ts";
import { until } from "../../../support/eventually.ts";
import { mailDialog } from "../../../support/mail-dialog.ts";
import { encodedName, NameServer } from "../../../support/name-server.ts";
import { ProbeProcesses } from "../../../support/probe-processes.ts";
import { RawServer } from "../../../support/raw-server.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
/** A process starts, certificates are made, and the machine may be busy. */
const TIMEOUT_MS = 180_000;

let probes: ProbeProcesses;
let authority: CertificateAuthority;
let own: Certificate;
let client: Certificate;
let others: Certificate;
let names: NameServer;
let site: WebhookSink;
let raw: RawServer;
let smtp: SMTPServer;
let server: TestServer;
let account: AccountClient;
const open: Server[] = [];

beforeAll(async () => {
  probes = new ProbeProcesses();
  authority = new CertificateAuthority();
  own = authority.issue("localhost", "IP:127.0.0.1,DNS:localhost");
  client = authority.issue("client", "DNS:client.example");
  others = authority.issue("others", "DNS:others.example");
  names = await new NameServer().start();
  names.names.set("shop.example", ["192.0.2.10", "192.0.2.11"]);
  names.records.set("shop.example", [
    ["MX", Buffer.concat([Buffer.from([0, 10]), encodedName("mail.example")])],
  ]);
  site = new WebhookSink();
  site.answersBy(({ path, headers }) => {
    if (path === "/gone") return 410;
    if (path === "/login")
      return new Response(null, {
        status: 302,
        headers: { location: "/shop", "set-cookie": "visit=7; Path=/" },
      });
    const isKnown = headers.get("cookie") === "visit=7";
    return new Response(isKnown ? "in stock, add to cart" : "log in first");
  });
  raw = await new RawServer((socket) =>
    socket.end("HTTP/1.1 207 Multi-Status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
  ).start();
  smtp = new SMTPServer({ cert: own.cert, key: own.key, authOptional: true, banner: "mail.example" });
  smtp.on("error", () => {});
  server = await startTestServer({ manualClock: true, args: ["--port", String(freePort())] });
  account = await server.account({ tier: "unlimited" });
});
afterAll(async () => {
  probes.remove();
  await server.stop();
  for (const one of open) one.close();
  smtp.close();
  raw.stop();
  site.stop();
  names.stop();
  authority.remove();
});

async function portOf(listener: Server): Promise<number> {
  open.push(listener);
  if (!listener.listening) {
    listener.listen(0, "127.0.0.1");
    await new Promise<void>((resolve) => listener.once("listening", resolve));
  }
  const address = listener.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** An HTTPS server that says whose certificate it got. */
async function secured(options: tls.TlsOptions): Promise<string> {
  const listener = tls.createServer(options, (socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      const name = String(socket.getPeerCertificate().subject?.CN ?? "nobody");
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${name.length}\r\nConnection: close\r\n\r\n${name}`);
    });
  });
  return `https://127.0.0.1:${await portOf(listener)}/`;
}

/** What is expected of a monitor after its check: fields of the monitor, and of the check. */
interface Case {
  readonly terms: object;
  readonly monitor: object;
  readonly check?: object;
}

async function cases(): Promise<Readonly<Record<string, Case>>> {
  const dns = { type: "dns", host: "shop.example", record_type: "A", resolver: names.address };
  const tcp = async (listener: Server, change: object) => ({
    type: "tcp",
    host: "127.0.0.1",
    port: await portOf(listener),
    ...change,
  });
  const certificate = { issuer: "Test Authority", days_left: expect.any(Number) };
  const greeting = tls.createServer({ cert: own.cert, key: own.key }, (socket) => {
    socket.on("error", () => {});
    socket.write("* OK ready\r\n");
  });
  const imap = mailDialog(own, "* OK ready\r\n", { STARTTLS: "a1 OK begin\r\n" }, "STARTTLS");
  const pop = mailDialog(own, "+OK ready\r\n", { STLS: "+OK begin\r\n" }, "STLS");
  const invalid = await secured({ cert: others.cert, key: others.key });
  const asking = {
    cert: own.cert,
    key: own.key,
    requestCert: true,
    rejectUnauthorized: true,
    ca: authority.pem,
  };
  const up = { status: "up", error: null };
  const url = site.url("/login");
  return {
    "dns, exact": { terms: { ...dns, record_value: "192.0.2.11" }, monitor: up },
    "dns, exact, of another value": {
      terms: { ...dns, record_value: "192.0.2.1" },
      monitor: { status: "down", error: "record_value: none of 2 A records has it" },
    },
    "dns, contains": {
      terms: { ...dns, record_type: "MX", match: "contains", record_value: "mail" },
      monitor: up,
    },
    "dns, set": {
      terms: { ...dns, match: "set", record_values: ["192.0.2.11", "192.0.2.10"] },
      monitor: up,
    },
    "dns, a smaller set": {
      terms: { ...dns, match: "set", record_values: ["192.0.2.11"] },
      monitor: { status: "down" },
    },
    "tcp, direct": {
      terms: await tcp(greeting, { tls: true, keyword: "ready" }),
      monitor: { ...up, tls: "direct", certificate },
      check: { response_status: null },
    },
    "tcp, SMTP": {
      terms: await tcp(smtp.listen(0, "127.0.0.1"), { tls: "starttls-smtp", keyword: "ESMTP" }),
      monitor: { ...up, certificate },
    },
    "tcp, IMAP": { terms: await tcp(imap, { tls: "starttls-imap" }), monitor: { ...up, certificate } },
    "tcp, POP3": { terms: await tcp(pop, { tls: "starttls-pop3" }), monitor: { ...up, certificate } },
    "a client certificate": {
      terms: {
        url: await secured(asking),
        keyword: "client",
        tls_client_certificate: client.cert,
        tls_client_key: client.key,
      },
      monitor: { ...up, certificate },
      check: { response_status: 200 },
    },
    "an invalid certificate": {
      terms: { url: invalid },
      monitor: { status: "down", error: expect.stringMatching(/^tls: /) },
    },
    "an invalid certificate, accepted": {
      terms: { url: invalid, tls_verify: false },
      monitor: { ...up, certificate },
    },
    "cookies and all keywords": {
      terms: { url, keywords_all: ["in stock", "cart"] },
      monitor: up,
      check: { response_status: 200 },
    },
    "a missing keyword": {
      terms: { url, keywords_all: ["in stock", "checkout"] },
      monitor: {
        status: "down",
        error: 'keywords_all: "checkout" was not found in the first 64 KiB',
      },
    },
    "any keyword": { terms: { url, keywords_any: ["sold out", "in stock"] }, monitor: up },
    "a method, a body and headers": {
      terms: {
        url: `http://127.0.0.1:${raw.port}/files`,
        method: "PROPFIND",
        body: "<propfind/>",
        headers: { Depth: "1", Authorization: "Basic c2VjcmV0" },
      },
      monitor: up,
      check: { response_status: 207 },
    },
    "an accepted status": {
      terms: { url: site.url("/gone"), accept_status: ["200-299", "410"] },
      monitor: up,
      check: { response_status: 410 },
    },
    "a status that is not accepted": {
      terms: { url: site.url("/gone") },
      monitor: { status: "down" },
      check: { response_status: 410 },
    },
  };
}

test(
  "a probe checks with every setting of a monitor, gets its secrets unsealed, and sends back what it found",
  async () => {
    const { body } = await account.post("/v1/pulse/probes", { name: "home" });
    const token = String(body["token"]);
    const ids = new Map<string, string>();
    const wanted = await cases();
    for (const [name, { terms }] of Object.entries(wanted)) {
      const usual = { interval: MINUTE, timeout: 20_000, probes: ["home"] };
      const created = await account.post("/v1/pulse", { ...usual, ...terms });
      expect([name, created.status, created.text]).toEqual([name, 201, expect.any(String)]);
      ids.set(name, String(created.body["id"]));
      expect(created.text).not.toContain("PRIVATE KEY");
    }
    const work = await server.client(token).get("/v1/probe/work?wait_ms=0");
    const monitors = work.body["monitors"] as Record<string, unknown>[];
    const given = (name: string) => monitors.find((one) => one["monitor_id"] === ids.get(name));
    expect(given("a client certificate")).toMatchObject({ tls_client_key: client.key });
    expect(given("a method, a body and headers")).toMatchObject({
      headers: { Depth: "1", Authorization: "Basic c2VjcmV0" },
    });
    for (const { terms } of Object.values(wanted)) {
      const { tls: given, ...others } = terms as Record<string, unknown>;
      expect(monitors).toContainEqual(
        expect.objectContaining({
          ...others,
          ...(given !== undefined && { tls: given === true ? "direct" : given }),
        }),
      );
    }

    const file = join(probes.folder, "ca.pem");
    writeFileSync(file, authority.pem);
    probes.start(server.url, token, ["--allow-private-targets", "loopback", "--extra-ca", file]);
    const views = () =>
      Promise.all([...ids.values()].map(async (id) => (await account.get(`/v1/pulse/${id}`)).body));
    await until(async () => {
      await server.clock.advance(MINUTE);
      return (await views()).every((view) => view["last_checked_at"] !== null);
    });
    for (const [name, { monitor, check = {} }] of Object.entries(wanted)) {
      const id = ids.get(name);
      const { body: view } = await account.get(`/v1/pulse/${id}`);
      const { body: history } = await account.get(`/v1/pulse/${id}/history?limit=1`);
      const [last] = history["checks"] as Record<string, unknown>[];
      const { status, error, ...fields } = monitor as Record<string, unknown>;
      const found = { status, ...(error !== undefined && { error }), probe: "home", ...check };
      expect({ ...view, ...last, case: name }).toMatchObject({ ...fields, ...found, case: name });
      expect([name, view["status"]]).toEqual([name, status]);
    }
    expect(raw.requests[0]).toStartWith("PROPFIND /files HTTP/1.1\r\n");
    expect(raw.requests[0]).toContain("Basic c2VjcmV0");
    expect(raw.requests[0]).toEndWith("<propfind/>");
  },
  TIMEOUT_MS,
);
