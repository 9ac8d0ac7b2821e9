import type { Transform } from "node:stream";
import zlib from "node:zlib";
import type { ResponseHeaders } from "../../../kernel/outbound/response-reader.ts";

/** The response that assertions check. */
export interface CheckedResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Uint8Array;
  readonly truncated: boolean;
}

/** Codings of one body that are undone, as many as a server and a proxy in front of it may apply. */
const CODINGS_MAX = 2;
/** Names that are no coding, as some servers send them. */
const NO_CODINGS: ReadonlySet<string> = new Set(["", "identity", "none", "utf-8"]);
/** What declares a charset is searched in so many bytes, as browsers do. */
const DECLARATION_BYTES = 1_024;

/** `charset=` of a `Content-Type` or a `meta` element. */
const CHARSET = /charset {0,4}= {0,4}["']?([a-z0-9_:.-]{1,40})/i;
/** The first line of XML. */
const XML_ENCODING = /^<\?xml [^>]{0,100}encoding=["']([a-z0-9_:.-]{1,40})/i;

const BYTE_ORDER_MARKS: readonly (readonly [charset: string, mark: readonly number[]])[] = [
  ["utf-8", [0xef, 0xbb, 0xbf]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]],
];

/**
 * A response whose body is decoded, up to `bytesMax`: some targets compress although nothing was requested. One that cannot be
 * decoded is returned as it is, with its `Content-Encoding`.
 */
export async function withoutCoding(response: CheckedResponse, bytesMax: number): Promise<CheckedResponse> {
  const { "content-encoding": coding, ...headers } = response.headers;
  if (coding === undefined) return response;
  const codings = coding
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => !NO_CODINGS.has(name));
  if (codings.length > CODINGS_MAX) return response;
  let { body, truncated } = response;
  for (const name of codings.reverse()) {
    const stream = decoderOf(name, body);
    const decoded = stream === null ? null : await decode(stream, body, bytesMax);
    if (decoded === null) return response;
    body = decoded.bytes;
    truncated ||= decoded.isCut;
  }
  return { ...response, headers, body, truncated };
}

/** The stream that undoes a coding; null for an unknown one. What has been cut off is decoded as far as it goes. */
function decoderOf(name: string, body: Uint8Array): Transform | null {
  const options = { finishFlush: zlib.constants.Z_SYNC_FLUSH };
  switch (name) {
    case "gzip":
    case "x-gzip":
      return zlib.createGunzip(options);
    case "deflate":
      return isZlib(body) ? zlib.createInflate(options) : zlib.createInflateRaw(options);
    case "br":
      return zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH });
    default:
      return null;
  }
}

/** `deflate` is the format of zlib, but some servers omit its header (RFC 9110, section 8.4.1.2). */
function isZlib([first = 0, second = 0]: Uint8Array): boolean {
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

/** At most `bytesMax` bytes: what is decoded beyond them is dropped, however small its source is. Null: it is broken. */
function decode(
  stream: Transform,
  body: Uint8Array,
  bytesMax: number,
): Promise<{ readonly bytes: Uint8Array; readonly isCut: boolean } | null> {
  const { promise, resolve } = Promise.withResolvers<{ bytes: Uint8Array; isCut: boolean } | null>();
  const chunks: Buffer[] = [];
  let length = 0;
  const end = (isCut: boolean): void =>
    resolve({ bytes: Buffer.concat(chunks).subarray(0, bytesMax), isCut });
  stream.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length <= bytesMax) return;
    end(true);
    stream.destroy();
  });
  stream.on("end", () => end(false));
  stream.on("error", () => resolve(null));
  stream.end(body);
  return promise;
}

/** The text of a body: by its byte order mark, the charset of its `Content-Type`, or its own declaration; otherwise UTF-8. */
export function textOf(body: Uint8Array, contentType: string | undefined): string {
  const mark = BYTE_ORDER_MARKS.find(([, bytes]) => bytes.every((byte, at) => body[at] === byte));
  const charset = mark?.[0] ?? CHARSET.exec(contentType ?? "")?.[1] ?? declaredCharset(body);
  return decoder(charset).decode(body);
}

/** Of a page or XML that has no charset in its `Content-Type`. */
function declaredCharset(body: Uint8Array): string {
  const start = Buffer.from(body.subarray(0, DECLARATION_BYTES)).toString("latin1");
  const meta = start.search(/<meta\s/i);
  const declared =
    XML_ENCODING.exec(start)?.[1] ?? (meta < 0 ? undefined : CHARSET.exec(start.slice(meta))?.[1]);
  // What could be read so far is no UTF-16, as browsers conclude too.
  return declared === undefined || /^utf-?16/i.test(declared) ? "utf-8" : declared;
}

type Charset = ConstructorParameters<typeof TextDecoder>[0];

function decoder(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset as Charset);
  } catch {
    // Unknown names are common, such as `utf8mb4`.
    return new TextDecoder();
  }
}
