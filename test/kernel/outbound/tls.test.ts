import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createServer, type TLSSocket } from "node:tls";
import { type Certificate, CertificateAuthority } from "../../support/certificates.ts";
import { RawServer } from "../../support/raw-server.ts";
import { answeredWith, failureOf, get, LOOPBACK, Opened, textOf } from "./support.ts";

const opened = new Opened();
let authority: CertificateAuthority;
let named: Certificate;
let addressed: Certificate;
let foreign: CertificateAuthority;

beforeAll(() => {
  authority = new CertificateAuthority();
  foreign = new CertificateAuthority();
  named = authority.issue("a.example", "DNS:a.example,DNS:*.wild.example");
  addressed = authority.issue("address", "IP:127.0.0.1");
});
afterEach(() => opened.close());
afterAll(() => {
  authority.remove();
  foreign.remove();
});

/** An HTTPS server that responds with the requested server name. */
async function secureServer(certificate: Certificate): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const server = createServer(certificate, (socket: TLSSocket) => {
    connections += 1;
    socket.on("error", () => {});
    socket.on("data", () => {
      const name = String(socket.servername || "none");
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${name.length}\r\n\r\n${name}`);
    });
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  opened.add({ stop: () => server.close() });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    connections: () => connections,
  };
}

function clientFor(certificateAuthorities?: string) {
  const overrides = { resolver: { resolve: async () => ["127.0.0.1"] } };
  return opened.client(
    LOOPBACK,
    certificateAuthorities === undefined ? overrides : { ...overrides, certificateAuthorities },
  );
}

describe("TLS", () => {
  test("the certificate is checked against the name, while the connection goes to the address", async () => {
    const server = await secureServer(named);
    const outbound = clientFor(authority.pem);
    expect(textOf(await outbound.send(get(`https://a.example:${server.port}/`)))).toBe("a.example");
    expect(textOf(await outbound.send(get(`https://x.wild.example:${server.port}/`)))).toBe("x.wild.example");
    expect(textOf(await outbound.send(get(`https://a.example.:${server.port}/`)))).toBe("a.example");
  });

  test("another name at the same address is rejected, also if a connection is open", async () => {
    const server = await secureServer(named);
    const outbound = clientFor(authority.pem);
    expect(answeredWith(await outbound.send(get(`https://a.example:${server.port}/`))).status).toBe(200);
    expect(failureOf(await outbound.send(get(`https://b.example:${server.port}/`)))).toBe("tls");
    expect(failureOf(await outbound.send(get(`https://127.0.0.1:${server.port}/`)))).toBe("tls");
  });

  test("a connection is reused for its name", async () => {
    const server = await secureServer(named);
    const outbound = clientFor(authority.pem);
    for (let turn = 0; turn < 3; turn += 1) await outbound.send(get(`https://a.example:${server.port}/`));
    expect(server.connections()).toBe(1);
  });

  test("an address in the URL is checked against the certificate's addresses", async () => {
    const server = await secureServer(addressed);
    const outbound = clientFor(authority.pem);
    expect(answeredWith(await outbound.send(get(`https://127.0.0.1:${server.port}/`))).status).toBe(200);
    expect(failureOf(await outbound.send(get(`https://a.example:${server.port}/`)))).toBe("tls");
  });

  test.each([null, "IP:127.0.0.1", "URI:https://common.example/"])(
    "a name only in the common name is not valid: %p as alternative name",
    async (alternativeNames) => {
      const server = await secureServer(authority.issue("common.example", alternativeNames));
      const outbound = clientFor(authority.pem);
      expect(failureOf(await outbound.send(get(`https://common.example:${server.port}/`)))).toBe("tls");
    },
  );

  test("a certificate with only an alternative name is valid", async () => {
    const server = await secureServer(authority.issue("other.example", "DNS:only.example"));
    const outbound = clientFor(authority.pem);
    expect(textOf(await outbound.send(get(`https://only.example:${server.port}/`)))).toBe("only.example");
    expect(failureOf(await outbound.send(get(`https://other.example:${server.port}/`)))).toBe("tls");
  });

  test("an unknown authority is rejected", async () => {
    const server = await secureServer(named);
    for (const authorities of [undefined, foreign.pem]) {
      expect(failureOf(await clientFor(authorities).send(get(`https://a.example:${server.port}/`)))).toBe(
        "tls",
      );
    }
  });

  test("a server without TLS, that disconnects, or that sends nothing", async () => {
    const answers = [
      { respond: (write: (bytes: string) => void) => write("HTTP/1.1 400 Bad\r\n\r\n"), kind: "tls" },
      { respond: null, kind: "timeout" },
    ] as const;
    for (const { respond, kind } of answers) {
      const raw = opened.add(await new RawServer(() => {}).start());
      raw.onConnection = (socket) => respond?.((bytes) => socket.write(bytes));
      const outcome = await clientFor(authority.pem).send(
        get(`https://a.example:${raw.port}/`, { timeoutMs: respond === null ? 100 : 5_000 }),
      );
      expect(failureOf(outcome)).toBe(kind);
    }
  });

  test("plain HTTP to an HTTPS port fails", async () => {
    const server = await secureServer(named);
    const kind = failureOf(await clientFor(authority.pem).send(get(`http://a.example:${server.port}/`)));
    expect(["reset", "malformed"]).toContain(kind);
  });
});
