import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readLogEntry } from "../../../src/areas/notary/chain.ts";
import { NotaryService } from "../../../src/areas/notary/service.ts";
import { type NotaryStore, notaryStore } from "../../../src/areas/notary/store.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

// The service on a real database: state after a failed batch, and with few chains in memory.

let server: TestServer;
let store: NotaryStore;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
  store = notaryStore(server.server.kernel.db);
});
afterEach(() => server.stop());

const entry = (n: number) => readLogEntry({ log: { n } }, `{"log":{"n":${n}}}`);

function service(inMemoryMax?: number): NotaryService {
  return new NotaryService(store, server.server.kernel, inMemoryMax);
}

function project(ref: number) {
  return { ref, id: `proj_${ref}` };
}

describe("a unit of work that fails", () => {
  test("leaves the chain unchanged", async () => {
    const { writer } = server.server.kernel;
    const notary = service();
    await writer.submit((tx) => notary.init(tx, "usr_x", project(900)));
    const append = (n: number, fails = false): Promise<string> =>
      writer.submit((tx) => {
        const { receipt } = notary.append(tx, 900, entry(n));
        if (fails) throw new Error("after the append");
        return receipt.sequence_id;
      });
    const outcomes = await Promise.allSettled([
      append(1),
      append(2, true),
      append(3),
      append(4, true),
      append(5),
    ]);
    expect(outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : "failed"))).toEqual([
      "1",
      "failed",
      "2",
      "failed",
      "3",
    ]);
    const logs = [1, 2, 3].map((sequence) => notary.receipt(900, sequence)?.log);
    expect(logs).toEqual([{ n: 1 }, { n: 3 }, { n: 5 }]);
    expect(notary.receipt(900, 3)?.prev_hash).toBe(String(notary.receipt(900, 2)?.chain_hash));
  });

  test("leaves no chain that it created or that another unit read meanwhile", async () => {
    const { writer } = server.server.kernel;
    const notary = service();
    const outcomes = await Promise.allSettled([
      writer.submit((tx) => {
        notary.init(tx, "usr_x", project(900));
        notary.append(tx, 900, entry(1));
        throw new Error("after both");
      }),
      writer.submit((tx) => notary.append(tx, 900, entry(2)).receipt.sequence_id),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(notary.chain(900)).toBeUndefined();
    await writer.submit((tx) => notary.init(tx, "usr_x", project(900)));
    expect(await writer.submit((tx) => notary.append(tx, 900, entry(3)).receipt.sequence_id)).toBe("1");
  });
});

describe("chains above the limit in memory", () => {
  test("are read again, even within the batch that wrote them", async () => {
    const { writer } = server.server.kernel;
    const notary = service(1);
    for (const ref of [901, 902, 903]) await writer.submit((tx) => notary.init(tx, "usr_x", project(ref)));
    const refs = [901, 902, 903, 901, 902, 903, 901, 901, 903];
    const failing = refs.map((ref) =>
      writer.submit((tx) => {
        notary.append(tx, ref, entry(0));
        throw new Error("after the append");
      }),
    );
    const appended = refs.map((ref, n) =>
      writer.submit((tx) => notary.append(tx, ref, entry(n)).receipt.sequence_id),
    );
    expect((await Promise.allSettled(failing)).every(({ status }) => status === "rejected")).toBe(true);
    expect(await Promise.all(appended)).toEqual(["1", "1", "1", "2", "2", "2", "3", "4", "3"]);
    expect(notary.receipt(901, 4)?.prev_hash).toBe(String(notary.receipt(901, 3)?.chain_hash));
  });
});

describe("the chain of a deleted project", () => {
  test("is removed in slices, the key last", async () => {
    const { writer } = server.server.kernel;
    const notary = service();
    const made = await writer.submit((tx) => notary.init(tx, "usr_x", project(900)));
    for (let n = 0; n < 5; n += 1) await writer.submit((tx) => notary.append(tx, 900, entry(n)));
    const remove = async (rowsMax: number): Promise<[number, boolean]> => [
      await writer.submit((tx) => notary.remove(tx, 900, rowsMax)),
      store.chainById(made.chain_id) !== null,
    ];
    // Receipts, leaves, and the chain.
    for (let rows = 0; rows < 10; rows += 2) expect(await remove(2)).toEqual([2, true]);
    expect(await remove(3)).toEqual([1, false]);
    expect(await remove(3)).toEqual([0, false]);
    const late = writer.submit((tx) => notary.append(tx, 900, entry(9)));
    expect((await late.catch((error: Error) => error.message)) as string).toContain("has no chain yet");
  });
});
