import { describe, expect, test } from "bun:test";
import { deepStrictEqual } from "node:assert";
import fc from "fast-check";
import { JSON_LEVELS_MAX } from "../../src/json-text.ts";
import { verifyReceiptText } from "../../src/verify/chain.ts";
import { createNativeCrypto } from "../../src/verify/native.ts";
import { createPortableCrypto } from "../../src/verify/noble.ts";
import { checkReceipt, type Receipt, verdictOf } from "../../src/verify/receipt.ts";
import { anyJson, anyLog, makeChain } from "../support/receipts.ts";

const native = createNativeCrypto();
const portable = createPortableCrypto();

const [first, second] = makeChain([
  { event: "user.login", user: 42 },
  { b: [1.5, "é", null], a: { "10": 1e21 } },
]) as [Receipt, Receipt];

/** First letters of the names of the failed checks. */
function failing(receipt: unknown): string {
  const { checks } = verdictOf(checkReceipt(receipt, native));
  return [
    checks.signature_valid ? "" : "s",
    checks.content_hash_matches ? "" : "c",
    checks.chain_link_valid ? "" : "l",
  ].join("");
}

describe("a changed receipt", () => {
  const base64Url = Buffer.from(second.signature, "hex").toString("base64url");
  test.each([
    ["nothing", {}, ""],
    ["its signature to base64url", { signature: base64Url }, ""],
    ["unknown fields", { storage_status: "delivered", storage_location: "https://example.com/1" }, ""],
    ["its log", { log: { ...second.log, c: 1 } }, "c"],
    ["its log's order", { log: Object.fromEntries(Object.entries(second.log ?? {}).reverse()) }, "c"],
    ["its content hash", { content_hash: first.content_hash }, "cl"],
    ["its position", { sequence_id: "3" }, "l"],
    ["its position beyond 64 bits", { sequence_id: "18446744073709551616" }, "l"],
    ["its position with a leading zero", { sequence_id: "02" }, "l"],
    ["its position to a number", { sequence_id: 2 }, "l"],
    ["its predecessor", { prev_hash: "0".repeat(64) }, "l"],
    ["its chain hash", { chain_hash: first.chain_hash }, "sl"],
    ["its signature", { signature: first.signature }, "s"],
    ["its signature to upper case", { signature: second.signature.toUpperCase() }, "s"],
    ["its signature to padded base64", { signature: `${base64Url}==` }, "s"],
    [
      "its public key",
      { public_key: { kty: "OKP", crv: "Ed25519", x: Buffer.alloc(32, 9).toString("base64url") } },
      "s",
    ],
    ["its public key's curve", { public_key: { ...second.public_key, crv: "X25519" } }, "s"],
    ["its version", { version: 2 }, "scl"],
    ["its version to a string", { version: "1" }, "scl"],
    ["its time to a fraction", { timestamp: 1.5 }, "l"],
    ["its time to a string", { timestamp: "1760000000001" }, "l"],
    ["its log to nothing", { log: {} }, "c"],
    ["its log to an array", { log: [1] }, "c"],
  ])("%s", (_, change, expected) => {
    expect(failing({ ...second, ...change })).toBe(expected);
  });

  test.each(Object.keys(second))("without its %s", (field) => {
    expect(failing(Object.fromEntries(Object.entries(second).filter(([name]) => name !== field)))).not.toBe(
      "",
    );
  });

  test("the first one has a prev_hash of zeros", () => {
    expect(failing(first)).toBe("");
    expect(failing({ ...first, prev_hash: second.prev_hash })).toBe("l");
  });

  test("reports each problem once", () => {
    const { errors } = verdictOf(checkReceipt({ ...second, content_hash: "x", version: 2 }, native));
    expect(errors).toEqual(["version must be 1", "content_hash must be 64 lower-case hex digits"]);
  });
});

describe("the text of a receipt", () => {
  const json = JSON.stringify(second);
  test.each([
    ["unchanged", json, true],
    ["with spaces", JSON.stringify(second, null, 2), true],
    ["not JSON", `${json}}`, false],
    ["empty", "", false],
    ["null", "null", false],
    ["with a duplicate name in the log", json.replace('"a":{', '"a":1,"a":{'), false],
    ["with a duplicate field", json.replace('"version":1', '"version":1,"version":1'), false],
    ["with an inexact number", json.replace("1e+21", "1000000000000000000001"), false],
  ])("%s", (_, text, valid) => {
    expect(verifyReceiptText(text, native).verdict.valid).toBe(valid);
  });

  test("a duplicate name in the log fails only the content check", () => {
    const { checks } = verifyReceiptText(json.replace('"a":{', '"a":1,"a":{'), native).verdict;
    expect(checks).toEqual({ signature_valid: true, content_hash_matches: false, chain_link_valid: true });
  });

  test("has the maximum nesting of a log", () => {
    const nested = (levels: number): Record<string, unknown> =>
      JSON.parse(`{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`);
    const verdictFor = (levels: number): boolean =>
      verifyReceiptText(JSON.stringify(makeChain([nested(levels)])[0]), native).verdict.valid;
    expect(verdictFor(JSON_LEVELS_MAX)).toBe(true);
    expect(verdictFor(JSON_LEVELS_MAX + 1)).toBe(false);
  });
});

