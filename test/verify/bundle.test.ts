import { describe, expect, test } from "bun:test";
import { toBase64, toHex } from "../../src/verify/bytes.ts";
import { verifyBundle, verifyCheckpoint, verifyConsistency } from "../../src/verify/index.ts";
import { bundleOf, checkpointOf, cosignedBy, treeOf, witnessOf } from "../support/checkpoints.ts";
import { makeChain } from "../support/receipts.ts";

const chain = makeChain(Array.from({ length: 9 }, (_, n) => ({ n, text: "é" })));
const publicKey = String(chain[0]?.public_key.x);

describe("verifyBundle", () => {
  const bundle = bundleOf(chain, 4);

  test("accepts a bundle, as a text and as an object", () => {
    const verdict = { valid: true, sequence: "4", origin: "example.com/audit", size: 9, publicKey };
    expect(verifyBundle(bundle)).toEqual(verdict);
    expect(verifyBundle(JSON.stringify(bundle), { publicKey })).toEqual(verdict);
  });

  test.each([
    ["another type", { type: "ninefold-bundle/v2" }],
    ["another receipt", { receipt: chain[4] }],
    ["a receipt with another log", { receipt: { ...chain[3], log: { n: 1 } } }],
    ["a receipt with another timestamp", { receipt: { ...chain[3], timestamp: 1 } }],
    ["no receipt", { receipt: null }],
    ["another index", { inclusion: { ...bundle.inclusion, leaf_index: 4 } }],
    ["another size", { inclusion: { ...bundle.inclusion, tree_size: 8 } }],
    ["a missing hash", { inclusion: { ...bundle.inclusion, hashes: bundle.inclusion.hashes.slice(1) } }],
    ["a hash that is not base64", { inclusion: { ...bundle.inclusion, hashes: ["?"] } }],
    ["hashes that are no list", { inclusion: { ...bundle.inclusion, hashes: 1 } }],
    ["no inclusion", { inclusion: null }],
    ["an older checkpoint", { checkpoint: checkpointOf(chain, 8) }],
    ["a checkpoint of another key", { checkpoint: checkpointOf(chain, 9, 8) }],
    ["no checkpoint", { checkpoint: null }],
  ])("rejects %s", (_, change) => {
    const changed = { ...bundle, ...change };
    for (const item of [changed, JSON.stringify(changed)]) {
      const verdict = verifyBundle(item);
      expect(verdict.valid).toBe(false);
      expect(verdict.errors?.length).toBeGreaterThan(0);
    }
  });

  test("rejects another key than the given one", () => {
    const { errors } = verifyBundle(bundle, { publicKey: "A".repeat(43) });
    expect(errors).toContain("public_key of the receipt differs from the given key");
  });

  test.each(["", "{", "null", "[]", `{"a":${"[".repeat(2_000)}${"]".repeat(2_000)}}`])(
    "rejects %p",
    (text) => {
      expect(verifyBundle(text).valid).toBe(false);
    },
  );

  test("rejects a text with a duplicate name in the log, which a parser drops", () => {
    const text = JSON.stringify(bundle).replace('"log":{"n":3,', '"log":{"n":4,"n":3,');
    expect(verifyBundle(text).errors?.join()).toContain("log.n");
  });
});

describe("verifyCheckpoint", () => {
  const note = checkpointOf(chain, 9);

  test("accepts a checkpoint of the given key, and names its witnesses", () => {
    const witness = witnessOf(11);
    expect(verifyCheckpoint(cosignedBy(note, [witness]), { publicKey, witnesses: [witness.vkey] })).toEqual({
      valid: true,
      origin: "example.com/audit",
      size: 9,
      root_hash: toHex(treeOf(chain).root(9)),
      witnesses: ["witness.example/11"],
    });
  });

  test.each([
    ["without a key", note, {}, "publicKey or vkey is needed"],
    ["with a malformed key", note, { publicKey: "x" }, "publicKey is not"],
    ["with a malformed vkey", note, { vkey: "x" }, "vkey is not"],
    ["with a malformed witness", note, { publicKey, witnesses: ["x"] }, "not the vkey of a witness"],
    ["of another text", note.replace("\n9\n", "\n8\n"), { publicKey }, "no valid signature"],
    ["that is malformed", "x", { publicKey }, "not a signed checkpoint"],
  ])("rejects one %s", (_, text, keys, error) => {
    const verdict = verifyCheckpoint(text, keys);
    expect(verdict.valid).toBe(false);
    expect(verdict.errors?.join()).toContain(error);
  });
});

describe("verifyConsistency", () => {
  const headAt = (size: number) => verifyCheckpoint(checkpointOf(chain, size), { publicKey });
  const hashes = treeOf(chain).consistency(5, 9).map(toBase64);

  test("accepts a chain that only grew", () => {
    expect(verifyConsistency(headAt(5), headAt(9), hashes)).toBe(true);
  });

  test("rejects every other", () => {
    expect(verifyConsistency(headAt(4), headAt(9), hashes)).toBe(false);
    expect(verifyConsistency(headAt(9), headAt(5), hashes)).toBe(false);
    expect(verifyConsistency(headAt(5), headAt(9), hashes.slice(1))).toBe(false);
    expect(verifyConsistency(headAt(5), headAt(9), ["?", ...hashes.slice(1)])).toBe(false);
    expect(verifyConsistency(headAt(5), { size: null, root_hash: null }, hashes)).toBe(false);
    expect(verifyConsistency({ size: 5, root_hash: "x" }, headAt(9), hashes)).toBe(false);
  });
});
