import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { UNREACHABLE_MS } from "../../../../src/areas/notary/restores.ts";
import { WITNESSES_MAX } from "../../../../src/areas/notary/schema.ts";
import { SUBMISSION_INTERVAL_MS } from "../../../../src/areas/notary/submissions.ts";
import { parseSubmission, SIZE_TYPE } from "../../../../src/areas/notary/witnesses/add-checkpoint.ts";
import { checkBundle, checkCheckpoint } from "../../../../src/verify/checkpoint.ts";
import { createNativeCrypto } from "../../../../src/verify/native.ts";
import { COSIGNATURE_TIME_MAX } from "../../../../src/verify/note.ts";
import { cosignedBy, witnessOf } from "../../../support/checkpoints.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { openNote, readNote } from "../../../support/notes.ts";
import { endpoint, type World } from "../../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { type SinkAnswer, WebhookSink } from "../../../support/webhook-sink.ts";

const crypto = createNativeCrypto();
const WITNESSES = "/v1/witness/witnesses";
const SECOND_MS = 1_000;

let server: TestServer;
let sink: WebhookSink;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(() => server.stop());
beforeEach(() => {
  sink = new WebhookSink();
});
afterEach(() => sink.stop());

const NOTE = JSON.stringify({ file: "copy.db", backup_created_at: "2026-03-10T11:00:00Z", restored_at: "x" });
const NEWEST = "(SELECT max(ref) FROM chains)";

const log = (client: Client, n: number) => client.post("/v1/witness/log", { log: { n } });
const checkpointOf = async (client: Client) => (await client.get("/v1/witness/checkpoint?format=json")).body;
const stateOf = async (client: Client, at = 0) =>
  ((await client.get(WITNESSES)).body["witnesses"] as Record<string, unknown>[])[at] ?? {};

async function chainOf(account: AccountClient, logs: number): Promise<string> {
  const { chain_id } = (await account.post("/v1/witness/sys/init")).body;
  for (let n = 1; n <= logs; n += 1) await log(account, n);
  return String(chain_id);
}

const KEY = witnessOf(8);
const SINK = (byte = 8) => ({ url: sink.url("/w"), vkey: witnessOf(byte).vkey });

/** Responds with the cosignatures of witnesses with these seeds. */
function cosigns(...bytes: number[]) {
  sink.answersBy(({ body }) => {
    const note = body.slice(body.indexOf("\n\n") + 2);
    return new Response(cosignedBy(note, bytes.map(witnessOf)).slice(note.length));
  });
}

function conflict(size: string): Response {
  return new Response(size, { status: 409, headers: { "content-type": SIZE_TYPE } });
}

function submissions() {
  return sink.received.map(({ body }) => {
    const parsed = parseSubmission(body);
    return parsed && [parsed.oldSize, parsed.checkpoint.size, parsed.hashes.length];
  });
}

/** Resets the newest chain to two receipts. `epoch`: as after a restore, or 0 for a copied folder. */
async function goBack(epoch: 0 | 1): Promise<void> {
  const { db, writer } = server.server.kernel;
  const statements = [
    ...["receipts", "receipt_leaves"].map(
      (table) => `DELETE FROM ${table} WHERE chain_ref = ${NEWEST} AND sequence > 2`,
    ),
    ...["notary_checkpoints", "notary_cosignatures"].map(
      (table) => `DELETE FROM ${table} WHERE chain_ref = ${NEWEST} AND size > 2`,
    ),
    `UPDATE notary_witnesses SET size = 0, cosigned_at = NULL WHERE chain_ref = ${NEWEST}`,
    "DELETE FROM jobs WHERE kind LIKE 'notary.%'",
    ...(epoch === 0
      ? []
      : [`UPDATE chains SET epoch = epoch + 1, fork = NULL, restored = '${NOTE}' WHERE ref = ${NEWEST}`]),
  ].map((sql) => db.change(sql));
  await writer.submit((tx) => {
    for (const run of statements) run(tx);
  });
  await server.restart();
  await server.clock.advance(0);
}

