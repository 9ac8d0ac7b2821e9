import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { parseTilePath, tilePath, widthAt } from "../../../../src/areas/notary/checkpoints/tile-path.ts";
import { openNote } from "../../../support/notes.ts";
import { endpoint } from "../../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
let account: AccountClient;
let chain: string;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ balance: 10_000 });
  chain = String((await account.post("/v1/witness/sys/init")).body["chain_id"]);
  for (let n = 0; n < 300; n += 1) await account.post("/v1/witness/log", { log: { n } });
});
afterAll(() => server.stop());

const BYTES = "application/octet-stream";

async function read(path: string, method = "GET") {
  const response = await fetch(`${server.url}/v1/witness/tlog/${chain}/${path}`, { method });
  return {
    status: response.status,
    headers: response.headers,
    bytes: Buffer.from(await response.arrayBuffer()),
  };
}

function sha256(...parts: Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** The root over leaf hashes, by the definition of RFC 6962. */
function rootOf(leaves: readonly Buffer[]): Buffer {
  const [only] = leaves;
  if (only === undefined) return sha256();
  if (leaves.length === 1) return only;
  let left = 1;
  while (left * 2 < leaves.length) left *= 2;
  return sha256(Buffer.of(1), rootOf(leaves.slice(0, left)), rootOf(leaves.slice(left)));
}

function hashesIn(tile: Buffer): Buffer[] {
  return Array.from({ length: tile.length / 32 }, (_, at) => tile.subarray(at * 32, at * 32 + 32));
}

function entriesIn(bundle: Buffer): Buffer[] {
  const entries: Buffer[] = [];
  for (let at = 0; at < bundle.length; ) {
    const end = at + 2 + bundle.readUInt16BE(at);
    entries.push(bundle.subarray(at + 2, end));
    at = end;
  }
  return entries;
}

describe("PUT /v1/witness/tlog", () => {
  const path = "/v1/witness/tlog";
  endpoint(() => server, `PUT ${path}`, [
    {
      name: "publishes the chain",
      before: ({ account: own }) => own.post("/v1/witness/sys/init"),
      request: ["PUT", path, { public: true }],
      status: 200,
      holds: { public: true },
    },
    { name: "before init", request: ["PUT", path, { public: true }], status: 409, code: "conflict" },
    { name: "no value", request: ["PUT", path, {}], status: 400, code: "validation_error" },
    {
      name: "no key",
      as: "nobody",
      request: ["PUT", path, { public: true }],
      status: 401,
      code: "unauthorized",
    },
  ]);
});

describe("a log", () => {
  test("is hidden until it is published, and again when that is stopped", async () => {
    const paths = ["checkpoint", "tile/0/000", "tile/entries/000"];
    await account.get("/v1/witness/checkpoint");
    for (const [isPublic, status] of [
      [null, 404],
      [true, 200],
      [false, 404],
      [true, 200],
    ] as const) {
      if (isPublic !== null) await account.put("/v1/witness/tlog", { public: isPublic });
      for (const path of paths) expect((await read(path)).status).toBe(status);
    }
  });

  test("is read and verified by a client that knows only C2SP's formats", async () => {
    const { vkey } = (await account.get("/v1/witness/checkpoint?format=json")).body;
    const checkpoint = await read("checkpoint");
    expect(checkpoint.headers.get("cache-control")).toBe("public, max-age=1");
    expect(openNote(checkpoint.bytes.toString(), String(vkey))).toBe(0);
    const [, size, root = ""] = checkpoint.bytes.toString().split("\n");
    expect(size).toBe("300");
    const full = await read("tile/0/000");
    expect(full.headers.get("content-type")).toBe(BYTES);
    expect(full.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(full.bytes).toHaveLength(8_192);
    const rest = await read("tile/0/001.p/44");
    const leaves = [...hashesIn(full.bytes), ...hashesIn(rest.bytes)];
    expect(rootOf(leaves).toString("base64")).toBe(root);
    const above = await read("tile/1/000.p/1");
    expect(above.bytes.toString("hex")).toBe(rootOf(hashesIn(full.bytes)).toString("hex"));
    const entries = [
      ...entriesIn((await read("tile/entries/000")).bytes),
      ...entriesIn((await read("tile/entries/001.p/44")).bytes),
    ];
    expect(entries.map((entry) => sha256(Buffer.of(0), entry))).toEqual(
      leaves.map((leaf) => Buffer.from(leaf)),
    );
    expect(entries[299]?.toString()).toStartWith("ninefold-receipt/v1\n300\n");
  });

  test.each([
    "tile/0/001",
    "tile/0/001.p/45",
    "tile/0/002.p/1",
    "tile/1/000",
    "tile/1/000.p/2",
    "tile/2/000.p/1",
    "tile/63/000.p/1",
    "tile/entries/001",
    "tile/entries/002.p/1",
    "tile/0",
    "tile/0/0",
    "tile/0/x000/000",
    "tile/00/000",
    "tile/64/000",
    "tile/-1/000",
    "tile/0/000.p/0",
    "tile/0/000.p/01",
    "tile/0/000.p/256",
    "tile/0/000/",
    "tile/0/000/tile/",
    "tile/0/000/tile/1",
    "tile/0/%30%30%30",
    "tile/data/000",
  ])("404 %s", async (path) => {
    expect((await read(path)).status).toBe(404);
  });

  test("HEAD has the same response as GET, other methods are rejected", async () => {
    expect((await read("tile/0/000", "HEAD")).status).toBe(200);
    expect((await read("tile/0/000", "POST")).status).toBe(401);
  });

  test("no tile is served beyond the newest checkpoint", async () => {
    await account.post("/v1/witness/log", { log: { n: 300 } });
    expect((await read("tile/0/001.p/45")).status).toBe(404);
    await server.clock.advance(1_000);
    expect((await read("tile/0/001.p/45")).status).toBe(200);
    expect((await read("tile/0/001.p/44")).status).toBe(200);
  });

  test("is unknown under another id", async () => {
    const anyone = server.client(null);
    expect((await anyone.get("/v1/witness/tlog/wc_x/checkpoint")).status).toBe(404);
  });

  test("has no checkpoint before the first one is signed", async () => {
    const other = await server.account();
    const { chain_id } = (await other.post("/v1/witness/sys/init")).body;
    await other.put("/v1/witness/tlog", { public: true });
    expect((await server.client(null).get(`/v1/witness/tlog/${chain_id}/checkpoint`)).status).toBe(404);
  });
});

describe("paths of tiles", () => {
  // Go's golang.org/x/mod/sumdb/tlog, TestTilePath, without the height; and the example of c2sp.org/tlog-tiles.
  test.each([
    ["0/x123/067.p/1", { level: 0, index: 123_067, width: 1 }],
    ["0/x001/x234/067", { level: 0, index: 1_234_067, width: 256 }],
    ["3/x123/x456/078.p/2", { level: 3, index: 123_456_078, width: 2 }],
    ["0/000", { level: 0, index: 0, width: 256 }],
    ["entries/x001/067", { level: null, index: 1_067, width: 256 }],
  ])("%s", (path, tile) => {
    expect(parseTilePath(path)).toEqual(tile);
    expect(tilePath(tile)).toBe(path);
  });

  test("the widths of a tree of 70,000 are those of the specification", () => {
    const widths = [
      [0, 272],
      [0, 273],
      [0, 274],
      [1, 0],
      [1, 1],
      [2, 0],
      [3, 0],
    ].map(([level = 0, index = 0]) => widthAt({ level, index, width: 256 }, 70_000));
    expect(widths).toEqual([256, 112, 0, 256, 17, 1, 0]);
  });
});
