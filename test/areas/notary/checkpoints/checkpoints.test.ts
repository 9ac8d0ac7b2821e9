import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  CHECKPOINT_INTERVAL_MS,
  CHECKPOINTS_STORED_MAX,
} from "../../../../src/areas/notary/checkpoints/checkpoints.ts";
import { ORIGIN_LENGTH_MAX } from "../../../../src/areas/notary/schema.ts";
import { fromBase64, fromHex } from "../../../../src/verify/bytes.ts";
import { createNativeCrypto } from "../../../../src/verify/native.ts";
import { parseCheckpoint, parseNote } from "../../../../src/verify/note.ts";
import type { Receipt } from "../../../../src/verify/receipt.ts";
import { isConsistent, isIncluded, leafHashOf, leafOf } from "../../../../src/verify/tree.ts";
import { expectError } from "../../../support/errors.ts";
import { openNote } from "../../../support/notes.ts";
import { endpoint, type World } from "../../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

const crypto = createNativeCrypto();

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

async function logs(account: AccountClient, count: number): Promise<Receipt[]> {
  await account.post("/v1/witness/sys/init");
  const receipts: Receipt[] = [];
  for (let n = 1; n <= count; n += 1)
    receipts.push((await account.post("/v1/witness/log", { log: { n } })).body as unknown as Receipt);
  return receipts;
}

/** The head of the tree that a checkpoint names. */
function headOf(note: unknown) {
  const checkpoint = parseCheckpoint(parseNote(String(note))?.text ?? "");
  if (checkpoint === null) throw new Error(`not a checkpoint: ${note}`);
  return checkpoint;
}

function hashesOf(body: Record<string, unknown>): Uint8Array[] {
  return (body["hashes"] as string[]).map((hash) => fromBase64(hash) ?? new Uint8Array());
}

const three = ({ account }: World) => logs(account, 3);
const nobody = (path: string) => ({
  name: "no key",
  as: "nobody" as const,
  request: ["GET", path] as const,
  status: 401,
  code: "unauthorized",
});
const beforeInit = (path: string) => ({
  name: "before init",
  request: ["GET", path] as const,
  status: 409,
  code: "conflict",
});

