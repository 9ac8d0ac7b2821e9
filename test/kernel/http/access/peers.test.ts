import { describe, expect, test } from "bun:test";
import { StartupError } from "../../../../src/kernel/errors.ts";
import { Peers } from "../../../../src/kernel/http/access/peers.ts";
import { KeptLog, thrown } from "../../support.ts";

const log = new KeptLog();
const LISTENING = { host: "::1", port: 9909, tls: null };

const LISTENS_AT = new URL("http://127.0.0.1:9909");

/** A server whose requests all come from one address. */
function reachedFrom(address: string | null) {
  return { url: LISTENS_AT, requestIP: () => (address === null ? null : { address }) };
}

function addressOf(trustProxy: readonly string[], socket: string | null, forwarded?: string): string | null {
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  const request = new Request("http://localhost/", { headers });
  return new Peers({ ...LISTENING, publicUrl: () => null, trustProxy }, log).clientAddress(
    request,
    reachedFrom(socket),
  );
}

describe("the client's address without trusted proxies is the socket's", () => {
  test.each([
    ["203.0.113.9", undefined, "203.0.113.9"],
    ["203.0.113.9", "198.51.100.7", "203.0.113.9"],
    ["127.0.0.1", "198.51.100.7", "127.0.0.1"],
    // One spelling per address, so that no caller has two.
    ["::ffff:203.0.113.9", undefined, "203.0.113.9"],
    ["2001:DB8:0:0:0:0:0:1", undefined, "2001:db8::1"],
    ["::1", undefined, "::1"],
  ])("socket %p, X-Forwarded-For %p → %p", (socket, forwarded, expected) => {
    expect(addressOf([], socket, forwarded)).toBe(expected);
  });

  test("a request without a socket has no address", () => {
    expect(addressOf([], null)).toBeNull();
    expect(addressOf(["0.0.0.0/0", "::/0"], null, "198.51.100.7")).toBeNull();
  });
});

test("an X-Forwarded-For of an untrusted address is reported once", () => {
  const kept = new KeptLog();
  const peers = new Peers({ ...LISTENING, publicUrl: () => null, trustProxy: ["10.0.0.0/8"] }, kept);
  const request = new Request("http://localhost/", { headers: { "x-forwarded-for": "198.51.100.7" } });
  peers.clientAddress(new Request("http://localhost/"), reachedFrom("203.0.113.9"));
  peers.clientAddress(request, reachedFrom("10.0.0.1"));
  expect(kept.lines).toEqual([]);
  peers.clientAddress(request, reachedFrom("203.0.113.9"));
  peers.clientAddress(request, reachedFrom("203.0.113.10"));
  expect(kept.lines).toEqual([
    { level: "warn", message: expect.stringContaining("trust_proxy"), fields: { address: "203.0.113.9" } },
  ]);
});

test("an X-Forwarded-For that begins after many requests is reported within a few of them", () => {
  const kept = new KeptLog();
  const peers = new Peers({ ...LISTENING, publicUrl: () => null, trustProxy: [] }, kept);
  const direct = new Request("http://localhost/");
  const forwarded = new Request("http://localhost/", { headers: { "x-forwarded-for": "198.51.100.7" } });
  for (let sent = 0; sent < 2_000; sent += 1) peers.clientAddress(direct, reachedFrom("203.0.113.9"));
  for (let sent = 0; sent < 100; sent += 1) peers.clientAddress(forwarded, reachedFrom("203.0.113.9"));
  expect(kept.lines).toHaveLength(1);
});

