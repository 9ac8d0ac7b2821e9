import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { sign } from "node:crypto";
import { readLogEntry } from "../../../src/areas/notary/chain.ts";
import { NotaryService } from "../../../src/areas/notary/service.ts";
import { SIGNED_AHEAD_MAX, type SignBeside } from "../../../src/areas/notary/signing-ahead.ts";
import { notaryStore } from "../../../src/areas/notary/store.ts";
import type { Writer } from "../../../src/kernel/storage/writer.ts";
import { ChainVerifier } from "../../../src/verify/chain.ts";
import { createPortableCrypto } from "../../../src/verify/noble.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const PROJECT = 900;

let server: TestServer;
let writer: Writer;
/** What the thread that signs was given, and has not signed yet. */
let begun: (() => void)[];
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
  writer = server.server.kernel.writer;
  begun = [];
});
afterEach(() => server.stop());

const later: SignBeside = (key, hash, done) => begun.push(() => done(sign(null, hash, key)));
/** A signature that is none: where it is taken, the chain shows it. */
const MARK = new Uint8Array(64).fill(7);
const marked: SignBeside = (_key, _hash, done) => begun.push(() => done(MARK));

async function notaryWith(beside: SignBeside, cores = 4): Promise<NotaryService> {
  const { kernel } = server.server;
  const notary = new NotaryService(notaryStore(kernel.db), { ...kernel, cores }, undefined, beside);
  await writer.submit((tx) => notary.init(tx, "usr_x", { ref: PROJECT, id: "proj_x" }));
  return notary;
}

/** As a request does: foresees its receipt, then queues its unit of work. */
function log(notary: NotaryService, n: number, fails = false): Promise<string> {
  const entry = readLogEntry({ log: { n } }, `{"log":{"n":${n}}}`);
  const foreseen = notary.foresee(PROJECT, entry);
  return writer.submit((tx) => {
    if (fails) throw new Error("refused");
    return notary.append(tx, PROJECT, entry, foreseen).receipt.signature;
  });
}

function expectWhole(notary: NotaryService, length: number): void {
  const verifier = new ChainVerifier(createPortableCrypto());
  const { receipts } = notary.receipts(PROJECT, 1_000, undefined);
  for (const receipt of receipts.reverse())
    expect(verifier.add(JSON.stringify(receipt)).problems).toEqual([]);
  expect(verifier).toMatchObject({ first: "1", last: String(length) });
}

describe("a receipt that waits for a commit", () => {
  test("is signed beside the event loop, but for the first, whose commit may come at once", async () => {
    const notary = await notaryWith(marked);
    const receipts = [log(notary, 1), log(notary, 2), log(notary, 3)];
    expect(begun).toHaveLength(2);
    for (const done of begun) done();
    const mark = MARK.toHex();
    expect((await Promise.all(receipts)).map((signature) => signature === mark)).toEqual([false, true, true]);
  });

  test("is signed within its unit of work when the signature is late, or fails", async () => {
    const notary = await notaryWith((_key, _hash, done) => done(null));
    await Promise.all([1, 2, 3].map((n) => log(notary, n)));
    expectWhole(notary, 3);
  });

  test("is signed anew when one before it was refused; the next batch is foreseen again", async () => {
    const notary = await notaryWith(later);
    const first = [log(notary, 1), log(notary, 2), log(notary, 3, true), log(notary, 4), log(notary, 5)];
    for (const done of begun.splice(0)) done();
    const outcomes = await Promise.allSettled(first);
    expect(outcomes.map(({ status }) => status)).toEqual([
      ...["fulfilled", "fulfilled", "rejected", "fulfilled", "fulfilled"],
    ] as never);
    expectWhole(notary, 4);
    const chain = notary.chain(PROJECT);
    await log(notary, 6);
    expect(chain?.foreseen?.hash).toBe(chain?.hash as never);
    expectWhole(notary, 5);
  });

  test("is signed anew when the last ones of a batch were refused", async () => {
    const notary = await notaryWith(later);
    await Promise.allSettled([log(notary, 1), log(notary, 2, true), log(notary, 3, true)]);
    // These are foreseen behind the refused ones; what comes after them is not.
    await Promise.all([log(notary, 4), log(notary, 5)]);
    await log(notary, 6);
    const chain = notary.chain(PROJECT);
    expect(chain?.foreseen?.hash).toBe(chain?.hash as never);
    expectWhole(notary, 4);
  });

  test("takes nothing from a chain that was removed and made again meanwhile", async () => {
    const notary = await notaryWith(marked);
    const before = readLogEntry({ log: { n: 1 } }, '{"log":{"n":1}}');
    const foreseen = notary.foresee(PROJECT, before);
    if (foreseen !== null) foreseen.signature = MARK;
    await writer.submit((tx) => notary.remove(tx, PROJECT, 100));
    await writer.submit((tx) => notary.init(tx, "usr_x", { ref: PROJECT, id: "proj_x" }));
    await writer.submit((tx) => notary.append(tx, PROJECT, before, foreseen).receipt.sequence_id);
    expectWhole(notary, 1);
  });
});

test("no more signatures are begun than the threads may have before them", async () => {
  const notary = await notaryWith(later);
  // The first one is not begun.
  const receipts = Array.from({ length: 1 + SIGNED_AHEAD_MAX + 5 }, (_, n) => log(notary, n));
  expect(begun).toHaveLength(SIGNED_AHEAD_MAX);
  await Promise.all(receipts);
  // Threads that hang hold up nobody.
  await Promise.all([log(notary, 1), log(notary, 2)]);
  expect(begun).toHaveLength(SIGNED_AHEAD_MAX);
  begun[0]?.();
  await Promise.all([log(notary, 1), log(notary, 2)]);
  expect(begun).toHaveLength(SIGNED_AHEAD_MAX + 1);
});

test.each([
  [1, 0],
  [2, 0],
  [3, 2],
])("on %i processors %i of three are signed beside the event loop", async (cores, count) => {
  const notary = await notaryWith(later, cores);
  await Promise.all([1, 2, 3].map((n) => log(notary, n)));
  expect(begun).toHaveLength(count);
  expectWhole(notary, 3);
});