describe("GET /v1/witness/checkpoint", () => {
  const path = "/v1/witness/checkpoint";
  endpoint(() => server, `GET ${path}`, [
    {
      name: "a note over all receipts",
      before: three,
      request: ["GET", path],
      status: 200,
      after: async ({ account }, { text, headers }) => {
        expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
        expect(headOf(text).size).toBe(3);
        const { body } = await account.get(`${path}?format=json`);
        expect(body["note"]).toBe(text);
        expect(body["root_hash"]).toBe(Buffer.from(headOf(text).root).toString("hex"));
        expect(openNote(text, String(body["vkey"]))).toBe(0);
      },
    },
    {
      name: "an empty chain",
      before: ({ account }: World) => logs(account, 0),
      request: ["GET", `${path}?format=json`],
      status: 200,
      holds: {
        size: 0,
        root_hash: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        cosignatures: [],
      },
    },
    {
      name: "an unknown format",
      request: ["GET", `${path}?format=xml`],
      status: 400,
      code: "validation_error",
    },
    beforeInit(path),
    nobody(path),
  ]);

  test("is signed at most once a second, and stays the same without new receipts", async () => {
    const account = await server.account();
    await logs(account, 1);
    const first = await account.get(path);
    await logs(account, 1);
    expect((await account.get(path)).text).toBe(first.text);
    await server.clock.advance(CHECKPOINT_INTERVAL_MS - 1);
    expect((await account.get(path)).text).toBe(first.text);
    await server.clock.advance(1);
    const second = await account.get(path);
    expect(headOf(second.text).size).toBe(2);
    await server.clock.advance(10 * CHECKPOINT_INTERVAL_MS);
    expect((await account.get(path)).text).toBe(second.text);
  });

  test("is signed a second after a receipt without a request, and that survives a restart", async () => {
    const account = await server.account();
    const { chain_id } = (await account.post("/v1/witness/sys/init")).body;
    await account.put("/v1/witness/tlog", { public: true });
    await logs(account, 2);
    const published = `/v1/witness/tlog/${chain_id}/checkpoint`;
    const anyone = () => server.client(null).get(published);
    expect((await anyone()).status).toBe(404);
    await server.clock.advance(1_000);
    expect(headOf((await anyone()).text).size).toBe(2);
    await logs(account, 2);
    await server.restart();
    await server.clock.advance(1_000);
    expect(headOf((await anyone()).text).size).toBe(4);
  });

  test("is signed later with another notary.checkpoint_seconds", async () => {
    const slow = await startTestServer({
      manualClock: true,
      environment: { NINEFOLD_NOTARY_CHECKPOINT_SECONDS: "60" },
    });
    try {
      const account = await slow.account();
      const { chain_id } = (await account.post("/v1/witness/sys/init")).body;
      await account.put("/v1/witness/tlog", { public: true });
      await logs(account, 1);
      const status = async () =>
        (await slow.client(null).get(`/v1/witness/tlog/${chain_id}/checkpoint`)).status;
      await slow.clock.advance(59_000);
      expect(await status()).toBe(404);
      await slow.clock.advance(1_000);
      expect(await status()).toBe(200);
    } finally {
      await slow.stop();
    }
  });

  test("the newest thousand are stored, and of older ones the last of each day", async () => {
    const account = await server.account();
    await logs(account, 0);
    const { db, writer } = server.server.kernel;
    const count = db.number(
      "SELECT count(*) AS n FROM notary_checkpoints WHERE chain_ref = (SELECT max(ref) FROM chains)",
    );
    // Checkpoints of the day before, at sizes that the chain has not reached.
    const insert = db.change<[size: number, at: number]>(
      "INSERT INTO notary_checkpoints (chain_ref, epoch, size, root, signature, signed_at) SELECT max(ref), 0, ?, x'00', x'00', ? FROM chains",
    );
    const yesterday = server.clock.now() - 24 * 60 * 60 * 1000;
    await writer.submit((tx) => {
      for (let size = 1; size <= CHECKPOINTS_STORED_MAX + 2; size += 1)
        insert(tx, -size, yesterday - size * CHECKPOINT_INTERVAL_MS);
    });
    await account.get(path);
    expect(count()).toBe(CHECKPOINTS_STORED_MAX + 2);
    await server.clock.advance(CHECKPOINT_INTERVAL_MS);
    await logs(account, 1);
    await account.get(path);
    expect(count()).toBe(CHECKPOINTS_STORED_MAX + 2);
  });

  test("a size is never signed with another root: a changed leaf stops the chain's checkpoints", async () => {
    const account = await server.account();
    await logs(account, 3);
    await account.get(path);
    await server.clock.advance(CHECKPOINT_INTERVAL_MS);
    await logs(account, 1);
    const { db, writer } = server.server.kernel;
    const change = db.change(
      "UPDATE receipt_leaves SET hash = zeroblob(32) WHERE sequence = 2 AND chain_ref = (SELECT max(ref) FROM chains)",
    );
    await writer.submit((tx) => change(tx));
    expectError(await account.get(path), "internal_error");
    expect(server.logs.some(({ fields }) => String(fields["error"]).includes("does not continue"))).toBe(
      true,
    );
  });
});

describe("origin", () => {
  const init = "/v1/witness/sys/init";

  test("is the chain's id by default, and otherwise the one that init gave", async () => {
    const [first, second] = [await server.account(), await server.account()];
    const { chain_id } = (await first.post(init)).body;
    await second.post(init, { origin: "example.com/audit" });
    const origins = [first, second].map(
      async (account) => (await account.get("/v1/witness/checkpoint?format=json")).body["origin"],
    );
    expect(await Promise.all(origins)).toEqual([`ninefold/${chain_id}`, "example.com/audit"]);
    expect((await second.post(init, { origin: "example.com/other" })).status).toBe(200);
    await server.clock.advance(CHECKPOINT_INTERVAL_MS);
    await logs(second, 1);
    expect(headOf((await second.get("/v1/witness/checkpoint")).text).origin).toBe("example.com/audit");
  });

  test.each(["", "a b", "a+b", "é", "a\nb", "x".repeat(ORIGIN_LENGTH_MAX + 1)])(
    "%p is rejected",
    async (origin) => {
      const account = await server.account();
      expectError(await account.post(init, { origin }), "validation_error");
    },
  );

  test("of the longest length is accepted", async () => {
    const account = await server.account();
    expect((await account.post(init, { origin: "x".repeat(ORIGIN_LENGTH_MAX) })).status).toBe(201);
    expect((await account.get("/v1/witness/checkpoint")).status).toBe(200);
  });
});

