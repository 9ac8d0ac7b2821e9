import { accepts, COMPRESSED_BYTES_MIN, gzipped } from "./compression.ts";
import { sharedBytes } from "./outgoing-bodies.ts";
import { type RenderedResponse, type Reply, reply } from "./response.ts";

/** Characters of a digest in an `ETag`: 132 bits. */
const TAG_LENGTH = 22;

/**
 * A response with an `ETag` of its bytes, or 304 without a body if the caller has it already. What the response
 * was made of does not count: whatever changes a byte of it changes its name.
 */
export function taggedResponse(response: RenderedResponse, request: Request): RenderedResponse {
  if (response.status !== 200) return response;
  const etag =
    response.headers?.["etag"] ?? tagOf(Bun.CryptoHasher.hash("sha256", response.text, "base64url"));
  const headers = { ...response.headers, etag };
  const isKnown = names(request.headers.get("if-none-match"), etag);
  return isKnown ? { status: 304, text: "", headers } : { ...response, headers };
}

/** The name of a response whose bytes have this digest (SHA-256, base64url). */
export function tagOf(digest: string): string {
  return `"${digest.slice(0, TAG_LENGTH)}"`;
}

/** A text that is sent many times: compressed if the client accepts gzip, 304 if it has the text already. */
export class TaggedText {
  private readonly bytes: Uint8Array<ArrayBuffer>;
  private readonly tag: string;
  private packed: ReturnType<typeof gzipped> | null = null;

  constructor(text: string) {
    this.bytes = sharedBytes(new TextEncoder().encode(text));
    // Nobody gains by another text of the same name, and a large one is named in a tenth of the time.
    this.tag = Bun.hash(this.bytes).toString(36);
  }

  /** Bytes of the text. */
  get size(): number {
    return this.bytes.length;
  }

  async respond(
    { headers: asked }: Request,
    responseHeaders: Readonly<Record<string, string>>,
  ): Promise<Reply<200 | 304, unknown>> {
    const packs = this.bytes.length >= COMPRESSED_BYTES_MIN && accepts(asked.get("accept-encoding"), "gzip");
    const etag = `"${this.tag}${packs ? "-gzip" : ""}"`;
    const headers = { ...responseHeaders, etag, vary: "Accept-Encoding" };
    if (names(asked.get("if-none-match"), etag)) return reply(304, "", headers);
    if (!packs) return reply(200, this.bytes, headers);
    this.packed ??= gzipped(this.bytes);
    return reply(200, sharedBytes(await this.packed), { ...headers, "content-encoding": "gzip" });
  }
}

/** Whether an `If-None-Match` names a response. A proxy that compresses responses makes their tags weak, which is ignored. */
export function names(header: string | null, etag: string): boolean {
  if (header === null) return false;
  return header.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || (tag.startsWith("W/") ? tag.slice(2) : tag) === etag;
  });
}