describe("behind trusted proxies it is the last address that is not trusted", () => {
  const PROXIES = ["10.0.0.0/8", "192.0.2.1", "2001:db8:1::/48"];

  test.each([
    ["no header: the proxy itself", "10.1.2.3", undefined, "10.1.2.3"],
    ["an empty header: the same", "10.1.2.3", "", "10.1.2.3"],
    ["one address", "10.1.2.3", "198.51.100.7", "198.51.100.7"],
    [
      "an entry that the client wrote itself is not trusted",
      "10.1.2.3",
      "1.1.1.1, 198.51.100.7",
      "198.51.100.7",
    ],
    ["a chain of our proxies", "10.1.2.3", "1.1.1.1, 198.51.100.7, 192.0.2.1, 10.9.9.9", "198.51.100.7"],
    ["spaces do not matter", "10.1.2.3", " 198.51.100.7 ,  10.9.9.9 ", "198.51.100.7"],
    ["all of them ours: the first of them", "10.1.2.3", "10.7.7.7, 10.8.8.8", "10.7.7.7"],
    ["a neighbour of a trusted address is not trusted", "192.0.2.2", "198.51.100.7", "192.0.2.2"],
    ["a socket that is not a proxy is not trusted", "203.0.113.9", "198.51.100.7", "203.0.113.9"],
    ["rubbish behind a proxy of ours: the proxy", "10.1.2.3", "198.51.100.7, rubbish", "10.1.2.3"],
    ["rubbish in the middle: the last address known", "10.1.2.3", "1.1.1.1, unknown, 10.9.9.9", "10.9.9.9"],
    ["an address with its port", "10.1.2.3", "203.0.113.9:41234", "203.0.113.9"],
    ["IPv6 with its port", "10.1.2.3", "[2001:db8::1]:443", "2001:db8::1"],
    ["IPv6 in brackets", "10.1.2.3", "[2001:DB8::1]", "2001:db8::1"],
    ["a chain with ports", "10.1.2.3", "1.1.1.1:1, 198.51.100.7:4711, [2001:db8:1::5]:80", "198.51.100.7"],
    ["what is no port", "10.1.2.3", "198.51.100.7:http", "10.1.2.3"],
    ["brackets around a name", "10.1.2.3", "[host]:80", "10.1.2.3"],
    ["IPv4 in brackets", "10.1.2.3", "[198.51.100.7]:80", "198.51.100.7"],
    ["a shortened form is no address", "10.1.2.3", "127.1", "10.1.2.3"],
    ["a mapped socket address", "::ffff:10.1.2.3", "198.51.100.7", "198.51.100.7"],
    ["a mapped address in the header", "10.1.2.3", "::ffff:198.51.100.7", "198.51.100.7"],
    ["a mapped proxy in the header", "10.1.2.3", "198.51.100.7, ::ffff:10.9.9.9", "198.51.100.7"],
    ["an IPv6 proxy", "2001:db8:1::5", "2001:db8:2::7", "2001:db8:2::7"],
    ["another IPv6 network", "2001:db8:2::5", "198.51.100.7", "2001:db8:2::5"],
    ["IPv4 ranges do not cover IPv6", "::1", "198.51.100.7", "::1"],
  ])("%s", (_, socket, forwarded, expected) => {
    expect(addressOf(PROXIES, socket, forwarded)).toBe(expected);
  });

  test("a range in the mapped form covers its IPv4 addresses", () => {
    expect(addressOf(["::ffff:10.0.0.0/104"], "10.1.2.3", "198.51.100.7")).toBe("198.51.100.7");
    expect(addressOf(["::ffff:10.0.0.1"], "::ffff:10.0.0.1", "198.51.100.7")).toBe("198.51.100.7");
    expect(addressOf(["::ffff:10.0.0.0/104"], "11.1.2.3", "198.51.100.7")).toBe("11.1.2.3");
  });

  test("all addresses can be trusted", () => {
    expect(addressOf(["0.0.0.0/0", "::/0"], "203.0.113.9", "1.1.1.1, 2.2.2.2")).toBe("1.1.1.1");
  });
});

test("an invalid range of trusted proxies fails the start", () => {
  const error = thrown(
    () => new Peers({ ...LISTENING, publicUrl: () => null, trustProxy: ["10.0.0.0/33"] }, log),
  );
  expect(error).toBeInstanceOf(StartupError);
});

describe("the server's origin", () => {
  function originOf(url: string, given: { host?: string; proto?: string; socket?: string } = {}): string {
    const headers = new Headers();
    if (given.host !== undefined) headers.set("host", given.host);
    if (given.proto !== undefined) headers.set("x-forwarded-proto", given.proto);
    const peers = new Peers({ ...LISTENING, publicUrl: () => null, trustProxy: ["10.0.0.0/8"] }, log);
    return peers.origin(new Request(url, { headers }), reachedFrom(given.socket ?? "10.1.2.3"));
  }

  test.each([
    ["what Host says", { host: "n.example.com:81" }, "http://n.example.com:81"],
    ["without the scheme's own port", { host: "N.example.com:80" }, "http://n.example.com"],
    [
      "with what a proxy says of the scheme",
      { host: "n.example.com", proto: "HTTPS" },
      "https://n.example.com",
    ],
    ["and its own port", { host: "n.example.com:443", proto: "https" }, "https://n.example.com"],
    [
      "the first scheme, of several proxies",
      { host: "n.example.com", proto: "https, http" },
      "https://n.example.com",
    ],
    ["the scheme of WebSockets", { host: "n.example.com", proto: "wss" }, "https://n.example.com"],
    ["with no scheme but http and https", { host: "n.example.com", proto: "ftp" }, "http://n.example.com"],
    [
      "without what others than a trusted proxy say",
      { host: "n.example.com", proto: "https", socket: "192.0.2.1" },
      "http://n.example.com",
    ],
    ["a Host that makes no URL is passed over", { host: "a b" }, "http://asked.example.com"],
    ["without a Host, the requested URL", {}, "http://asked.example.com"],
  ])("%s", (_, given, expected) => {
    expect(originOf("http://asked.example.com/v1/catch", given)).toBe(expected);
  });

  test("is --public-url regardless of the request, also without a socket", () => {
    const peers = new Peers(
      { ...LISTENING, publicUrl: () => "https://n.example.com", trustProxy: ["0.0.0.0/0"] },
      log,
    );
    const headers = { host: "other.example.com", "x-forwarded-proto": "http" };
    const request = new Request("http://offline/", { headers });
    expect(peers.origin(request, reachedFrom("10.1.2.3"))).toBe("https://n.example.com");
    expect(peers.origin(request, null)).toBe("https://n.example.com");
  });
});