describe("the second server", () => {
  let witness: TestServer;
  let account: AccountClient;
  let peer: { url: string; vkey: string };

  /** A chain, and a server that is its witness. */
  beforeEach(async () => {
    account = await server.account();
    await chainOf(account, 0);
    witness = await startTestServer({
      environment: {
        NINEFOLD_NOTARY_WITNESS_NAME: "witness.example/second",
        NINEFOLD_NOTARY_WITNESSED: String((await checkpointOf(account))["vkey"]),
      },
    });
    const { vkey } = (await witness.client(null).get("/v1/witness/peer")).body;
    peer = { url: `${witness.url}/v1/witness/peer`, vkey: String(vkey) };
  });
  afterEach(() => witness.stop());

  /** Logs until the chain has a number of receipts, and has them cosigned. */
  async function growTo(client: Client, from: number, to: number): Promise<void> {
    for (let n = from; n <= to; n += 1) await log(client, n);
    await server.clock.advance(SECOND_MS);
    await server.clock.advance(SUBMISSION_INTERVAL_MS);
  }

  test("cosigns checkpoints, which verify with the witness in note, bundle and proof", async () => {
    await account.put(WITNESSES, { witnesses: [peer] });
    await growTo(account, 1, 3);
    expect(await stateOf(account)).toEqual({
      ...peer,
      name: "witness.example/second",
      cosigned_size: 3,
      cosigned_at: expect.any(String),
      last_error: null,
    });
    const { note, vkey, cosignatures } = await checkpointOf(account);
    expect(cosignatures).toEqual([{ name: "witness.example/second", signed_at: expect.any(String) }]);
    expect(readNote(String(note)).signatures).toHaveLength(2);
    expect(openNote(String(note), String(vkey))).toBe(0);
    expect(openNote(String(note), peer.vkey)).toBeGreaterThan(0);
    expect((await account.get("/v1/witness/checkpoint")).text).toBe(String(note));
    const keys = { vkey: String(vkey), witnesses: [peer.vkey] };
    expect(checkCheckpoint(String(note), keys, crypto)).toMatchObject({
      valid: true,
      witnesses: ["witness.example/second"],
    });
    const bundle = await account.get("/v1/witness/receipts/2/bundle");
    expect(checkBundle(bundle.text, { witnesses: [peer.vkey] }, crypto)).toMatchObject({ valid: true });
    expect((await account.get("/v1/witness/receipts/2/bundle?format=tlog-proof")).text).toEndWith(
      String(note),
    );
    await growTo(account, 4, 7);
    expect(await stateOf(account)).toMatchObject({ cosigned_size: 7, last_error: null });
    await account.put("/v1/witness/tlog", { public: true });
    const { origin } = await checkpointOf(account);
    const published = await server.client(null).get(`/v1/witness/tlog/${String(origin).slice(9)}/checkpoint`);
    expect(openNote(published.text, peer.vkey)).toBeGreaterThan(0);
  });

  test("proves a fork after a restore: nothing is logged until it is accepted, then it continues in another epoch", async () => {
    await account.put(WITNESSES, { witnesses: [{ ...peer, name: "W" }] });
    await growTo(account, 1, 2);
    await growTo(account, 3, 5);
    await goBack(1);
    const client = server.client(account.key);
    const rejected = await log(client, 6);
    expectError(rejected, "notary.fork_detected");
    expect(rejected.text).toContain("has 2 receipts, but the witness W has 5");
    const { chain_id } = (await client.post("/v1/witness/sys/init")).body;
    expect((await client.post("/v1/witness/accept-fork", { chain_id })).body["sequence_id"]).toBe("3");
    await growTo(client, 6, 6);
    expect(await stateOf(client)).toMatchObject({ cosigned_size: 4, last_error: null });
    const { origin, cosignatures } = await checkpointOf(client);
    expect(origin).toBe(`ninefold/${chain_id}/e1`);
    expect(cosignatures).toHaveLength(1);
  });

  test("proves a fork of a folder that was copied back, once a checkpoint reaches it", async () => {
    await account.put(WITNESSES, { witnesses: [peer] });
    await growTo(account, 1, 2);
    await growTo(account, 3, 5);
    await goBack(0);
    const client = server.client(account.key);
    expect((await log(client, 6)).status).toBe(200);
    await server.clock.advance(SECOND_MS);
    const rejected = await log(client, 7);
    expectError(rejected, "notary.fork_detected");
    expect(rejected.text).toContain("has 3 receipts, but the witness witness.example/second has 5");
    expectError(await client.get("/v1/witness/proofs/inclusion?sequence_id=4"), "not_found");
    const { chain_id } = (await client.post("/v1/witness/sys/init")).body;
    expect((await client.post("/v1/witness/accept-fork", { chain_id })).status).toBe(200);
    await server.clock.advance(SUBMISSION_INTERVAL_MS);
    expect(await stateOf(client)).toMatchObject({ cosigned_size: 4, last_error: null });
  });

  test("knows of no fork after a restore of the newest state", async () => {
    await account.put(WITNESSES, { witnesses: [peer] });
    await growTo(account, 1, 2);
    await goBack(1);
    const client = server.client(account.key);
    expect((await client.get("/v1/witness/receipts/3")).body["log"]).toMatchObject({
      ninefold: "restored",
      size: 2,
    });
    expect((await log(client, 4)).status).toBe(200);
  });
});