/** Cases of queries that a path rejects. */
const rejectedOn = (path: string) => (name: string, query: string) => ({
  name,
  before: three,
  request: ["GET", `${path}?${query}`] as const,
  status: 400,
  code: "validation_error",
});

describe("GET /v1/witness/proofs/inclusion", () => {
  const path = "/v1/witness/proofs/inclusion";
  const bad = rejectedOn(path);
  endpoint(() => server, `GET ${path}`, [
    {
      name: "for the newest checkpoint",
      before: three,
      request: ["GET", `${path}?sequence_id=2`],
      status: 200,
      holds: { leaf_index: 1, tree_size: 3 },
    },
    bad("a size below the position", "sequence_id=3&size=2"),
    bad("a size above the chain", "sequence_id=3&size=4"),
    bad("a size of 0", "sequence_id=1&size=0"),
    bad("no position", "size=3"),
    bad("a position of 0", "sequence_id=0"),
    {
      name: "a position past the end",
      before: three,
      request: ["GET", `${path}?sequence_id=4`],
      status: 404,
      code: "not_found",
    },
    {
      name: "a receipt that is too new",
      before: async ({ account }: World) => {
        await logs(account, 1);
        await account.get("/v1/witness/checkpoint");
        await logs(account, 1);
      },
      request: ["GET", `${path}?sequence_id=2`],
      status: 409,
      code: "conflict",
      after: (_, { headers }) => {
        expect(headers.get("retry-after")).toBe("1");
      },
    },
    beforeInit(`${path}?sequence_id=1`),
    nobody(`${path}?sequence_id=1`),
  ]);

  test("every receipt is proved in every size, by the receipt itself", async () => {
    const account = await server.account();
    const receipts = await logs(account, 9);
    const roots = new Map<number, Uint8Array>();
    for (let size = 1; size <= 9; size += 1) {
      for (let sequence = 1; sequence <= size; sequence += 1) {
        const { body } = await account.get(`${path}?sequence_id=${sequence}&size=${size}`);
        const receipt = receipts[sequence - 1];
        if (receipt === undefined) throw new Error("no receipt");
        const leafHash = leafHashOf(crypto, leafOf(receipt));
        expect(fromHex(String(body["leaf_hash"]))).toEqual(leafHash);
        const hashes = hashesOf(body);
        if (size === 9) roots.set(9, headOf(body["checkpoint"]).root);
        const root = roots.get(size);
        if (root === undefined) continue;
        expect(isIncluded(crypto, { index: sequence - 1, size, leafHash, hashes, root })).toBe(true);
      }
    }
  });
});

describe("GET /v1/witness/proofs/consistency", () => {
  const path = "/v1/witness/proofs/consistency";
  const bad = rejectedOn(path);
  endpoint(() => server, `GET ${path}`, [
    {
      name: "from nothing",
      before: three,
      request: ["GET", `${path}?from=0`],
      status: 200,
      holds: { from: 0, to: 3, hashes: [] },
    },
    bad("from above to", "from=3&to=2"),
    bad("from above the chain", "from=4"),
    bad("to above the chain", "from=1&to=4"),
    bad("no from", "to=3"),
    {
      name: "a receipt that is too new",
      before: async ({ account }: World) => {
        await logs(account, 1);
        await account.get("/v1/witness/checkpoint");
        await logs(account, 1);
      },
      request: ["GET", `${path}?from=1&to=2`],
      status: 409,
      code: "conflict",
    },
    beforeInit(`${path}?from=0`),
    nobody(`${path}?from=0`),
  ]);

  test("proves that the checkpoint of a year later continues the first one", async () => {
    const account = await server.account();
    await logs(account, 5);
    const older = headOf((await account.get("/v1/witness/checkpoint")).text);
    await server.clock.advance(CHECKPOINT_INTERVAL_MS);
    await logs(account, 8);
    const { body } = await account.get(`${path}?from=5`);
    const newer = headOf(body["checkpoint"]);
    expect(newer.size).toBe(13);
    expect(isConsistent(crypto, older, newer, hashesOf(body))).toBe(true);
    expect(isConsistent(crypto, { ...older, size: 6 }, newer, hashesOf(body))).toBe(false);
  });
});

