import { describe, expect, test } from "bun:test";
import { FlagdCore } from "@openfeature/flagd-core";
import fc from "fast-check";
import type { Serve } from "../../../../src/areas/flags/definitions/schema.ts";
import { PrefixedHash, positionOf } from "../../../../src/areas/flags/evaluation/bucketing.ts";
import { compileFlag, evaluate } from "../../../../src/areas/flags/evaluation/evaluation.ts";

/** The hash of a complete text. */
const murmur3 = (text: string): number => new PrefixedHash("").of(text);

describe("murmur3 and positions", () => {
  test.each([
    ["", 0, 0, 0],
    ["a", 1_009_084_850, 23, 23_494],
    ["hello", 613_153_351, 14, 14_276],
    ["new-checkoutuser-1", 1_954_156_369, 45, 45_498],
    ["new-checkoutuser-2", 986_941_360, 22, 22_979],
    ["new-checkouté-user", 1_811_298_414, 42, 42_172],
    ["new-checkout用户", 2_557_501_998, 59, 59_546],
  ])("%s", (text, hash, ofHundred, ofHundredThousand) => {
    expect(murmur3(text)).toBe(hash);
    expect(positionOf(hash, 100)).toBe(ofHundred);
    expect(positionOf(hash, 100_000)).toBe(ofHundredThousand);
  });

  test.each([
    ["ejOoVL", 0, 0],
    ["bY9fO-", 1, 0],
    ["SI7p-", 2_147_483_647, 49],
    ["6LvT0", 2_147_483_648, 50],
    ["ceQdGm", 4_294_967_295, 99],
  ])("%s, at an end of the range", (text, hash, ofHundred) => {
    expect(murmur3(text)).toBe(hash);
    expect(positionOf(hash, 100)).toBe(ofHundred);
  });

  test("any text is hashed as its UTF-8 bytes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 3_000 }), (text) => {
        expect(murmur3(text)).toBe(plainMurmur3(new TextEncoder().encode(text)));
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "binary" }), (prefix, text) => {
        const hash = new PrefixedHash(prefix);
        for (const item of [text, "", text, prefix]) expect(hash.of(item)).toBe(murmur3(prefix + item));
      }),
    );
    const long = "用户é".repeat(20_000);
    expect(murmur3(long)).toBe(plainMurmur3(new TextEncoder().encode(long)));
  });

  test("positions are exact if the product exceeds 2^53", () => {
    const [hash, weight] = [fc.nat(2 ** 32 - 1), fc.integer({ min: 1, max: 2 ** 31 - 1 })];
    fc.assert(
      fc.property(hash, weight, (h, w) => {
        expect(BigInt(positionOf(h, w))).toBe((BigInt(h) * BigInt(w)) >> 32n);
      }),
      { numRuns: 2_000 },
    );
  });
});

/** The original algorithm with 64-bit integers. */
function plainMurmur3(bytes: Uint8Array): number {
  const word = (n: bigint) => n & 0xffff_ffffn;
  const turned = (n: bigint, by: bigint) => word((n << by) | (n >> (32n - by)));
  const mix = (n: bigint) => word(turned(word(n * 0xcc9e2d51n), 15n) * 0x1b873593n);
  let state = 0n;
  const whole = bytes.length - (bytes.length % 4);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (let at = 0; at < whole; at += 4) {
    state = word(turned(state ^ mix(BigInt(view.getUint32(at, true))), 13n) * 5n + 0xe6546b64n);
  }
  let tail = 0n;
  for (let at = bytes.length - 1; at >= whole; at -= 1) tail = (tail << 8n) | BigInt(bytes[at] ?? 0);
  state ^= mix(tail) ^ BigInt(bytes.length);
  state = word((state ^ (state >> 16n)) * 0x85ebca6bn);
  state = word((state ^ (state >> 13n)) * 0xc2b2ae35n);
  return Number(state ^ (state >> 16n));
}

const SUITS = ["clubs", "diamonds", "hearts", "spades"];

/** The variant of a flag that has only a split. */
function variantOf(key: string, serve: Serve, context: object): string | undefined {
  const names = serve.split?.map(({ variant }) => variant ?? "") ?? [];
  const variants = Object.fromEntries(names.map((name) => [name, name]));
  const flag = compileFlag(key, true, { type: "string", variants, default: serve });
  return evaluate(flag, { ...context }, 0).variant;
}

describe("splits compatible with flagd (@fractional-v2)", () => {
  const suits = { split: SUITS.map((variant) => ({ variant, weight: 25 })), by: "email" };

  test.each([
    ["jack@faas.com", "hearts", undefined],
    ["queen@faas.com", "spades", undefined],
    ["ten@faas.com", "clubs", undefined],
    ["nine@faas.com", "diamonds", undefined],
    ["3@faas.com", "clubs", undefined],
  ])("%s", (name, suit) => {
    const local = name.slice(0, name.indexOf("@"));
    expect(variantOf("fractional-flag", suits, { email: local })).toBe(suit);
  });

  test.each([
    ["seven", "hearts"],
    ["eight", "diamonds"],
    ["nine", "clubs"],
    ["two", "spades"],
  ])("%s, by a shared seed", (name, suit) => {
    expect(variantOf("fractional-flag-A", { ...suits, seed: "shared-seed" }, { email: name })).toBe(suit);
  });

  test.each([
    ["jon@company.com", "heads"],
    ["jane@company.com", "tails"],
  ])("%s, of two of 1", (email, side) => {
    const split = [
      { variant: "heads", weight: 1 },
      { variant: "tails", weight: 1 },
    ];
    expect(variantOf("fractional-flag-shorthand", { split, by: "email" }, { email })).toBe(side);
  });

  test("5,000 keys get the same variants as from flagd's evaluator", () => {
    const weights = [7, 13, 30, 50];
    const core = new FlagdCore();
    core.setConfigurations(
      JSON.stringify({
        flags: {
          "new-checkout": {
            state: "ENABLED",
            variants: Object.fromEntries(SUITS.map((suit) => [suit, suit])),
            defaultVariant: "clubs",
            targeting: { fractional: SUITS.map((suit, index) => [suit, weights[index]]) },
          },
        },
      }),
    );
    const split = SUITS.map((variant, index) => ({ variant, weight: weights[index] ?? 0 }));
    const counts = new Map<string, number>();
    let differences = 0;
    for (let index = 0; index < 5_000; index += 1) {
      const context = { targetingKey: `user-${index}-${(index * 7_919) % 1_009}` };
      const theirs = core.resolveStringEvaluation("new-checkout", "none", context).variant ?? "";
      if (variantOf("new-checkout", { split }, context) !== theirs) differences += 1;
      counts.set(theirs, (counts.get(theirs) ?? 0) + 1);
    }
    expect(differences).toBe(0);
    // All variants occur.
    expect([...counts.keys()].sort()).toEqual(SUITS);
  });
});

test("25 % of 100,000 users are 25,058, and a higher weight of the first entry removes no user", () => {
  const withShare = (share: number) => {
    const split = [
      { variant: "on", weight: share },
      { variant: "off", weight: 100 - share },
    ];
    return compileFlag("new-checkout", true, { variants: { on: true, off: false }, default: { split } });
  };
  const [quarter, third] = [withShare(25), withShare(33)];
  let count = 0;
  for (let index = 0; index < 100_000; index += 1) {
    const context = { targetingKey: `user-${index}` };
    if (evaluate(quarter, context, 0).value !== true) continue;
    count += 1;
    expect(evaluate(third, context, 0).value).toBe(true);
  }
  expect(count).toBe(25_058);
});
