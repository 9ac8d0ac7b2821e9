import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { AddressRanges } from "../../../src/kernel/data/address-ranges.ts";
import { StartupError } from "../../../src/kernel/errors.ts";

describe("ranges of addresses", () => {
  test.each([
    ["203.0.113.0/24", "203.0.113.9", true],
    ["203.0.113.0/24", "::ffff:203.0.113.9", true],
    ["203.0.113.0/24", "::FFFF:cb00:7109", true],
    ["203.0.113.0/24", "203.0.114.9", false],
    ["203.0.113.7/24", "203.0.113.200", true],
    ["::ffff:203.0.113.0/120", "203.0.113.9", true],
    ["203.0.113.9", "203.0.113.9", true],
    ["203.0.113.9", "203.0.113.8", false],
    ["203.0.113.8/31", "203.0.113.9", true],
    ["203.0.113.8/31", "203.0.113.10", false],
    ["0.0.0.0/0", "198.51.100.1", true],
    ["0.0.0.0/0", "2001:db8::1", false],
    ["::/0", "2001:db8::1", true],
    ["::/0", "198.51.100.1", false],
    ["2001:db8::/33", "2001:db8:7fff::1", true],
    ["2001:db8::/33", "2001:db8:8000::1", false],
    ["2001:db8::1", "2001:DB8:0:0::1", true],
    ["203.0.113.0/24", "203.0.113.009", false],
    ["10.0.0.0/8", "10", false],
    ["0.0.0.0/0", "", false],
    ["0.0.0.0/0", "x", false],
  ])("%s and %s: %p", (range, address, expected) => {
    expect(AddressRanges.parse([range]).includes(address)).toBe(expected);
    expect(AddressRanges.parse(["192.0.2.1", range]).includes(address)).toBe(expected);
  });

  test("none of them includes nothing", () => {
    expect(AddressRanges.parse([]).includes("203.0.113.9")).toBe(false);
  });

  test("have one notation", () => {
    const texts = ["203.0.113.9/32", "203.0.113.0/24", "2001:DB8:0::1/128", "::ffff:10.0.0.0/104", "::/0"];
    const { packed } = AddressRanges.parse(texts);
    expect(AddressRanges.of(packed).texts).toEqual([
      "203.0.113.9",
      "203.0.113.0/24",
      "2001:db8::1",
      "10.0.0.0/8",
      "::/0",
    ]);
  });

  test.each(["", "x", "10", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/8/8", "010.0.0.1", "1.2.3"])(
    "%p is invalid",
    (text) => {
      expect(() => AddressRanges.parse([text])).toThrow(StartupError);
    },
  );

  test("cover exactly the addresses within them", () => {
    const covers = (own: string[], others: string[]) =>
      AddressRanges.parse(own).covers(AddressRanges.parse(others));
    expect(covers(["10.0.0.0/8", "::1"], ["10.1.0.0/16", "10.2.3.4", "::1"])).toBe(true);
    expect(covers(["10.0.0.0/8"], ["10.0.0.0/8"])).toBe(true);
    expect(covers(["10.0.0.0/8"], ["10.0.0.0/7"])).toBe(false);
    expect(covers(["10.0.0.0/8"], ["10.0.0.1", "11.0.0.1"])).toBe(false);
    expect(covers(["::/0"], ["10.0.0.1"])).toBe(false);
  });

  test("property: they match as ipaddr.js does", () => {
    const bytes = (length: number) => fc.array(fc.nat(255), { minLength: length, maxLength: length });
    fc.assert(
      fc.property(
        fc
          .constantFrom(4, 16)
          .chain((length) => fc.tuple(bytes(length), bytes(length), fc.nat(length * 8), fc.nat(length * 8))),
        ([base, other, bits, shared]) => {
          const range = ipaddr.fromByteArray(base);
          // Enough common bits to be near the edge.
          const near = base.map((byte, index) => {
            const kept = Math.min(8, Math.max(0, shared - index * 8));
            return ((byte >> (8 - kept)) << (8 - kept)) | ((other[index] ?? 0) & ((1 << (8 - kept)) - 1));
          });
          const address = ipaddr.fromByteArray(near);
          const expected = (range as ipaddr.IPv4).match(address as ipaddr.IPv4, bits);
          expect(AddressRanges.parse([`${range}/${bits}`]).includes(address.toString())).toBe(expected);
        },
      ),
    );
  });
});