describe("a restored chain", () => {
  test("waits a day for a witness that does not respond", async () => {
    const account = await server.account();
    await chainOf(account, 2);
    cosigns(8);
    await account.put(WITNESSES, { witnesses: [SINK()] });
    await server.clock.advance(SECOND_MS);
    sink.answers(503);
    await goBack(1);
    const client = server.client(account.key);
    expectError(await log(client, 3), "service_unavailable");
    await server.clock.advance(UNREACHABLE_MS + 10 * 60_000);
    expect((await log(client, 4)).body["sequence_id"]).toBe("4");
  });

  test("sends an empty tree if the backup has no checkpoint; a witness that does not know the origin has seen nothing", async () => {
    const account = await server.account();
    await chainOf(account, 2);
    sink.answers(404);
    await account.put(WITNESSES, { witnesses: [SINK()] });
    await goBack(1);
    expect(submissions()[0]).toEqual([0, 0, 0]);
    const client = server.client(account.key);
    expect((await client.get("/v1/witness/receipts/3")).body["log"]).toMatchObject({ ninefold: "restored" });
  });
});

describe("a larger size that a witness names", () => {
  const CLAIMED = `${Number.MAX_SAFE_INTEGER}\n`;
  /** A chain of three receipts, and the checkpoint over them. */
  let account: AccountClient;
  let own: string;
  beforeEach(async () => {
    account = await server.account();
    await chainOf(account, 3);
    own = (await account.get("/v1/witness/checkpoint")).text;
  });

  /** Names a larger size, and returns what `proof` does for its checkpoint. */
  function claims(proof: () => Response): void {
    sink.answersBy(({ method }) => (method === "GET" ? proof() : conflict(CLAIMED)));
  }

  const larger = (note: string) => note.replace("\n3\n", "\n4\n");
  /** A valid checkpoint over four receipts, of another chain. */
  const foreign = async () => {
    const other = await server.account();
    await chainOf(other, 4);
    return (await other.get("/v1/witness/checkpoint")).text;
  };

  test.each([
    ["no checkpoint", () => ({ status: 404, text: "none" })],
    ["something else", () => ({ status: 200, text: "hello\n" })],
    ["a redirect", () => ({ status: 302, text: "" })],
    ["a checkpoint with an invalid signature", () => ({ status: 200, text: larger(own) })],
    [
      "a checkpoint without a signature of the chain",
      () => ({ status: 200, text: `${larger(own).split("\n\n")[0]}\n\n` }),
    ],
    ["a checkpoint of the same size", () => ({ status: 200, text: own })],
    ["a checkpoint of another chain", async () => ({ status: 200, text: await foreign() })],
  ] as const)("does not stop the chain with %s as its proof", async (_, proof) => {
    const { status, text } = await proof();
    claims(() => new Response(text, { status }));
    await account.put(WITNESSES, { witnesses: [SINK()] });
    for (let n = 4; n < 7; n += 1) {
      await server.clock.advance(SUBMISSION_INTERVAL_MS);
      expect((await log(account, n)).status).toBe(200);
    }
    const paths = new Set(sink.received.filter(({ method }) => method === "GET").map(({ path }) => path));
    const origin = new Bun.CryptoHasher("sha256").update(own.split("\n")[0] ?? "").digest("hex");
    expect([...paths]).toEqual([`/w/${origin}/checkpoint`]);
    expect((await stateOf(account))["last_error"]).toContain("without a proof");
    const { chain_id } = (await account.post("/v1/witness/sys/init")).body;
    const logged = server.logs.filter(({ fields }) => fields["chain"] === chain_id);
    expect(logged.map(({ message }) => message)).toEqual(["a witness has not cosigned a checkpoint"]);
  });

  test("is checked again while its proof cannot be read", async () => {
    claims(() => new Response("", { status: 503 }));
    await account.put(WITNESSES, { witnesses: [SINK()] });
    await server.clock.advance(SECOND_MS);
    const before = sink.received.length;
    await server.clock.advance(10 * SUBMISSION_INTERVAL_MS);
    expect(sink.received.length).toBeGreaterThan(before);
    expect((await log(account, 4)).status).toBe(200);
  });

  test("does not stop a restored chain without proof, and is shown", async () => {
    cosigns(8);
    await account.put(WITNESSES, { witnesses: [SINK()] });
    await server.clock.advance(SECOND_MS);
    claims(() => new Response("none", { status: 404 }));
    await goBack(1);
    const client = server.client(account.key);
    expect((await client.get("/v1/witness/receipts/3")).body["log"]).toMatchObject({ ninefold: "restored" });
    expect((await stateOf(client))["last_error"]).toContain("without a proof");
    expect((await log(client, 4)).status).toBe(200);
  });
});

