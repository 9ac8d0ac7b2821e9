import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createVault, MASTER_KEY_BYTES } from "../../../src/kernel/secrets/vault.ts";

const KEY = new Uint8Array(MASTER_KEY_BYTES).map((_, index) => index);
const vault = createVault(KEY);

describe("vault", () => {
  test("property: opens what it sealed, for any text and context", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string(), (plain, context) => {
        expect(vault.open(vault.seal(plain, context), context)).toBe(plain);
      }),
    );
  });

  test("never seals to the same bytes twice, and reveals nothing of the text", () => {
    const sealed = Array.from({ length: 100 }, () => vault.seal("a readable secret", "context"));
    expect(new Set(sealed.map((bytes) => Buffer.from(bytes).toString("hex"))).size).toBe(100);
    for (const bytes of sealed) expect(Buffer.from(bytes).includes("readable")).toBe(false);
  });

  test("does not open a value in another context", () => {
    const sealed = vault.seal("secret", "platform-key:usr_1");
    for (const context of ["platform-key:usr_2", "platform-key:usr_1 ", "Platform-key:usr_1", ""]) {
      expect(() => vault.open(sealed, context)).toThrow();
    }
  });

  test("derives a deterministic key for each purpose and master key", () => {
    const derived = Buffer.from(vault.derive("one")).toString("hex");
    expect(derived).toMatch(/^[0-9a-f]{64}$/);
    expect(Buffer.from(createVault(KEY).derive("one")).toString("hex")).toBe(derived);
    expect(Buffer.from(vault.derive("two")).toString("hex")).not.toBe(derived);
    expect(Buffer.from(createVault(KEY.map((byte) => byte ^ 1)).derive("one")).toString("hex")).not.toBe(
      derived,
    );
    expect(derived).not.toBe(Buffer.from(KEY).toString("hex"));
  });

  test("does not open with a master key that differs in one bit", () => {
    const sealed = vault.seal("secret", "context");
    for (let bit = 0; bit < MASTER_KEY_BYTES * 8; bit += 1) {
      const other = KEY.slice();
      other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => createVault(other).open(sealed, "context")).toThrow();
    }
  });

  test("does not open with any bit flipped: format, nonce, text, tag", () => {
    const sealed = vault.seal("a secret of some length", "context");
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const flipped = sealed.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => vault.open(flipped, "context")).toThrow();
    }
    expect(vault.open(sealed, "context")).toBe("a secret of some length");
  });

  test("does not open if cut or lengthened", () => {
    const sealed = vault.seal("secret", "context");
    for (let length = 0; length < sealed.length; length += 1) {
      expect(() => vault.open(sealed.subarray(0, length), "context")).toThrow();
    }
    expect(() => vault.open(new Uint8Array([...sealed, 0]), "context")).toThrow();
  });

  test.each([0, MASTER_KEY_BYTES - 1, MASTER_KEY_BYTES + 1])("rejects a master key of %p bytes", (length) => {
    expect(() => createVault(new Uint8Array(length))).toThrow("a master key has 32 bytes");
  });
});
