import { describe, expect, test } from "bun:test";
import { StartupError } from "../../../src/kernel/errors.ts";
import { createClientAddress, networkOf, parseRange } from "../../../src/kernel/http/addresses.ts";
import { thrown } from "../support.ts";

function addressOf(trusted: readonly string[], socket: string | null, forwarded?: string): string {
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  return createClientAddress(trusted)(new Request("http://localhost/", { headers }), socket);
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

  test("a socket without an address is unknown", () => {
    expect(addressOf([], null)).toBe("unknown");
    expect(addressOf(["0.0.0.0/0", "::/0"], null, "198.51.100.7")).toBe("unknown");
  });
});

describe("behind trusted proxies it is the last address that is none of theirs", () => {
  const PROXIES = ["10.0.0.0/8", "192.0.2.1", "2001:db8:1::/48"];

  test.each([
    ["no header: the proxy itself", "10.1.2.3", undefined, "10.1.2.3"],
    ["an empty header: the same", "10.1.2.3", "", "10.1.2.3"],
    ["one address", "10.1.2.3", "198.51.100.7", "198.51.100.7"],
    ["what the client wrote itself is not believed", "10.1.2.3", "1.1.1.1, 198.51.100.7", "198.51.100.7"],
    ["a chain of our proxies", "10.1.2.3", "1.1.1.1, 198.51.100.7, 192.0.2.1, 10.9.9.9", "198.51.100.7"],
    ["spaces do not matter", "10.1.2.3", " 198.51.100.7 ,  10.9.9.9 ", "198.51.100.7"],
    ["all of them ours: the first of them", "10.1.2.3", "10.7.7.7, 10.8.8.8", "10.7.7.7"],
    ["a neighbour of a trusted address is not trusted", "192.0.2.2", "198.51.100.7", "192.0.2.2"],
    ["a socket that is no proxy's is not believed", "203.0.113.9", "198.51.100.7", "203.0.113.9"],
    ["rubbish behind a proxy of ours: the proxy", "10.1.2.3", "198.51.100.7, rubbish", "10.1.2.3"],
    ["rubbish in the middle: the last address known", "10.1.2.3", "1.1.1.1, unknown, 10.9.9.9", "10.9.9.9"],
    ["a port is no part of an address", "10.1.2.3", "198.51.100.7:4711", "10.1.2.3"],
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

  test("a range written in the mapped form covers the IPv4 addresses that it stands for", () => {
    expect(addressOf(["::ffff:10.0.0.0/104"], "10.1.2.3", "198.51.100.7")).toBe("198.51.100.7");
    expect(addressOf(["::ffff:10.0.0.1"], "::ffff:10.0.0.1", "198.51.100.7")).toBe("198.51.100.7");
    expect(addressOf(["::ffff:10.0.0.0/104"], "11.1.2.3", "198.51.100.7")).toBe("11.1.2.3");
  });

  test("everyone can be trusted", () => {
    expect(addressOf(["0.0.0.0/0", "::/0"], "203.0.113.9", "1.1.1.1, 2.2.2.2")).toBe("1.1.1.1");
  });
});

describe("a range", () => {
  test.each([
    ["10.0.0.0/8", "10.0.0.0", 8],
    ["192.0.2.1", "192.0.2.1", 32],
    ["192.0.2.1/0", "192.0.2.1", 0],
    ["::1", "::1", 128],
    ["2001:db8::/32", "2001:db8::", 32],
  ])("%p", (text, address, bits) => {
    const [base, prefix] = parseRange(text);
    expect([base.toString(), prefix]).toEqual([address, bits]);
  });

  test.each([
    "",
    "localhost",
    "10.0.0.0/33",
    "::1/129",
    "10.0.0.0/",
    "10.0.0.0/-1",
    "10.0.0.0/8/8",
    "10.0.0.0/255.0.0.0",
    "10",
    "10/8",
    "010.0.0.1",
    "1.2.3.256",
    "10.0.0.0 /8",
    "[::1]",
  ])("%p is none, and the start says so", (text) => {
    const error = thrown(() => createClientAddress([text]));
    expect(error).toBeInstanceOf(StartupError);
    expect(String(error)).toContain(`"${text}" is not an address or a range such as 10.0.0.0/8.`);
  });
});

test.each([
  ["203.0.113.9", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["::ffff:cb00:7109", "203.0.113.9"],
  ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
  ["2001:DB8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"],
  ["2001:db8:1:3::1", "2001:db8:1:3::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["unknown", "unknown"],
])("%p is counted as %p", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
