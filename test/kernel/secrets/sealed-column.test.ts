import { expect, test } from "bun:test";
import { sealedJson, sealedText } from "../../../src/kernel/secrets/sealed-column.ts";
import { createVault, MASTER_KEY_BYTES } from "../../../src/kernel/secrets/vault.ts";

const vault = createVault(new Uint8Array(MASTER_KEY_BYTES).fill(7));
const HEADERS = sealedJson<Record<string, string>>("test-headers");
const TOKEN = sealedText("test-token");

test("a sealed value opens in its own row and column alone", () => {
  const sealed = TOKEN.seal(vault, "row_1", "a secret");
  expect(TOKEN.open(vault, "row_1", sealed)).toBe("a secret");
  expect(() => TOKEN.open(vault, "row_2", sealed)).toThrow();
  expect(() => HEADERS.open(vault, "row_1", sealed)).toThrow();
});

test("an object is sealed as JSON, for the purpose and the row", () => {
  const sealed = HEADERS.seal(vault, 42, { "X-Key": "k" });
  expect(HEADERS.open(vault, 42, sealed)).toEqual({ "X-Key": "k" });
  expect(vault.open(sealed, "test-headers:42")).toBe('{"X-Key":"k"}');
});

test("nothing is stored of null and of an object without members; an empty text is stored", () => {
  expect(HEADERS.sealOrNull(vault, "row_1", {})).toBeNull();
  expect(HEADERS.sealOrNull(vault, "row_1", null)).toBeNull();
  expect(TOKEN.openOrNull(vault, "row_1", TOKEN.sealOrNull(vault, "row_1", ""))).toBe("");
});

test("a column without a value, and one that a restore has emptied, opens as null", () => {
  expect(TOKEN.openOrNull(vault, "row_1", null)).toBeNull();
  expect(TOKEN.openOrNull(vault, "row_1", new Uint8Array(0))).toBeNull();
});
