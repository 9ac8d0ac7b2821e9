import type { OutboundOutcome } from "../kernel/outbound/outcome.ts";
import {
  element,
  type ListPage,
  type PutOutcome,
  putOnce,
  readListPage,
  type S3Bucket,
  type S3Client,
  type S3Request,
  sendToBucket,
  storageProblem,
} from "../kernel/outbound/s3.ts";
import { realDelay } from "../kernel/time/clock.ts";

/** Timeout of a request, in milliseconds: some MiB over a slow line. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Pause before a failed request is repeated; it doubles up to the longest, so there are five attempts. */
const RETRY_MS = 200;
const RETRY_MS_MAX = 1_600;
/** Bytes that are read of an object per request. */
export const RANGE_BYTES = 16 * 1024 * 1024;
/** Bytes of a part of a large upload; S3 allows 10,000 parts. */
const UPLOAD_PART_BYTES = 16 * 1024 * 1024;
/** Objects per page of a list: the maximum of S3. */
const LIST_KEYS_MAX = 1_000;
/** Bytes of such a page: keys of at most 1,024 bytes, with what stands around them. */
const LIST_BYTES_MAX = 4 * 1024 * 1024;
/** Successive pages without a further object, which a store may send where many were deleted. */
const EMPTY_PAGES_MAX = 100;
/** Objects per request that deletes them: the maximum of S3. */
const DELETE_KEYS_MAX = 1_000;
const BINARY = "application/octet-stream";

/** Where an archive is. */
export interface ArchivePlace {
  readonly bucket: S3Bucket;
  /** Prefix of every name, with a slash at its end unless it is empty. */
  readonly prefix: string;
}

/** An object of an archive. */
export interface ArchivedObject {
  /** Without the prefix. */
  readonly name: string;
  readonly bytes: number;
}

/** The object store did not do what was requested. */
export class StoreUnavailable extends Error {}

/** The objects of an archive, by names without its prefix. */
export class ArchiveStore {
  constructor(
    private readonly client: S3Client,
    private readonly place: ArchivePlace,
    private readonly uploadPartBytes = UPLOAD_PART_BYTES,
  ) {}

  /** Stores an object unless there is one with other bytes. */
  put(name: string, bytes: Uint8Array): Promise<PutOutcome> {
    const { bucket, prefix } = this.place;
    return putOnce(this.client, bucket, prefix + name, bytes, REQUEST_TIMEOUT_MS, BINARY);
  }

  /** Stores an object in parts, which need not fit into memory together. Replaces an existing one. @throws StoreUnavailable */
  async putLarge(name: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const key = this.place.prefix + name;
    let uploadId: string | null = null;
    const tags: string[] = [];
    let waiting: Uint8Array[] = [];
    const sendPart = async (): Promise<void> => {
      uploadId ??= await this.beginUpload(key);
      const body = Buffer.concat(waiting);
      waiting = [];
      const query = { partNumber: String(tags.length + 1), uploadId };
      const { headers } = await this.sent({ method: "PUT", key, query, body }, true);
      tags.push(headers["etag"] ?? "");
    };
    try {
      let size = 0;
      for await (const piece of bytes) {
        waiting.push(piece);
        size += piece.length;
        if (size < this.uploadPartBytes) continue;
        await sendPart();
        size = 0;
      }
      if (uploadId === null) {
        const headers = { "content-type": BINARY };
        await this.sent({ method: "PUT", key, headers, body: Buffer.concat(waiting) }, true);
        return;
      }
      if (waiting.length > 0) await sendPart();
      await this.completeUpload(key, uploadId, tags);
    } catch (error) {
      if (uploadId !== null) await this.send({ method: "DELETE", key, query: { uploadId } });
      throw error;
    }
  }

  /** Part of an object, or the whole of a shorter one. @throws StoreUnavailable */
  async read(name: string, from: number, bytes: number): Promise<Uint8Array> {
    const range = { range: `bytes=${from}-${from + bytes - 1}` };
    const key = this.place.prefix + name;
    const { body } = await this.sent({ method: "GET", key, headers: range, bodyBytesMax: bytes });
    return body;
  }

