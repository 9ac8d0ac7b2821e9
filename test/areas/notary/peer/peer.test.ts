import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { OPEN_REQUESTS_PER_MINUTE } from "../../../../src/areas/notary/open-requests.ts";
import { parseSubmission, submissionText } from "../../../../src/areas/notary/witnesses/add-checkpoint.ts";
import { toBase64 } from "../../../../src/verify/bytes.ts";
import { createNativeCrypto } from "../../../../src/verify/native.ts";
import { noteKey, vkeyOf } from "../../../../src/verify/note.ts";
import type { Receipt } from "../../../../src/verify/receipt.ts";
import { checkpointOf, publicKeyOf, treeOf } from "../../../support/checkpoints.ts";
import { openNote } from "../../../support/notes.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import vectors from "../../../vectors/notary.json" with { type: "json" };

const SIGNED_AT_MS = 1_760_000_100_000;
const PEER = "/v1/witness/peer";
const NAME = "ninefold/witness-1";
const VKEY = `${NAME}+84c42f62+BBOY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK`;
const [chain] = vectors.chains;
const RECEIPTS = (chain?.receipts ?? []) as unknown as Receipt[];
const ORIGIN = `ninefold/${chain?.chain_id}`;

/** Origins of the logs that the witness of this file knows, one for each test. */
const LOGS = ["vectors", "conflict", "proof", "race", "epochs", "keys", "kept"].map(
  (name) => `example.com/${name}`,
);

function vkeyAt(origin: string): string {
  return vkeyOf(noteKey(createNativeCrypto(), origin, publicKeyOf(7)));
}

function hashesBetween(from: number, to: number): Uint8Array[] {
  return treeOf(RECEIPTS).consistency(from, to);
}

/** A submission of the vectors' chain. */
function submission(origin: string, from: number, to: number, byte = 7): string {
  return submissionText(from, hashesBetween(from, to), checkpointOf(RECEIPTS, to, byte, origin));
}

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    manualClock: { startMs: SIGNED_AT_MS },
    environment: {
      NINEFOLD_NOTARY_WITNESS_NAME: NAME,
      NINEFOLD_NOTARY_WITNESSED: [ORIGIN, ...LOGS].map(vkeyAt).join(","),
    },
  });
  // The key of the vectors.
  const { db, vault, writer } = server.server.kernel;
  const sealed = vault.seal(Buffer.alloc(32, 8).toString("base64url"), "notary-witness-key");
  const setKey = db.change<[Uint8Array]>("UPDATE notary_witness_key SET private_key = ?");
  await writer.submit((tx) => setKey(tx, sealed));
});
afterAll(() => server.stop());

function add(text: string, to = server): Promise<Response> {
  return fetch(`${to.url}${PEER}/add-checkpoint`, { method: "POST", body: text });
}

async function status(text: string): Promise<number> {
  return (await add(text)).status;
}

async function codeOf(response: Response): Promise<unknown> {
  return ((await response.json()) as { code: string }).code;
}

async function cosigned(origin: string): Promise<Response> {
  const hash = createHash("sha256").update(origin).digest("hex");
  return fetch(`${server.url}${PEER}/${hash}/checkpoint`);
}

