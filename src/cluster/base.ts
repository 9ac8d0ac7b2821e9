import { startBackupProcess } from "../backup/process.ts";
import { readSeal, type Seal } from "../backup/seal.ts";
import { errorText } from "../kernel/errors.ts";
import { hmacSha256 } from "../kernel/hmac.ts";
import { extraAuthorities } from "../kernel/outbound/authorities.ts";
import { OutboundClient } from "../kernel/outbound/client.ts";
import { equalInConstantTime } from "../kernel/secrets/key-format.ts";
import {
  forEachPage,
  HEADER_BYTES_MAX,
  openPart,
  PAGE_BYTES,
  PAGE_RECORD_BYTES,
  PAGES_PER_PART,
  payloadOf,
  sealPart,
  splitParts,
} from "../kernel/storage/replication/entry.ts";
import type { StoredPosition } from "../kernel/storage/replication/position.ts";
import type { Cancel } from "../kernel/time/clock.ts";
import type { ClusterNode, Leader } from "./commit-log.ts";
import { type Disk, LOCAL_DISK } from "./disk.ts";
import { type NodeTime, REAL_TIME } from "./node-time.ts";
import { RequestVerifier, signRequest } from "./node-token.ts";

/** Path of the leader's database, for other nodes. */
export const BASE_PATH = "/v1/cluster/base";
/** Parts of a response: about 4 MiB, so that a node with 1 MB/s gets each well within {@link IDLE_MS_MAX}. */
const PARTS_PER_RESPONSE = 4;
/** Longest wait for the next pages: after it they are requested again, or from another leader. */
const IDLE_MS_MAX = 10_000;
/** Pause before something that failed is requested again, and between two looks at a copy that is being made. */
const RETRY_MS = 500;
/** A copy that nobody has read for so long is deleted. */
const COPY_IDLE_MS = 60_000;
/** A copy that is older is not begun again: a new one leaves less to apply. */
const COPY_AGE_MS_MAX = 60_000;
/** How often the progress of a copy is logged. */
const PROGRESS_MS = 10_000;
/** Longest response: its pages in an encoding that does not compress them. */
const RESPONSE_BYTES_MAX =
  PARTS_PER_RESPONSE * (PAGES_PER_PART * PAGE_RECORD_BYTES * 1.01 + HEADER_BYTES_MAX + 1_024);
const NONCE_BYTES = 16;
/** Bytes that are hashed at a time: some milliseconds. */
const DIGEST_SLICE_BYTES = 1024 * 1024;

/** What a copy is: the first response, whose MAC covers everything in it and, through its key, the request's nonce. */
interface Manifest {
  readonly copy: string;
  readonly position: StoredPosition;
  readonly bytes: number;
  /** SHA-256 of the database, lower-case hex. */
  readonly sha256: string;
}

/** A copy of the database that can be sent. */
interface ReadyCopy extends Manifest {
  readonly file: number;
  readonly madeAt: number;
}

/** Serves copies of the leader's database. */
export class BaseServer {
  /** First entry of the log, as far as is known: a copy that is older is of no use. */
  logFirst = 0;
  private readonly verifier: RequestVerifier;
  private copy: ReadyCopy | null = null;
  private isMaking = false;
  private problem: string | null = null;
  private cancelIdle: Cancel = () => undefined;
  private readonly disk: Disk;
  private readonly time: NodeTime;

  constructor(
    private readonly deps: {
      readonly folder: string;
      /** This node. */
      readonly node: ClusterNode;
      readonly log: string;
      readonly key: Uint8Array;
      readonly cell: string;
      /** Whether this node can confirm that it leads. */
      readonly isLeading: () => boolean;
      readonly now: () => number;
      /** Disk and time of this machine, unless a test has its own. */
      readonly disk?: Disk;
      readonly time?: NodeTime;
      /** Copies the database into a file. Resolves to what it is. @throws Error */
      readonly backUp?: (path: string) => Promise<Pick<Seal, "bytes" | "sha256">>;
    },
  ) {
    this.verifier = new RequestVerifier(deps);
    this.disk = deps.disk ?? LOCAL_DISK;
    this.time = deps.time ?? REAL_TIME;
  }

