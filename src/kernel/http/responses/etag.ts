import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type RenderedAnswer, type Reply, reply } from "./response.ts";

/** Characters of a digest that tell two answers apart: 132 bits. */
const TAG_LENGTH = 22;

/**
 * An answer under the name that its bytes give it, or 304 without a body where the caller has it already. What the answer
 * was made of does not count: whatever changes a byte of it changes its name.
 */
export function taggedAnswer(answer: RenderedAnswer, request: Request): RenderedAnswer {
  if (answer.status !== 200) return answer;
  const etag = answer.headers?.["etag"] ?? tagOf(Bun.CryptoHasher.hash("sha256", answer.text, "base64url"));
  const headers = { ...answer.headers, etag };
  const isKnown = names(request.headers.get("if-none-match"), etag);
  return isKnown ? { status: 304, text: "", headers } : { ...answer, headers };
}

/** The name of a response whose bytes have this digest (SHA-256, base64url). */
export function tagOf(digest: string): string {
  return `"${digest.slice(0, TAG_LENGTH)}"`;
}

/** Shorter texts go out as they are: packed they would be no quicker. */
const PACKED_BYTES_MIN = 1_024;
/** Longer texts are compressed on another thread: 64 KiB take a millisecond, a page of 2 MB would hold up the event loop. */
const INLINE_BYTES_MAX = 64 * 1024;
/** The fastest level: texts are rendered again every few seconds. */
const LEVEL = 1;
const gzipAsync = promisify(gzip);

/** A text that is answered many times: packed where the client takes gzip, with 304 where it has the text already. */
export class TaggedText {
  private readonly bytes: Uint8Array<ArrayBuffer>;
  private readonly tag: string;
  private packed: Promise<Uint8Array<ArrayBuffer>> | null = null;

  constructor(text: string) {
    this.bytes = new TextEncoder().encode(text);
    // Nobody gains by another text of the same name, and a large one is named in a tenth of the time.
    this.tag = Bun.hash(this.bytes).toString(36);
  }

  /** Bytes of the text. */
  get size(): number {
    return this.bytes.length;
  }

  async answer(
    { headers: asked }: Request,
    own: Readonly<Record<string, string>>,
  ): Promise<Reply<200 | 304, unknown>> {
    const packs = this.bytes.length >= PACKED_BYTES_MIN && accepts(asked.get("accept-encoding"), "gzip");
    const etag = `"${this.tag}${packs ? "-gzip" : ""}"`;
    const headers = { ...own, etag, vary: "Accept-Encoding" };
    if (names(asked.get("if-none-match"), etag)) return reply(304, "", headers);
    if (!packs) return reply(200, this.bytes, headers);
    this.packed ??= compress(this.bytes);
    return reply(200, await this.packed, { ...headers, "content-encoding": "gzip" });
  }
}

async function compress(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  if (bytes.length <= INLINE_BYTES_MAX) return Bun.gzipSync(bytes, { level: LEVEL });
  return new Uint8Array(await gzipAsync(bytes, { level: LEVEL }));
}

/** Whether an `Accept-Encoding` names a content coding. */
export function accepts(accepted: string | null, coding: "gzip" | "zstd"): boolean {
  const named = (accepted ?? "").split(",").map((part) =>
    part
      .toLowerCase()
      .split(";")
      .map((term) => term.trim()),
  );
  return named.some(
    ([name, ...terms]) => name === coding && !terms.some((term) => /^q=0(\.0*)?$/.test(term)),
  );
}

/** Whether an `If-None-Match` names an answer. A proxy that packs answers weakens their names: that counts for nothing. */
export function names(header: string | null, etag: string): boolean {
  if (header === null) return false;
  return header.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || (tag.startsWith("W/") ? tag.slice(2) : tag) === etag;
  });
}
