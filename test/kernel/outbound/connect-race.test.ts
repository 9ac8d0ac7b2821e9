import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { OutboundClient } from "../../../src/kernel/outbound/client.ts";
import { inTurns } from "../../../src/kernel/outbound/connect-race.ts";
import { CertificateAuthority } from "../../support/certificates.ts";
import { FullPort } from "../../support/full-port.ts";
import { RawServer } from "../../support/raw-server.ts";
import { answeredWith, get, Opened, textOf } from "./support.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/** A host with a port that swallows packets, and one that works. */
const SILENT = "127.0.0.2";
const WORKING = "127.0.0.1";
const ACCOUNT = 1;
/** Longer than the test may take: an address that uses up its timeout fails the test. */
const timeoutMs = 60_000;

const opened = new Opened();
afterEach(() => opened.close());

test.each([
  [
    ["192.0.2.1", "192.0.2.2", "2001:db8::1"],
    ["192.0.2.1", "2001:db8::1", "192.0.2.2"],
  ],
  [
    ["2001:db8::1", "2001:db8::2", "192.0.2.1"],
    ["2001:db8::1", "192.0.2.1", "2001:db8::2"],
  ],
  [
    ["192.0.2.1", "2001:db8::1", "2001:db8::2"],
    ["192.0.2.1", "2001:db8::1", "2001:db8::2"],
  ],
  [["192.0.2.1"], ["192.0.2.1"]],
  [[], []],
])("the addresses %p are tried in turns of their families: %p", (addresses, expected) => {
  expect(inTurns(addresses)).toEqual(expected);
});

describe("a host whose first address swallows packets is reached at the second", () => {
  let server: RawServer;
  let client: OutboundClient;
  beforeEach(async () => {
    server = opened.add(await new RawServer((socket) => socket.write(OK)).start(WORKING));
    opened.add(await FullPort.at(SILENT, server.port));
    client = opened.client(["127.0.0.0/8"], { resolver: { resolve: async () => [SILENT, WORKING] } });
  });

  test("by HTTP", async () => {
    const outcome = await client.send(get(`http://two.example:${server.port}/`, { timeoutMs }));
    expect([textOf(outcome), answeredWith(outcome).address]).toEqual(["ok", WORKING]);
  });

  test("by TCP, and by probes of the connectivity", async () => {
    const { port } = server;
    const outcome = await client.connectTo({
      account: ACCOUNT,
      host: "two.example",
      port,
      tls: null,
      expected: null,
      timeoutMs,
    });
    expect(outcome).toMatchObject({ answered: true, address: WORKING });
    expect(await client.reaches(`http://two.example:${port}`, { account: ACCOUNT, timeoutMs })).toBe(true);
  });

  test("all of them silent: the timeout is the request's", async () => {
    const silent = opened.client(["127.0.0.0/8"], { resolver: { resolve: async () => [SILENT, SILENT] } });
    const outcome = await silent.send(get(`http://two.example:${server.port}/`, { timeoutMs: 400 }));
    expect(outcome).toMatchObject({ answered: false, failure: { kind: "timeout" } });
  });
});

test("an address that rejects the connection is followed by the next one immediately, the last one's error counts", async () => {
  const server = opened.add(await new RawServer((socket) => socket.write(OK)).start(WORKING));
  const resolve = (...addresses: string[]) =>
    opened.client(["127.0.0.0/8"], { resolver: { resolve: async () => addresses } });
  const url = `http://two.example:${server.port}/`;
  expect(textOf(await resolve("127.0.0.3", "127.0.0.4", WORKING).send(get(url)))).toBe("ok");
  expect(await resolve("127.0.0.3", "127.0.0.4").send(get(url))).toMatchObject({
    answered: false,
    failure: { kind: "connect" },
  });
});

describe("over HTTPS", () => {
  test("the address that accepts first is used, and its certificate counts", async () => {
    const authority = new CertificateAuthority();
    try {
      const files = authority.issue("two", "DNS:two.example");
      using secure = Bun.serve({ port: 0, hostname: WORKING, tls: files, fetch: () => new Response("ok") });
      opened.add(await FullPort.at(SILENT, secure.port ?? 0));
      const client = (name: string) =>
        opened
          .client(["127.0.0.0/8"], {
            certificateAuthorities: authority.pem,
            resolver: { resolve: async () => [SILENT, WORKING] },
          })
          .send(get(`https://${name}:${secure.port}/`, { timeoutMs }));
      expect(textOf(await client("two.example"))).toBe("ok");
      expect(await client("other.example")).toMatchObject({ answered: false, failure: { kind: "tls" } });
    } finally {
      authority.remove();
    }
  });
});