  async respond(request: Request): Promise<Response> {
    const verified = this.verifier.verify(request.headers.get("authorization"));
    if ("status" in verified) return refusal(verified.status, verified.message);
    if (!this.deps.isLeading()) return refusal(503, "This node cannot confirm that it leads.");
    const { copy, page } = verified.request;
    if (copy === null) return this.begin(verified.responseKey);
    if (this.copy?.copy !== copy) return refusal(410, "This copy of the database is not available any more.");
    this.keepFor(COPY_IDLE_MS);
    return binary(await this.pages(this.copy, page, verified.responseKey));
  }

  /** Deletes the copy. */
  close(): void {
    this.cancelIdle();
    if (this.copy !== null) this.disk.close(this.copy.file);
    this.copy = null;
  }

  private begin(responseKey: Uint8Array): Response {
    if (this.copy !== null && this.isUsable(this.copy)) {
      const { copy, position, bytes, sha256 } = this.copy;
      const text = JSON.stringify({ copy, position, bytes, sha256 } satisfies Manifest);
      this.keepFor(COPY_IDLE_MS);
      return Response.json({ manifest: text, mac: macOf(text, responseKey) });
    }
    if (this.problem !== null) {
      const response = refusal(503, `The copy of the database failed: ${this.problem}`);
      this.problem = null;
      return response;
    }
    if (!this.isMaking) void this.make();
    return new Response(null, { status: 202 });
  }

  private isUsable({ madeAt, position }: ReadyCopy): boolean {
    return this.time.monotonic() - madeAt < COPY_AGE_MS_MAX && position.seq >= this.logFirst - 1;
  }

  private async make(): Promise<void> {
    const { disk, time } = this;
    const { folder, backUp = (to: string) => backUpTo(to, folder) } = this.deps;
    const path = `${folder}/ninefold.db.sent`;
    this.isMaking = true;
    try {
      disk.remove(path);
      const { bytes, sha256 } = await backUp(path);
      const position = disk.positionIn(path);
      if (position === null) throw new Error("the copy has no position");
      this.close();
      const file = disk.open(path, false);
      this.copy = { copy: crypto.randomUUID(), position, bytes, sha256, file, madeAt: time.monotonic() };
      this.keepFor(COPY_IDLE_MS);
    } catch (error) {
      this.problem = errorText(error);
    } finally {
      // By name only: what was opened can be read until it is closed.
      disk.remove(path);
      this.isMaking = false;
    }
  }

  private async pages(copy: ReadyCopy, from: number, key: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    const filePages = copy.bytes / PAGE_BYTES;
    const parts: Uint8Array[] = [];
    for (let part = 0, page = from; part < PARTS_PER_RESPONSE && page <= filePages; part += 1) {
      // The event loop serves others in between.
      if (part > 0) await this.time.delay(0);
      const count = Math.min(PAGES_PER_PART, filePages - page + 1);
      const hasMore = page + count <= filePages;
      const payload = payloadOf(this.readPages(copy, page, count), filePages);
      const entry = { ...copy.position, isSeal: false, filePages };
      parts.push(sealPart(entry, { part, hasMore, payload }, key, copy.copy));
      page += count;
    }
    return Buffer.concat(parts);
  }

  private readPages({ file }: ReadyCopy, first: number, count: number): Map<number, Uint8Array> {
    const bytes = Buffer.alloc(count * PAGE_BYTES);
    if (this.disk.read(file, bytes, (first - 1) * PAGE_BYTES) < bytes.length)
      throw new Error("the copy is shorter than it was");
    const pages = Array.from({ length: count }, (_, index) => index);
    return new Map(
      pages.map((index) => [first + index, bytes.subarray(index * PAGE_BYTES, (index + 1) * PAGE_BYTES)]),
    );
  }

