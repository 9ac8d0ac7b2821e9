import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Receipt } from "../../src/verify/receipt.ts";
import { bundleOf } from "../support/checkpoints.ts";
import vectors from "../vectors/notary.json" with { type: "json" };

const VERIFY = join(import.meta.dir, "../../src/verify");

test("the portable verifier is a bundle without dependencies on Node or Bun", async () => {
  const built = await Bun.build({
    entrypoints: [join(VERIFY, "chain.ts"), join(VERIFY, "noble.ts"), join(VERIFY, "index.ts")],
    target: "browser",
    minify: true,
  });
  expect(built.success).toBe(true);
  const [chain = "", noble = "", whole = ""] = await Promise.all(
    built.outputs.map((output) => output.text()),
  );
  for (const text of [chain, noble, whole])
    expect(/node:|\bBuffer\b|\bBun\b|\brequire\(/.exec(text)).toBeNull();
  const load = (text: string) =>
    import(`data:text/javascript;base64,${Buffer.from(text).toString("base64")}`);
  const [{ ChainVerifier }, { createPortableCrypto }] = await Promise.all([load(chain), load(noble)]);
  const verifier = new ChainVerifier(createPortableCrypto());
  for (const receipt of vectors.chains[0]?.receipts ?? []) {
    expect(verifier.add(JSON.stringify(receipt)).problems).toEqual([]);
  }
  expect(verifier.count).toBe(3);
  const { verifyBundle } = await load(whole);
  const receipts = (vectors.chains[0]?.receipts ?? []) as unknown as Receipt[];
  expect(verifyBundle(bundleOf(receipts, 2)).valid).toBe(true);
});
