import { closeSync, createReadStream, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { Readable } from "node:stream";
import { startBackupProcess } from "../backup/process.ts";
import { hashOf, readSeal } from "../backup/seal.ts";
import { extraAuthorities } from "../kernel/outbound/authorities.ts";
import { OutboundClient } from "../kernel/outbound/client.ts";
import { hmacSha256 } from "../kernel/secrets/hmac.ts";
import { equalInConstantTime } from "../kernel/secrets/key-format.ts";
import { realDelay } from "../kernel/time/clock.ts";
import type { Leader } from "./commit-log.ts";

/** Path of the leader's database, for other nodes. */
export const BASE_PATH = "/v1/cluster/base";
/** How far the clocks of two nodes may differ. */
const TOKEN_AGE_MS_MAX = 5 * 60_000;
/** Longest transfer of a base: 100 GiB at 30 MB/s. */
const FETCH_MS_MAX = 60 * 60_000;
/** Largest base. */
const BASE_BYTES_MAX = 1024 ** 4;
const TOKEN = /^Bearer (\d{1,15})\.([0-9a-f]{64})$/;

/** Proves that a node has the master key of the cell: a time, and its HMAC. `key` is derived from that key. */
function clusterToken(key: Uint8Array, cell: string, now: number): string {
  return `${now}.${signatureOf(key, cell, now)}`;
}

/** Whether the token of an `Authorization` header is valid now. */
function isClusterToken(header: string | null, key: Uint8Array, cell: string, now: number): boolean {
  const [, time = "", signature = ""] = TOKEN.exec(header ?? "") ?? [];
  if (signature === "" || Math.abs(now - Number(time)) > TOKEN_AGE_MS_MAX) return false;
  return equalInConstantTime(signature, signatureOf(key, cell, Number(time)));
}

function signatureOf(key: Uint8Array, cell: string, time: number): string {
  return hmacSha256(key).update(`${cell}\n${time}`).digest("hex");
}

/** With what a node reaches the others of its cell. */
interface NodeAccess {
  /** Derived from the master key. */
  readonly key: Uint8Array;
  readonly cell: string;
  /** Additional certificate authorities (PEM). */
  readonly extraCaPath: string | null;
  readonly now: () => number;
}

/** Serves copies of the leader's database, one at a time. */
export class BaseServer {
  private isBusy = false;

  constructor(
    private readonly parts: {
      readonly folder: string;
      readonly key: Uint8Array;
      readonly cell: string;
      readonly now: () => number;
    },
  ) {}

  async respond(request: Request): Promise<Response> {
    const { folder, key, cell, now } = this.parts;
    if (!isClusterToken(request.headers.get("authorization"), key, cell, now()))
      return new Response("This path is for nodes of the same cell.\n", { status: 401 });
    if (this.isBusy)
      return new Response("Another node is being served.\n", {
        status: 503,
        headers: { "retry-after": "5" },
      });
    this.isBusy = true;
    const file = `${folder}/ninefold.db.sent`;
    try {
      rmSync(file, { force: true });
      const problem = await startBackupProcess(file, folder).done;
      if (problem !== null) return new Response(`${problem}\n`, { status: 503 });
      const copy = createReadStream(file);
      // Deleted by name only: it can be read until it has been sent.
      copy.once("open", () => rmSync(file));
      const body = Readable.toWeb(copy) as ReadableStream;
      return new Response(body, { headers: { "content-type": "application/octet-stream" } });
    } finally {
      this.isBusy = false;
    }
  }
}

/** Copies the database of the leader into a file, and verifies its digest. @throws Error */
export async function fetchBase(
  { key, cell, extraCaPath, now }: NodeAccess,
  leader: Leader,
  target: string,
): Promise<void> {
  const client = new OutboundClient(["all"], extraAuthorities(extraCaPath));
  const file = openSync(target, "w+", 0o600);
  try {
    const outcome = await client.send({
      account: null,
      method: "GET",
      url: new URL(BASE_PATH, leader.advertise ?? "").href,
      headers: { authorization: `Bearer ${clusterToken(key, cell, now())}` },
      body: null,
      timeoutMs: FETCH_MS_MAX,
      bodyBytesMax: BASE_BYTES_MAX,
      keepsBody: true,
      onBody: (bytes) => void writeSync(file, bytes),
      longerBody: "fail",
      redirectsMax: 0,
      reuseConnection: false,
    });
    if (!outcome.answered) throw new Error(`the leader cannot be reached: ${outcome.failure.message}`);
    if (outcome.status !== 200)
      throw new Error(
        `the leader responded with ${outcome.status}: ${Buffer.from(outcome.body).toString("utf8").trim()}`,
      );
    const seal = readSeal(target);
    if (seal === null) throw new Error("the copy of the leader's database is incomplete");
    const digest = await hashOf(file, seal.bytes, () => realDelay(0));
    if (digest.digest("hex") !== seal.sha256)
      throw new Error("the copy of the leader's database was damaged on its way");
    ftruncateSync(file, seal.bytes);
  } finally {
    closeSync(file);
    client.close();
  }
}
