/** Largest body after decoding: as large as a body without a coding may be, so that reading either takes the same time. */
export const DECODED_BYTES_MAX = 1024 * 1024;
/** Codings that one body may have: more than one is rare, and each takes some milliseconds. */
export const CODINGS_MAX = 2;

/** How a body was sent: the values of these headers; null without one. */
export interface ContentHeaders {
  readonly encoding: string | null;
  readonly type: string | null;
}

/** Decodes a body to at most `maxOutputLength` bytes. @throws Error when there are more, or the body is damaged */
type Decoder = (body: Uint8Array, limit: { readonly maxOutputLength: number }) => Uint8Array;

/** Decoders of the registered codings (RFC 9110, section 8.4.1, RFC 7932, RFC 8878). */
const DECODERS: Readonly<Record<string, Decoder>> = {
  gzip: gunzip,
  "x-gzip": gunzip,
  deflate: (body, limit) =>
    hasZlibHeader(body) ? zlib().inflateSync(body, limit) : zlib().inflateRawSync(body, limit),
  br: (body, limit) => zlib().brotliDecompressSync(body, limit),
  zstd: (body, limit) => zlib().zstdDecompressSync(body, limit),
};

function gunzip(body: Uint8Array, limit: { readonly maxOutputLength: number }): Uint8Array {
  return zlib().gunzipSync(body, limit);
}

/** Loaded at the first coded body: a start needs none. */
function zlib(): typeof import("node:zlib") {
  return process.getBuiltinModule("node:zlib");
}

/** What some senders write that is no coding. */
const NO_CODINGS: ReadonlySet<string> = new Set(["", "identity", "none", "utf-8"]);

/** Some senders omit the header that `deflate` has by its definition. */
function hasZlibHeader(body: Uint8Array): boolean {
  const [first = 0, second = 0] = body;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

/**
 * The bytes of a body without its content codings; null for an unknown coding, a damaged body, or one that decodes to more than
 * `bytesMax`. Decoding ends as soon as it exceeds that.
 */
export function decodedBytes(
  body: Uint8Array,
  encoding: string | null,
  bytesMax: number = DECODED_BYTES_MAX,
): Uint8Array | null {
  if (encoding === null) return body;
  const codings = encoding.toLowerCase().split(",", CODINGS_MAX + 1);
  if (codings.length > CODINGS_MAX) return null;
  let decoded = body;
  // They are listed in the order in which they were applied.
  for (const name of codings.reverse()) {
    const coding = name.trim();
    if (NO_CODINGS.has(coding)) continue;
    const decode = DECODERS[coding];
    if (decode === undefined) return null;
    try {
      decoded = decode(decoded, { maxOutputLength: bytesMax });
    } catch {
      return null;
    }
  }
  return decoded;
}

const BYTE_ORDER_MARK = "\ufeff";

/**
 * The text of decoded bytes in the charset of their content type; without one, UTF-16 if they begin with its byte order mark and an
 * ASCII character, as JSON does, otherwise UTF-8. A byte order mark is not part of the text. An unknown charset counts as none.
 */
export function textOf(bytes: Uint8Array, type: string | null): string {
  const charset = charsetOf(type ?? "") ?? markedCharset(bytes);
  if (charset !== "utf-8" && charset !== "utf8") {
    try {
      return new TextDecoder(charset as Bun.Encoding).decode(bytes);
    } catch {
      // An unknown label.
    }
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/** The charset in a content type, in lower case; null without one. */
function charsetOf(type: string): string | null {
  for (const part of type.toLowerCase().split(";").slice(1)) {
    const [name = "", value = ""] = part.split("=", 2);
    if (name.trim() === "charset") return value.replaceAll('"', "").trim() || null;
  }
  return null;
}

function markedCharset([first, second, third, fourth]: Uint8Array): string {
  if (first === 0xff && second === 0xfe && third !== 0 && fourth === 0) return "utf-16le";
  return first === 0xfe && second === 0xff && third === 0 && fourth !== 0 ? "utf-16be" : "utf-8";
}

/** The text of a body without its content codings; null as for {@link decodedBytes}. */
export function contentText(
  body: Uint8Array,
  { encoding, type }: ContentHeaders,
  bytesMax: number = DECODED_BYTES_MAX,
): string | null {
  const decoded = decodedBytes(body, encoding, bytesMax);
  return decoded === null ? null : textOf(decoded, type);
}