describe("a witness", () => {
  test("cosigns byte for byte as the vectors say, and publishes key and checkpoint", async () => {
    expect((await server.client(null).get(PEER)).body).toEqual({ name: NAME, vkey: VKEY });
    const note = checkpointOf(RECEIPTS, 3, 7, ORIGIN);
    const response = await add(submission(ORIGIN, 0, 3));
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const line = await response.text();
    expect(line).toBe(
      `— ${NAME} hMQvYgAAAABo53hkiVdfIjL/w2FtZx91Ce7OoWBddRUXQ/ejxU45cjNU9pgomYA+2CQKC6toQ0bKmsutrb8Y+Xi0UddX46iAF2KxDQ==\n`,
    );
    const shown = await cosigned(ORIGIN);
    expect(shown.status).toBe(200);
    const text = await shown.text();
    expect(text).toBe(note + line);
    expect(openNote(text, VKEY)).toBe(SIGNED_AT_MS / 1_000);
  });

  test("409 with the size for another old size, and for another root of the same size", async () => {
    const [, origin = ""] = LOGS;
    expect(await status(submission(origin, 0, 2))).toBe(200);
    for (const text of [submission(origin, 0, 3), submission(origin, 1, 3), submission(origin, 0, 1)]) {
      const response = await add(text);
      expect(response.status).toBe(409);
      expect(response.headers.get("content-type")).toBe("text/x.tlog.size");
      expect(await response.text()).toBe("2\n");
    }
    const forked = checkpointOf([...RECEIPTS].reverse(), 2, 7, origin);
    expect(await status(submissionText(2, [], forked))).toBe(409);
    // The same again: a lost response is repeated.
    expect(await status(submission(origin, 2, 2))).toBe(200);
    expect(await status(submission(origin, 2, 3))).toBe(200);
  });

  test("422 for a proof that does not fit, and nothing is stored", async () => {
    const [, , origin = ""] = LOGS;
    expect(
      await codeOf(await add(submissionText(0, [new Uint8Array(32)], checkpointOf(RECEIPTS, 2, 7, origin)))),
    ).toBe("notary.inconsistent");
    expect((await cosigned(origin)).status).toBe(404);
    expect(await status(submission(origin, 0, 1))).toBe(200);
    const note = checkpointOf(RECEIPTS, 3, 7, origin);
    for (const hashes of [[], [new Uint8Array(32)], [...hashesBetween(1, 3), new Uint8Array(32)]])
      expect(await status(submissionText(1, hashes, note))).toBe(422);
    expect(await status(submissionText(1, [...hashesBetween(1, 3)], note))).toBe(200);
  });

  test("of two concurrent histories only one is cosigned", async () => {
    const [, , , origin = ""] = LOGS;
    const other = submissionText(0, [], checkpointOf([...RECEIPTS].reverse(), 3, 7, origin));
    const statuses = await Promise.all([status(submission(origin, 0, 3)), status(other)]);
    expect(statuses.sort()).toEqual([200, 409]);
  });

  test("follows a log through its restores, under the same key only", async () => {
    const [, , , , origin = ""] = LOGS;
    expect(await status(submission(`${origin}/e1`, 0, 2))).toBe(200);
    expect(await status(submission(`${origin}/e999`, 0, 2))).toBe(200);
    expect(await status(submission(`${origin}/e1`, 0, 2, 9))).toBe(403);
    for (const suffix of ["/e0", "/e01", "/e1000", "/e", "/e1/e1", "/x1"])
      expect(await status(submission(origin + suffix, 0, 2))).toBe(404);
  });

  test("403 without a valid signature of the log, 404 for an unknown origin", async () => {
    const [, , , , , origin = ""] = LOGS;
    expect(await codeOf(await add(submission(origin, 0, 2, 9)))).toBe("forbidden");
    const note = checkpointOf(RECEIPTS, 2, 7, origin);
    const forged = note.replace(
      / [A-Za-z0-9+/=]+\n$/,
      (text) => ` ${text.slice(1, 7)}${"A".repeat(80)}A==\n`,
    );
    expect(await status(submissionText(0, [], forged))).toBeOneOf([400, 403]);
    expect(await codeOf(await add(submission("example.com/unknown", 0, 2)))).toBe("not_found");
    expect((await cosigned("example.com/unknown")).status).toBe(404);
    expect((await fetch(`${server.url}${PEER}/abc/checkpoint`)).status).toBe(400);
  });

  test.each([
    ["nothing", ""],
    ["no old size", `${toBase64(new Uint8Array(32))}\n\n`],
    ["an old size with a leading zero", submission(ORIGIN, 0, 3).replace("old 0", "old 00")],
    ["a negative old size", submission(ORIGIN, 0, 3).replace("old 0", "old -1")],
    ["an old size above the checkpoint", submission(ORIGIN, 0, 3).replace("old 0", "old 4")],
    ["a short hash", submission(ORIGIN, 0, 3).replace("old 0", "old 0\nAAAA")],
    [
      "64 hashes",
      submissionText(0, Array(64).fill(new Uint8Array(32)), checkpointOf(RECEIPTS, 3, 7, ORIGIN)),
    ],
    ["no empty line", submission(ORIGIN, 0, 3).replace("\n\n", "\n")],
    ["no checkpoint", "old 0\n\nx\n"],
  ])("400 for %s", async (_, text) => {
    expect(await codeOf(await add(text))).toBe("validation_error");
  });

  test("accepts 63 hashes, and a request of 64 KiB; 413 above it, 400 for what is not UTF-8", async () => {
    const longest = submissionText(
      0,
      Array(63).fill(new Uint8Array(32)),
      checkpointOf(RECEIPTS, 3, 7, ORIGIN),
    );
    expect(parseSubmission(longest)?.hashes).toHaveLength(63);
    expect(await status("x".repeat(64 * 1024))).toBe(400);
    expect(await status("x".repeat(64 * 1024 + 1))).toBe(413);
    const bytes = await fetch(`${server.url}${PEER}/add-checkpoint`, {
      method: "POST",
      body: Uint8Array.of(255),
    });
    expect(bytes.status).toBe(400);
  });

  test("remembers over a restart", async () => {
    const origin = LOGS[6] ?? "";
    expect(await status(submission(origin, 0, 2))).toBe(200);
    await server.restart();
    expect((await server.client(null).get(PEER)).body["vkey"]).toBe(VKEY);
    expect(await status(submission(origin, 0, 3))).toBe(409);
    expect(await status(submission(origin, 2, 3))).toBe(200);
  });
});

describe("a server without notary.witness_name", () => {
  let other: TestServer;
  beforeAll(async () => {
    other = await startTestServer({ manualClock: true });
  });
  afterAll(() => other.stop());

  test("is no witness: 404", async () => {
    expect((await fetch(other.url + PEER)).status).toBe(404);
    expect((await add(submission(ORIGIN, 0, 3), other)).status).toBe(404);
  });

  test("limits requests without a key by address, over all routes of logs and witness; others get theirs", async () => {
    const ask = (path: string) => fetch(`${other.url}/v1/witness/${path}`);
    await other.clock.advance(60_000);
    for (let n = 0; n < OPEN_REQUESTS_PER_MINUTE; n += 1)
      expect((await ask(n % 2 === 0 ? "peer" : "tlog/wc_x/checkpoint")).status).toBe(404);
    for (const path of ["peer", "tlog/wc_x/checkpoint", "tlog/wc_x/tile/0/000"]) {
      const response = await ask(path);
      expect(response.status).toBe(429);
      expect(response.headers.get("retry-after")).toBe("1");
    }
    expect((await add("", other)).status).toBe(429);
    expect((await other.operator.get("/v1/witness/receipts")).status).toBe(200);
    await other.clock.advance(100);
    expect((await ask("peer")).status).toBe(404);
  });
});