  private keepFor(ms: number): void {
    this.cancelIdle();
    this.cancelIdle = this.time.after(ms, () => this.close());
  }
}

async function backUpTo(path: string, folder: string): Promise<Seal> {
  const problem = await startBackupProcess(path, folder).done;
  if (problem !== null) throw new Error(problem);
  const seal = readSeal(path);
  if (seal === null) throw new Error("the copy has no seal");
  return seal;
}

function refusal(status: number, message: string): Response {
  return new Response(`${message}\n`, { status });
}

function binary(body: Uint8Array<ArrayBuffer>): Response {
  return new Response(body, { headers: { "content-type": "application/octet-stream" } });
}

function macOf(text: string, responseKey: Uint8Array): string {
  return hmacSha256(responseKey).update(text).digest("hex");
}

/** With what a node reaches the others of its cell. */
export interface NodeAccess {
  /** Id of this node. */
  readonly id: string;
  /** Derived from the master key. */
  readonly key: Uint8Array;
  readonly cell: string;
  /** Additional certificate authorities (PEM). */
  readonly extraCaPath: string | null;
  readonly now: () => number;
  /** Disk, time and network of this machine, unless a test has its own. */
  readonly disk?: Disk;
  readonly time?: NodeTime;
  readonly client?: NodeClient;
}

/** Sends the requests to the other nodes. */
export type NodeClient = Pick<OutboundClient, "send" | "close">;

/** What follows a copy in progress. */
export interface CopyWatch {
  /** Whether the copy is still worth it: its source leads, and this node is not stopped. */
  readonly isWanted: () => Promise<boolean>;
  /** The log must not be trimmed beyond this position until the copy is complete. */
  readonly onBegun: (position: StoredPosition) => void;
  readonly onProgress: (bytes: number, total: number) => void;
  /** The source does not respond; the request is repeated. */
  readonly onInterrupted: (reason: string) => void;
}

/** The source cannot give this copy, or not any more: it must be begun again. */
class CopyLost extends Error {}

/**
 * Copies the database of the leader into a file, which is complete and verified, but not synced when this resolves. Requests that
 * fail are repeated as long as the copy is wanted, and continue where it is. Resolves to its position.
 *
 * @throws Error
 */
export async function fetchBase(
  access: NodeAccess,
  source: { readonly leader: Leader; readonly log: string },
  target: string,
  watch: CopyWatch,
): Promise<StoredPosition> {
  const { disk = LOCAL_DISK, time = REAL_TIME, extraCaPath } = access;
  const client = access.client ?? new OutboundClient(["all"], extraAuthorities(extraCaPath));
  const file = disk.open(target, true);
  try {
    const requests = new CopyRequests(client, access, source, watch, time);
    const manifest = await requests.manifest();
    watch.onBegun(manifest.position);
    const filePages = manifest.bytes / PAGE_BYTES;
    let loggedAt = time.monotonic();
    for (let page = 1; page <= filePages; ) {
      page = await requests.pages(manifest, page, (bytes, at) => disk.write(file, bytes, at));
      if (time.monotonic() - loggedAt < PROGRESS_MS) continue;
      loggedAt = time.monotonic();
      watch.onProgress((page - 1) * PAGE_BYTES, manifest.bytes);
    }
    disk.truncate(file, manifest.bytes);
    if ((await digestOf(disk, time, file, manifest.bytes)) !== manifest.sha256)
      throw new Error("the copy of the leader's database was damaged on its way");
    return manifest.position;
  } finally {
    disk.close(file);
    client.close();
  }
}

async function digestOf(disk: Disk, time: NodeTime, file: number, bytes: number): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  const slice = Buffer.allocUnsafe(DIGEST_SLICE_BYTES);
  for (let at = 0; at < bytes; at += slice.length) {
    hash.update(slice.subarray(0, disk.read(file, slice, at)));
    await time.delay(0);
  }
  return hash.digest("hex");
}