  /** A whole object of a known size. @throws StoreUnavailable */
  async readAll({ name, bytes }: ArchivedObject): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < bytes; at += RANGE_BYTES)
      parts.push(await this.read(name, at, Math.min(RANGE_BYTES, bytes - at)));
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  }

  /**
   * The objects whose names begin with a text, ascending, from the first name after `after`.
   *
   * @throws StoreUnavailable, also for a list that is not whole, is not ascending or does not end.
   */
  async *list(start: string, after = ""): AsyncGenerator<ArchivedObject> {
    const { prefix } = this.place;
    let token: string | null = null;
    let last = prefix + after;
    let emptyPages = 0;
    do {
      const query: Record<string, string> = {
        "list-type": "2",
        "max-keys": String(LIST_KEYS_MAX),
        prefix: prefix + start,
        ...(after === "" ? {} : { "start-after": prefix + after }),
        ...(token === null ? {} : { "continuation-token": token }),
      };
      const { objects, next } = await this.listPage(query);
      for (const { key, bytes } of objects) {
        // A store may not know `start-after` and list more.
        if (!key.startsWith(prefix + start) || !isAfter(key, prefix + after)) continue;
        if (!isAfter(key, last)) throw new StoreUnavailable(LIST_REPEATS);
        last = key;
        yield { name: key.slice(prefix.length), bytes };
      }
      emptyPages = objects.length > 0 ? 0 : emptyPages + 1;
      if (next !== null && (next === token || emptyPages > EMPTY_PAGES_MAX))
        throw new StoreUnavailable(LIST_REPEATS);
      token = next;
    } while (token !== null);
  }

  /** Whether there is an object. A store that does not show what is missing returns 403. @throws StoreUnavailable */
  async has(name: string): Promise<boolean> {
    const headers = { range: "bytes=0-0" };
    const outcome = await this.repeated({ method: "GET", key: this.place.prefix + name, headers });
    if (outcome.answered && (outcome.status === 404 || outcome.status === 403)) return false;
    successful(outcome);
    return true;
  }

  /** Deletes objects, if they exist. @throws StoreUnavailable, also if only some could be deleted. */
  async remove(names: readonly string[]): Promise<void> {
    for (let at = 0; at < names.length; at += DELETE_KEYS_MAX) {
      const keys = names
        .slice(at, at + DELETE_KEYS_MAX)
        .map((name) => `<Object><Key>${this.place.prefix}${name}</Key></Object>`);
      const body = Buffer.from(`<Delete><Quiet>true</Quiet>${keys.join("")}</Delete>`);
      const headers = { "content-type": "application/xml" };
      const request = { method: "POST", key: "", query: { delete: "" }, headers, body } as const;
      const outcome = await this.sent({ ...request, bodyBytesMax: LIST_BYTES_MAX });
      // What could not be deleted is in a response with the status 200.
      if (Buffer.from(outcome.body).includes("<Error>"))
        throw new StoreUnavailable(`${storageProblem(outcome)}: not every object was deleted`);
    }
  }

  /**
   * Whether the store honours `If-None-Match`, on which the archive's safety rests: two servers must not write the same
   * object.
   *
   * @throws StoreUnavailable if that could not be found out.
   */
  async isConditional(name: string): Promise<boolean> {
    const request = {
      method: "PUT",
      key: this.place.prefix + name,
      headers: { "content-type": BINARY, "if-none-match": "*" },
      body: Buffer.from("Ninefold checks whether this object store supports conditional writes.\n"),
    } as const;
    const first = await this.send(request);
    // An earlier probe whose end was not reached has left the object.
    if (!first.answered || first.status !== 412) successful(first);
    const second = await this.send(request);
    if (!second.answered || second.status !== 412) successful(second);
    // Keys that may not delete can archive. What is left is one small object, which the next start replaces.
    await this.remove([name]).catch(() => undefined);
    return second.answered && second.status === 412;
  }

  private async listPage(query: Readonly<Record<string, string>>): Promise<ListPage> {
    const { body } = await this.sent({ method: "GET", key: "", query, bodyBytesMax: LIST_BYTES_MAX });
    try {
      return readListPage(Buffer.from(body).toString("utf8"));
    } catch (error) {
      throw new StoreUnavailable(error instanceof Error ? error.message : String(error));
    }
  }

  private async beginUpload(key: string): Promise<string> {
    const headers = { "content-type": BINARY };
    const { body } = await this.sent({ method: "POST", key, query: { uploads: "" }, headers });
    const uploadId = element(Buffer.from(body).toString("utf8"), "UploadId");
    if (uploadId === null) throw new StoreUnavailable("the storage returned no upload id");
    return uploadId;
  }

  private async completeUpload(key: string, uploadId: string, tags: readonly string[]): Promise<void> {
    const parts = tags.map(
      (tag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${tag}</ETag></Part>`,
    );
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
    const headers = { "content-type": "application/xml" };
    const { body: reply } = await this.sent(
      { method: "POST", key, query: { uploadId }, headers, body },
      true,
    );
    // A failure after the beginning of the response has the status 200.
    if (Buffer.from(reply).includes("<Error>"))
      throw new StoreUnavailable("the storage could not join the parts");
  }

  private send(request: Omit<S3Request, "timeoutMs">): Promise<OutboundOutcome> {
    return sendToBucket(this.client, this.place.bucket, { ...request, timeoutMs: REQUEST_TIMEOUT_MS });
  }

  /** Sends a request, and repeats it where that is useful: see {@link repeated}. @throws StoreUnavailable */
  private async sent(request: Omit<S3Request, "timeoutMs">, repeats = request.method === "GET") {
    return successful(await (repeats ? this.repeated(request) : this.send(request)));
  }

  /**
   * Sends a request, and repeats it after a temporary failure: reading and the steps of a large upload, since a restore or a base
   * makes thousands of requests, and one that fails must not end it.
   */
  private async repeated(request: Omit<S3Request, "timeoutMs">): Promise<OutboundOutcome> {
    let outcome = await this.send(request);
    for (let pause = RETRY_MS; isTransient(outcome) && pause <= RETRY_MS_MAX; pause *= 2) {
      await realDelay(pause);
      outcome = await this.send(request);
    }
    return outcome;
  }
}

const LIST_REPEATS = "the storage's list repeats itself, or is not in order";

/** Whether a key follows another one in the order of lists, that of their bytes. */
function isAfter(key: string, other: string): boolean {
  return Buffer.compare(Buffer.from(key), Buffer.from(other)) > 0;
}

function isTransient(outcome: OutboundOutcome): boolean {
  return !outcome.answered || outcome.status >= 500 || outcome.status === 429;
}

function successful(outcome: OutboundOutcome) {
  if (outcome.answered && outcome.status >= 200 && outcome.status < 300) return outcome;
  throw new StoreUnavailable(storageProblem(outcome));
}