describe("a submission", () => {
  async function submitted(...answers: SinkAnswer[]): Promise<{ account: AccountClient; error: unknown }> {
    const account = await server.account();
    await chainOf(account, 3);
    if (answers.length > 0) sink.answers(...answers);
    await account.put(WITNESSES, { witnesses: [SINK()] });
    await server.clock.advance(SECOND_MS);
    return { account, error: (await stateOf(account))["last_error"] };
  }

  test("is sent at most once a minute, with the proof since the last one", async () => {
    cosigns(8);
    const { account } = await submitted();
    expect(submissions()).toEqual([[0, 3, 0]]);
    expect(sink.received[0]?.path).toBe("/w/add-checkpoint");
    for (let n = 4; n < 10; n += 1) {
      await log(account, n);
      await server.clock.advance(SECOND_MS);
    }
    expect(submissions()).toHaveLength(1);
    await server.clock.advance(SUBMISSION_INTERVAL_MS);
    expect(submissions()).toEqual([
      [0, 3, 0],
      [3, 9, 5],
    ]);
    await server.clock.advance(10 * SUBMISSION_INTERVAL_MS);
    expect(submissions()).toHaveLength(2);
  });

  test("is repeated from the size that the witness names", async () => {
    const known = conflict("2\n");
    let first = true;
    sink.answersBy(({ body }) => {
      if (first) {
        first = false;
        return known;
      }
      const note = body.slice(body.indexOf("\n\n") + 2);
      return new Response(cosignedBy(note, [KEY]).slice(note.length));
    });
    const { error } = await submitted();
    expect(error).toBeNull();
    expect(submissions()).toEqual([
      [0, 3, 0],
      [2, 3, 1],
    ]);
  });

  test.each([
    [400, "the witness returned 400"],
    [403, "another key"],
    [404, "does not know this origin"],
    [422, "another history of this origin"],
  ])("with %d is not repeated before the next checkpoint", async (status, problem) => {
    const { account, error } = await submitted(status);
    expect(error).toContain(problem);
    await server.clock.advance(60 * SUBMISSION_INTERVAL_MS);
    expect(sink.received).toHaveLength(1);
    cosigns(8);
    await log(account, 4);
    await server.clock.advance(SECOND_MS);
    expect(await stateOf(account)).toMatchObject({ cosigned_size: 4, last_error: null });
  });

  test.each([429, 500, 503, 302])("with %d is repeated, less and less often", async (status) => {
    const { account, error } = await submitted(status);
    expect(error).toBe(`the witness returned ${status}`);
    await server.clock.advance(60 * SUBMISSION_INTERVAL_MS);
    expect(sink.received.length).toBeGreaterThan(4);
    expect(sink.received.length).toBeLessThan(8);
    cosigns(8);
    await server.clock.advance(90 * SUBMISSION_INTERVAL_MS);
    expect(await stateOf(account)).toMatchObject({ cosigned_size: 3, last_error: null });
  });

  test.each([
    ["nothing", ""],
    ["another text", "hello\n"],
    ["another size", () => conflict("x\n")],
    ["the same size again", () => conflict("0\n")],
  ])("with %s is an error", async (_, answer) => {
    const { account, error } = await submitted(typeof answer === "string" ? new Response(answer) : answer());
    expect(error).toEqual(expect.any(String));
    expect((await checkpointOf(account))["cosignatures"]).toEqual([]);
  });

  test("stores cosignatures of the known key only", async () => {
    cosigns(9, 8);
    const { account, error } = await submitted();
    expect(error).toBeNull();
    const { note, cosignatures } = await checkpointOf(account);
    expect(cosignatures).toHaveLength(1);
    expect(() => openNote(String(note), witnessOf(9).vkey)).toThrow();
    cosigns(9);
    await log(account, 4);
    await server.clock.advance(SUBMISSION_INTERVAL_MS);
    expect((await stateOf(account))["last_error"]).toContain("no valid cosignature");
  });

  test.each([
    ["one second too late for a date of four digits", COSIGNATURE_TIME_MAX + 1],
    ["too late for a date", 9e12],
    ["too large for the database", 2 ** 63],
  ])("rejects a time that is %s, and keeps what others said", async (_, time) => {
    sink.answersBy(({ path, body }) => {
      const note = body.slice(body.indexOf("\n\n") + 2);
      const [byte, signedAt] = path.startsWith("/w/") ? [8, COSIGNATURE_TIME_MAX] : [9, time];
      return new Response(cosignedBy(note, [witnessOf(byte)], signedAt).slice(note.length));
    });
    const account = await server.account();
    await chainOf(account, 3);
    await account.put(WITNESSES, { witnesses: [SINK(), { ...SINK(9), url: sink.url("/late") }] });
    await server.clock.advance(SECOND_MS);
    expect(await stateOf(account)).toMatchObject({ cosigned_size: 3, last_error: null });
    expect((await stateOf(account, 1))["last_error"]).toContain("no valid cosignature");
    expect((await checkpointOf(account))["cosignatures"]).toEqual([
      { name: "witness.example/8", signed_at: "9999-12-31T23:59:59.000Z" },
    ]);
  });

  test("rejects the cosignature of a text that the response makes longer", async () => {
    sink.answersBy(({ body }) => {
      const longer = `${body.slice(body.indexOf("\n\n") + 2)}x\n\n`;
      return new Response(`x\n\n${cosignedBy(longer, [KEY]).slice(longer.length)}`);
    });
    const { account, error } = await submitted();
    expect(error).toContain("no valid cosignature");
    expect((await checkpointOf(account))["cosignatures"]).toEqual([]);
  });

  test("to a witness that is removed before it responds changes nothing", async () => {
    const account = await server.account();
    await chainOf(account, 3);
    sink.answersBy(async () => {
      await account.put(WITNESSES, { witnesses: [] });
      return conflict(`${Number.MAX_SAFE_INTEGER}\n`);
    });
    await account.put(WITNESSES, { witnesses: [SINK()] });
    await server.clock.advance(SECOND_MS);
    expect(sink.received.map(({ method }) => method)).toEqual(["POST", "GET"]);
    expect((await log(account, 4)).status).toBe(200);
  });

  test("survives a restart and a witness that is down", async () => {
    const account = await server.account();
    await chainOf(account, 2);
    await account.put(WITNESSES, { witnesses: [{ url: "http://127.0.0.1:9/w", vkey: KEY.vkey }] });
    await server.clock.advance(SECOND_MS);
    const client = server.client(account.key);
    expect((await stateOf(client))["last_error"]).toContain("no response from the witness");
    await server.restart();
    cosigns(8);
    await server.client(account.key).put(WITNESSES, { witnesses: [SINK()] });
    await server.clock.advance(SUBMISSION_INTERVAL_MS);
    expect(await stateOf(server.client(account.key))).toMatchObject({ cosigned_size: 2, last_error: null });
  });
});

