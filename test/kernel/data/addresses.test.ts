import { describe, expect, test } from "bun:test";
import { networkOf, parseRange } from "../../../src/kernel/data/addresses.ts";
import { StartupError } from "../../../src/kernel/errors.ts";
import { thrown } from "../support.ts";

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
  ])("%p is rejected at the start", (text) => {
    const error = thrown(() => parseRange(text));
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