/** What a response says to be a manifest and its MAC. It may come from anybody: what cannot be read has no MAC that holds. */
function sealedManifest(body: Uint8Array): { readonly manifest: string; readonly mac: string } {
  try {
    const { manifest, mac } = JSON.parse(Buffer.from(body).toString("utf8"));
    return { manifest: `${manifest}`, mac: `${mac}` };
  } catch {
    return { manifest: "", mac: "" };
  }
}

/** The requests of one copy. */
class CopyRequests {
  constructor(
    private readonly client: NodeClient,
    private readonly access: NodeAccess,
    private readonly source: { readonly leader: Leader; readonly log: string },
    private readonly watch: CopyWatch,
    private readonly time: NodeTime,
  ) {}

  /** Waits until the leader has made the copy. */
  async manifest(): Promise<Manifest> {
    for (;;) {
      const { status, body, key } = await this.send(null, 1);
      if (status === 202) {
        await this.pauseWhileWanted();
        continue;
      }
      const { manifest, mac } = sealedManifest(body);
      if (!equalInConstantTime(mac, macOf(manifest, key)))
        throw new Error("the response is not that of a node with the same master key");
      return JSON.parse(manifest) as Manifest;
    }
  }

  /** Receives pages from this one on. Resolves to the one after them. */
  async pages(
    { copy, position, bytes }: Manifest,
    from: number,
    write: (bytes: Uint8Array, at: number) => void,
  ): Promise<number> {
    const { body, key } = await this.send(copy, from);
    let next = from;
    for (const [index, part] of splitParts(body).entries()) {
      const { payload, part: number, seq, epoch, log, filePages } = openPart(part, key, copy);
      if (number !== index || seq !== position.seq || epoch !== position.epoch || log !== position.log)
        throw new Error("the leader has sent pages of another copy");
      if (filePages !== bytes / PAGE_BYTES) throw new Error("the leader has sent pages of another copy");
      forEachPage(payload, (page, content) => {
        if (page !== next) throw new Error("the leader has sent other pages");
        write(content, (page - 1) * PAGE_BYTES);
        next += 1;
      });
      await this.time.delay(0);
    }
    if (next === from) throw new Error("the leader has sent no pages");
    return next;
  }

  /** Repeats a request until there is a response. @throws Error when it is a rejection, or the copy is not wanted any more. */
  private async send(copy: string | null, page: number) {
    const { client, access, source, watch } = this;
    const { leader, log } = source;
    for (;;) {
      const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(NONCE_BYTES))).toString("hex");
      const to = { id: leader.id, advertise: leader.advertise };
      const request = { from: access.id, to, log, nonce, at: access.now(), copy, page };
      const { authorization, responseKey: key } = signRequest(request, access.key, access.cell);
      const outcome = await client.send({
        account: null,
        method: "GET",
        url: new URL(BASE_PATH, leader.advertise ?? "").href,
        headers: { authorization },
        body: null,
        timeoutMs: IDLE_MS_MAX,
        bodyBytesMax: RESPONSE_BYTES_MAX,
        keepsBody: true,
        longerBody: "fail",
        redirectsMax: 0,
        reuseConnection: true,
      });
      if (outcome.answered && (outcome.status === 200 || outcome.status === 202))
        return { status: outcome.status, body: outcome.body, key };
      const reason = outcome.answered
        ? `the leader responded with ${outcome.status}: ${Buffer.from(outcome.body).toString("utf8").trim()}`
        : `the leader cannot be reached: ${outcome.failure.message}`;
      if (copy === null || (outcome.answered && outcome.status < 500)) throw new CopyLost(reason);
      watch.onInterrupted(reason);
      await this.pauseWhileWanted();
    }
  }

  private async pauseWhileWanted(): Promise<void> {
    if (!(await this.watch.isWanted())) throw new CopyLost("another node leads, or this node stops");
    await this.time.delay(RETRY_MS);
  }
}
