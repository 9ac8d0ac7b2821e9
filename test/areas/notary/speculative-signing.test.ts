import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { sign } from "node:crypto";
import { readLogEntry } from "../../../src/areas/notary/chain.ts";
import { NotaryService } from "../../../src/areas/notary/service.ts";
import {
  SIGNATURES_IN_FLIGHT_MAX,
  type SignInBackground,
} from "../../../src/areas/notary/speculative-signing.ts";
import { notaryStore } from "../../../src/areas/notary/store.ts";
import type { Writer } from "../../../src/kernel/storage/writer.ts";
import { ChainVerifier } from "../../../src/verify/chain.ts";
import { createPortableCrypto } from "../../../src/verify/noble.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const PROJECT = 900;

let server: TestServer;
let writer: Writer;
/** Signatures started and not finished. */
let started: (() => void)[];
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
  writer = server.server.kernel.writer;
  started = [];
});
afterEach(() => server.stop());

const later: SignInBackground = (key, hash, done) => started.push(() => done(sign(null, hash, key)));
/** An invalid signature that shows where a prediction is used. */
const MARK = new Uint8Array(64).fill(7);
const marked: SignInBackground = (_key, _hash, done) => started.push(() => done(MARK));

async function notaryWith(signInBackground: SignInBackground, cores = 4): Promise<NotaryService> {
  const { kernel } = server.server;
  const notary = new NotaryService(notaryStore(kernel.db), { ...kernel, cores }, undefined, signInBackground);
  await writer.submit((tx) => notary.init(tx, "usr_x", { ref: PROJECT, id: "proj_x" }));
  return notary;
}

/** Like a request: predicts the receipt, then queues its unit of work. */
function log(notary: NotaryService, n: number, fails = false): Promise<string> {
  const entry = readLogEntry({ log: { n } }, `{"log":{"n":${n}}}`);
  const predicted = notary.predict(PROJECT, entry);
  return writer.submit((tx) => {
    if (fails) throw new Error("rejected");
    return notary.append(tx, PROJECT, entry, predicted).receipt.signature;
  });
}

function expectComplete(notary: NotaryService, length: number): void {
  const verifier = new ChainVerifier(createPortableCrypto());
  const { receipts } = notary.receipts(PROJECT, 1_000, undefined);
  for (const receipt of receipts.reverse())
    expect(verifier.add(JSON.stringify(receipt)).problems).toEqual([]);
  expect(verifier).toMatchObject({ first: "1", last: String(length) });
}

describe("a receipt pending commit", () => {
  test("is signed off the event loop, except for the first, which may be committed immediately", async () => {
    const notary = await notaryWith(marked);
    const receipts = [log(notary, 1), log(notary, 2), log(notary, 3)];
    expect(started).toHaveLength(2);
    for (const done of started) done();
    const mark = MARK.toHex();
    expect((await Promise.all(receipts)).map((signature) => signature === mark)).toEqual([false, true, true]);
  });

  test("is signed within its unit of work when the signature is late or fails", async () => {
    const notary = await notaryWith((_key, _hash, done) => done(null));
    await Promise.all([1, 2, 3].map((n) => log(notary, n)));
    expectComplete(notary, 3);
  });

  test("is signed again when an earlier one was rejected; the next batch is predicted again", async () => {
    const notary = await notaryWith(later);
    const first = [log(notary, 1), log(notary, 2), log(notary, 3, true), log(notary, 4), log(notary, 5)];
    for (const done of started.splice(0)) done();
    const outcomes = await Promise.allSettled(first);
    expect(outcomes.map(({ status }) => status)).toEqual([
      ...["fulfilled", "fulfilled", "rejected", "fulfilled", "fulfilled"],
    ] as never);
    expectComplete(notary, 4);
    const chain = notary.chain(PROJECT);
    await log(notary, 6);
    expect(chain?.predicted?.hash).toBe(chain?.hash as never);
    expectComplete(notary, 5);
  });

  test("is signed again when the last ones of a batch were rejected", async () => {
    const notary = await notaryWith(later);
    await Promise.allSettled([log(notary, 1), log(notary, 2, true), log(notary, 3, true)]);
    // These were predicted to follow the rejected ones; later receipts are not.
    await Promise.all([log(notary, 4), log(notary, 5)]);
    await log(notary, 6);
    const chain = notary.chain(PROJECT);
    expect(chain?.predicted?.hash).toBe(chain?.hash as never);
    expectComplete(notary, 4);
  });

  test("ignores predictions for a chain that was removed and created again", async () => {
    const notary = await notaryWith(marked);
    const before = readLogEntry({ log: { n: 1 } }, '{"log":{"n":1}}');
    const predicted = notary.predict(PROJECT, before);
    if (predicted !== null) predicted.signature = MARK;
    await writer.submit((tx) => notary.remove(tx, PROJECT, 100));
    await writer.submit((tx) => notary.init(tx, "usr_x", { ref: PROJECT, id: "proj_x" }));
    await writer.submit((tx) => notary.append(tx, PROJECT, before, predicted).receipt.sequence_id);
    expectComplete(notary, 1);
  });
});

test("signatures in flight have a limit", async () => {
  const notary = await notaryWith(later);
  // The first one is not started.
  const receipts = Array.from({ length: 1 + SIGNATURES_IN_FLIGHT_MAX + 5 }, (_, n) => log(notary, n));
  expect(started).toHaveLength(SIGNATURES_IN_FLIGHT_MAX);
  await Promise.all(receipts);
  // Hanging threads delay no receipt.
  await Promise.all([log(notary, 1), log(notary, 2)]);
  expect(started).toHaveLength(SIGNATURES_IN_FLIGHT_MAX);
  started[0]?.();
  await Promise.all([log(notary, 1), log(notary, 2)]);
  expect(started).toHaveLength(SIGNATURES_IN_FLIGHT_MAX + 1);
});

test.each([
  [1, 0],
  [2, 0],
  [3, 2],
])("on %i processors %i of three are signed off the event loop", async (cores, count) => {
  const notary = await notaryWith(later, cores);
  await Promise.all([1, 2, 3].map((n) => log(notary, n)));
  expect(started).toHaveLength(count);
  expectComplete(notary, 3);
});