describe("any log", () => {
  test("has a receipt that is valid with both sets of primitives", () => {
    fc.assert(
      fc.property(
        fc.array(anyLog, { minLength: 1, maxLength: 3 }),
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        (logs, seed) => {
          for (const receipt of makeChain(logs, seed)) {
            const text = JSON.stringify(receipt);
            expect(verifyReceiptText(text, native).verdict).toMatchObject({ valid: true });
            expect(verifyReceiptText(text, portable).verdict).toMatchObject({ valid: true });
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  test("with a single bit of its receipt changed is invalid, unless the value is the same or only the timestamp changes", () => {
    fc.assert(
      fc.property(anyLog, fc.array(fc.nat(), { minLength: 20, maxLength: 20 }), (log, picks) => {
        const receipt = makeChain([{ before: true }, log])[1] as Receipt;
        for (const pick of picks) {
          const changed = withBitChanged(JSON.stringify(receipt), pick);
          // The signature does not cover the timestamp; the server compares it with its record.
          if (sameValue(changed, receipt)) continue;
          expect(verifyReceiptText(changed, native).verdict.valid).toBe(false);
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe("every single bit", () => {
  test("of one receipt", () => {
    const json = JSON.stringify(second);
    const survivors: number[] = [];
    for (let bit = 0; bit < Buffer.byteLength(json) * 8; bit += 1) {
      const changed = withBitChanged(json, bit);
      if (!sameValue(changed, second) && verifyReceiptText(changed, native).verdict.valid)
        survivors.push(bit);
    }
    expect(survivors).toEqual([]);
  });
});

function withBitChanged(json: string, pick: number): string {
  const bytes = Buffer.from(json);
  const bit = pick % (bytes.length * 8);
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return bytes.toString("utf8");
}

/**
 * Whether a text has the same value except for the timestamp, which must be an integer, and a log under another name: without
 * a log, only the hashes are verified.
 */
function sameValue(json: string, receipt: Receipt): boolean {
  try {
    const changed = JSON.parse(json);
    const name = Object.keys(changed)[Object.keys(receipt).indexOf("log")] ?? "";
    if (!("log" in changed)) changed.log = changed[name];
    if (name !== "log") delete changed[name];
    if (!Number.isSafeInteger(changed.timestamp) || changed.timestamp < 0) return false;
    deepStrictEqual({ ...changed, timestamp: receipt.timestamp }, receipt);
    return true;
  } catch {
    return false;
  }
}

describe("hostile input", () => {
  test("any JSON is invalid and throws no error", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        expect(verdictOf(checkReceipt(value, native)).valid).toBe(false);
      }),
    );
  });

  test("with any field replaced, both sets of primitives agree and throw no error", () => {
    const field = fc.constantFrom(...Object.keys(second));
    fc.assert(
      fc.property(field, anyJson, (name, value) => {
        const changed = { ...second, [name]: value };
        const verdict = verdictOf(checkReceipt(changed, native));
        expect(verdictOf(checkReceipt(changed, portable))).toEqual(verdict);
        if (name !== "timestamp") expect(verdict.valid).toBe(false);
      }),
    );
  });
});

describe("signatures that libraries disagree on", () => {
  const message = new Uint8Array(32).fill(1);
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const key = Buffer.from(second.public_key.x, "base64url");
  const good = Buffer.from(second.signature, "hex");
  const scalar = good.subarray(32).reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
  const malleable = Buffer.concat([good.subarray(0, 32), littleEndian(scalar + order)]);

  test.each([
    ["an s that is not reduced", malleable, Buffer.from(second.chain_hash, "hex"), key],
    ["only zeros", Buffer.alloc(64), message, key],
    ["a key that is no point", good, message, Buffer.alloc(32, 2)],
    ["a key that is not canonical", good, message, Buffer.alloc(32, 0xff)],
    ["an R that is not canonical", Buffer.concat([Buffer.alloc(32, 0xff), good.subarray(32)]), message, key],
    ["63 bytes", good.subarray(1), message, key],
    ["65 bytes", Buffer.concat([good, Buffer.of(0)]), message, key],
    ["a key of 31 bytes", good, message, key.subarray(1)],
  ])("%s: both reject", (_, signature, signed, publicKey) => {
    expect(native.verifyEd25519(signature, signed, publicKey)).toBe(false);
    expect(portable.verifyEd25519(signature, signed, publicKey)).toBe(false);
  });

  test("the valid one: both accept", () => {
    const signed = Buffer.from(second.chain_hash, "hex");
    expect(native.verifyEd25519(good, signed, key)).toBe(true);
    expect(portable.verifyEd25519(good, signed, key)).toBe(true);
  });
});

function littleEndian(value: bigint): Buffer {
  const bytes = Buffer.alloc(32);
  for (let at = 0, rest = value; at < 32; at += 1, rest >>= 8n) bytes[at] = Number(rest & 255n);
  return bytes;
}