describe("GET /v1/witness/receipts/{sequence_id}/bundle", () => {
  const at = (position: string) => `/v1/witness/receipts/${position}/bundle`;
  endpoint(() => server, "GET /v1/witness/receipts/{sequence_id}/bundle", [
    {
      name: "receipt, proof and checkpoint",
      before: three,
      request: ["GET", at("2")],
      status: 200,
      holds: { type: "ninefold-bundle/v1", inclusion: { leaf_index: 1, tree_size: 3 } },
      after: async ({ account }, { body }) => {
        expect(body["receipt"]).toEqual((await account.get("/v1/witness/receipts/2")).body);
      },
    },
    {
      name: "in the format of C2SP",
      before: three,
      request: ["GET", `${at("2")}?format=tlog-proof`],
      status: 200,
      after: async ({ account }, { text }) => {
        const receipt = (await account.get("/v1/witness/receipts/2")).body as unknown as Receipt;
        const [version, extra = "", index, ...rest] = text.split("\n");
        expect([version, index]).toEqual(["c2sp.org/tlog-proof@v1", "index 1"]);
        expect(Buffer.from(extra.slice("extra ".length), "base64").toString()).toBe(
          Buffer.from(leafOf(receipt)).toString(),
        );
        expect(rest.slice(2, 3)).toEqual([""]);
        expect(rest.slice(3).join("\n")).toBe((await account.get("/v1/witness/checkpoint")).text);
      },
    },
    {
      name: "an unknown format",
      request: ["GET", `${at("1")}?format=x`],
      status: 400,
      code: "validation_error",
    },
    { name: "past the end", before: three, request: ["GET", at("4")], status: 404, code: "not_found" },
    { name: "before init", request: ["GET", at("1")], status: 404, code: "not_found" },
    { name: "a malformed position", request: ["GET", at("0")], status: 400, code: "validation_error" },
    {
      name: "a receipt that is too new",
      before: async ({ account }: World) => {
        await logs(account, 1);
        await account.get("/v1/witness/checkpoint");
        await logs(account, 1);
      },
      request: ["GET", at("2")],
      status: 409,
      code: "conflict",
    },
    nobody(at("1")),
  ]);
});

describe("a chain of an earlier version", () => {
  test("gets its tree from a background job, also for receipts that are added meanwhile", async () => {
    const account = await server.account();
    const receipts = await logs(account, 600);
    const [{ root_hash }] = [(await account.get("/v1/witness/checkpoint?format=json")).body];
    const { db, writer } = server.server.kernel;
    const statements = [
      "DELETE FROM receipt_leaves WHERE chain_ref = (SELECT max(ref) FROM chains) AND sequence <= 550",
      "DELETE FROM notary_tile_roots WHERE chain_ref = (SELECT max(ref) FROM chains)",
      "DELETE FROM notary_checkpoints WHERE chain_ref = (SELECT max(ref) FROM chains)",
      "UPDATE chains SET tree_backlog = 550 WHERE ref = (SELECT max(ref) FROM chains)",
    ].map((sql) => db.change(sql));
    await writer.submit((tx) => {
      for (const run of statements) run(tx);
    });
    expect(receipts).toHaveLength(600);
    await server.restart();
    const again = server.client(account.key);
    await again.post("/v1/witness/log", { log: { n: 601 } });
    await server.clock.advance(60_000);
    const { body } = await again.get("/v1/witness/proofs/consistency?from=600");
    expect(body["to"]).toBe(601);
    const older = { size: 600, root: fromHex(String(root_hash)) };
    expect(isConsistent(crypto, older, headOf(body["checkpoint"]), hashesOf(body))).toBe(true);
  });
});