describe(`PUT ${WITNESSES}`, () => {
  const init = ({ account }: World) => account.post("/v1/witness/sys/init");
  const url = "http://127.0.0.1:9/w";
  const put = (...witnesses: object[]) => ["PUT", WITNESSES, { witnesses }] as const;
  const bad = (name: string, ...witnesses: object[]) => ({
    name,
    before: init,
    request: put(...witnesses),
    status: 400,
    code: "validation_error",
  });
  const many = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ url, vkey: witnessOf(n + 1).vkey }));
  endpoint(() => server, `PUT ${WITNESSES}`, [
    {
      name: "the most that are allowed, in their order",
      before: init,
      request: put(...many(WITNESSES_MAX)),
      status: 200,
      after: async ({ account }, { body }) => {
        expect(body["witnesses"] as object[]).toHaveLength(WITNESSES_MAX);
        expect((await account.get(WITNESSES)).body).toEqual(body as never);
        const { entries } = (await account.get("/v1/audit?limit=1")).body as {
          entries: { action: string }[];
        };
        expect(entries[0]?.action).toBe("witness.witnesses.set");
      },
    },
    {
      name: "none",
      before: async ({ account }: World) => {
        await account.post("/v1/witness/sys/init");
        await account.put(WITNESSES, { witnesses: many(2) });
      },
      request: put(),
      status: 200,
      body: { witnesses: [] },
    },
    bad("one more", ...many(WITNESSES_MAX + 1)),
    bad("the same key twice", ...many(1), ...many(1)),
    bad("no key", { url }),
    bad("a malformed key", { url, vkey: "x+y+z" }),
    bad("the key of a log", {
      url,
      vkey: "ninefold/wc_guAzGTNSfV3ibRopzIp5tgMNJfCyUnjN+7888d71d+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs",
    }),
    bad("an address that is not allowed", { url: "http://10.0.0.1/w", vkey: KEY.vkey }),
    bad("plain HTTP to a public address", { url: "http://192.0.2.1/w", vkey: KEY.vkey }),
    bad("a query", { url: `${url}?x`, vkey: KEY.vkey }),
    bad("an empty name", { url, vkey: KEY.vkey, name: "" }),
    { name: "before init", request: put(), status: 409, code: "conflict" },
    { name: "no key for the API", as: "nobody", request: put(), status: 401, code: "unauthorized" },
  ]);

  test("keeps what a witness has cosigned while its key and URL stay", async () => {
    const account = await server.account();
    await chainOf(account, 2);
    cosigns(8);
    await account.put(WITNESSES, { witnesses: [SINK()] });
    await server.clock.advance(SECOND_MS);
    await account.put(WITNESSES, { witnesses: [{ ...SINK(), name: "New name" }] });
    expect(await stateOf(account)).toMatchObject({ name: "New name", cosigned_size: 2 });
    await account.put(WITNESSES, { witnesses: [] });
    expect((await checkpointOf(account))["cosignatures"]).toHaveLength(1);
  });
});

describe(`GET ${WITNESSES}`, () => {
  endpoint(() => server, `GET ${WITNESSES}`, [
    {
      name: "none",
      before: ({ account }) => account.post("/v1/witness/sys/init"),
      request: ["GET", WITNESSES],
      status: 200,
      body: { witnesses: [] },
    },
    { name: "before init", request: ["GET", WITNESSES], status: 409, code: "conflict" },
    { name: "no key", as: "nobody", request: ["GET", WITNESSES], status: 401, code: "unauthorized" },
  ]);
});
