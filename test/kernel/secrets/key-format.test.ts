import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createIds } from "../../../src/kernel/ids.ts";
import {
  checksum,
  equalInConstantTime,
  hasValidChecksum,
  isBearerKey,
  KEY_LENGTH_MAX,
  keyDigest,
  keyDigestHex,
  keyPrefix,
  mintKey,
} from "../../../src/kernel/secrets/key-format.ts";
import vectors from "../../vectors/keys-and-signatures.json" with { type: "json" };

const ids = createIds(() => 0);

/** Any printable ASCII character. */
const character = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
const prefix = fc.stringMatching(/^[a-z0-9_]{1,32}$/);

describe("published vectors", () => {
  test.each(vectors.keys)("$key", ({ before_checksum: body, checksum: expected, key }) => {
    expect(checksum(body)).toBe(expected);
    expect(key).toBe(`${body}_${expected}`);
    expect(hasValidChecksum(key)).toBe(true);
    expect(isBearerKey(key)).toBe(body.startsWith("sm_"));
  });

  test("the check value of CRC-32, and a checksum with a leading zero", () => {
    expect(checksum("123456789")).toBe("cbf43926");
    expect(checksum("")).toBe("00000000");
  });
});

describe("a minted key", () => {
  test("property: has prefix, 43 Base62 characters and a valid checksum", () => {
    fc.assert(
      fc.property(prefix, (text) => {
        const key = mintKey(text, ids);
        expect(key.slice(0, text.length + 1)).toBe(`${text}_`);
        expect(key.slice(text.length + 1)).toMatch(/^[0-9A-Za-z]{43}_[0-9a-f]{8}$/);
        expect(hasValidChecksum(key)).toBe(true);
        expect(isBearerKey(key)).toBe(text === "sm");
        expect(keyPrefix(key)).toBe(text);
        for (const other of [`_${key.slice(text.length + 1)}`, key.slice(0, -1), `${key}0`, `${key}_`]) {
          expect(keyPrefix(other)).toBeNull();
        }
        expect(key.length).toBeLessThanOrEqual(KEY_LENGTH_MAX);
      }),
    );
  });

  test("is unique", () => {
    expect(new Set(Array.from({ length: 1_000 }, () => mintKey("sm", ids))).size).toBe(1_000);
  });

  test("property: is rejected with any single character changed", () => {
    fc.assert(
      fc.property(prefix, fc.nat(), character, (text, at, other) => {
        const key = mintKey(text, ids);
        const index = at % key.length;
        fc.pre(key[index] !== other);
        const changed = key.slice(0, index) + other + key.slice(index + 1);
        expect(hasValidChecksum(changed)).toBe(false);
        expect(isBearerKey(changed)).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  test("is rejected for every single change of one key", () => {
    const key = vectors.keys[0]?.key ?? "";
    let accepted = 0;
    for (let index = 0; index < key.length; index += 1) {
      for (let code = 0x20; code <= 0x7f; code += 1) {
        const changed = key.slice(0, index) + String.fromCharCode(code) + key.slice(index + 1);
        if (hasValidChecksum(changed)) accepted += 1;
      }
    }
    // The key itself, once for each of its characters.
    expect(accepted).toBe(key.length);
  });

  test("property: is rejected with a character missing, doubled or swapped with its neighbour", () => {
    fc.assert(
      fc.property(fc.nat(54), (index) => {
        const key = mintKey("sm", ids);
        const [before, at, next, after] = [
          key.slice(0, index),
          key[index],
          key[index + 1],
          key.slice(index + 2),
        ];
        expect(isBearerKey(`${before}${next ?? ""}${after}`)).toBe(false);
        expect(isBearerKey(`${before}${at}${at}${next ?? ""}${after}`)).toBe(false);
        if (next !== undefined && next !== at) {
          expect(isBearerKey(`${before}${next}${at}${after}`)).toBe(false);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("invalid keys", () => {
  const body = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg";
  const signed = (text: string) => `${text}_${checksum(text)}`;

  test.each([
    ["empty", ""],
    ["an underscore", "_"],
    ["a checksum alone", "_00000000"],
    ["a checksum of nothing", signed("").slice(1)],
    ["no checksum", `sm_${body}`],
    ["a checksum in capitals", `sm_${body}_4010CA13`],
    ["a space before", ` sm_${body}_4010ca13`],
    ["a space behind", `sm_${body}_4010ca13 `],
    ["a line break behind", `sm_${body}_4010ca13\n`],
  ])("%s", (_, text) => {
    expect(hasValidChecksum(text)).toBe(false);
    expect(isBearerKey(text)).toBe(false);
  });

  test.each([
    ["another prefix", signed(`acme_${body}`)],
    ["a prefix that begins alike", signed(`sm_live_${body}`)],
    ["one random character too few", signed(`sm_${body.slice(1)}`)],
    ["one too many", signed(`sm_${body}0`)],
    ["a character outside Base62", signed(`sm_${body.slice(1)}-`)],
    ["no prefix", signed(body)],
  ])("%s: a valid checksum does not make it a Bearer key", (_, text) => {
    expect(hasValidChecksum(text)).toBe(true);
    expect(isBearerKey(text)).toBe(false);
  });

  test("a text above KEY_LENGTH_MAX characters is rejected without a lookup", () => {
    const longest = signed("x".repeat(KEY_LENGTH_MAX - 9));
    expect(longest).toHaveLength(KEY_LENGTH_MAX);
    expect(hasValidChecksum(longest)).toBe(true);
    expect(hasValidChecksum(signed("x".repeat(KEY_LENGTH_MAX - 8)))).toBe(false);
  });
});

describe("digests and comparison", () => {
  test("SHA-256, as bytes and as hex", () => {
    const hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    expect(keyDigestHex("abc")).toBe(hex);
    expect(Buffer.from(keyDigest("abc")).toString("hex")).toBe(hex);
  });

  test.each([
    ["same", "same", true],
    ["", "", true],
    ["same", "Same", false],
    ["same", "same ", false],
    ["", "x", false],
  ])("%p and %p", (a, b, equal) => {
    expect(equalInConstantTime(a, b)).toBe(equal);
  });
});
