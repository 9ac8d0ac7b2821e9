import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { RenderedResponse } from "./response.ts";

/** Smaller bodies are sent as they are: compressed, they would not arrive sooner. */
export const COMPRESSED_BYTES_MIN = 1_024;
/** Larger bodies are compressed on another thread: 64 KiB take a millisecond, 2 MB would hold up the event loop. */
const INLINE_BYTES_MAX = 64 * 1024;
/** The fastest level: most of the gain for a tenth of the time of the highest one. */
const LEVEL = 1;

/** Compresses a body with gzip; a promise for a large one. */
export function gzipped(
  bytes: Uint8Array<ArrayBuffer>,
): Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>> {
  if (bytes.length <= INLINE_BYTES_MAX) return Bun.gzipSync(bytes, { level: LEVEL });
  return gzippedOnThread(bytes);
}

async function gzippedOnThread(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await promisify(gzip)(bytes, { level: LEVEL }));
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

/**
 * The response compressed, if its client accepts that and it is worth it; otherwise the same. Streams, and bodies that are
 * compressed already, stay as they are. Responses with secrets must not be passed: next to input that is repeated in them,
 * their compressed size reveals the secret.
 */
export function compressed(
  response: RenderedResponse,
  request: Request,
): RenderedResponse | Promise<RenderedResponse> {
  const { status, text, bytes, headers } = response;
  if (status === 204 || status === 304) return response;
  const size = bytes === undefined ? text.length : bytes instanceof Uint8Array ? bytes.length : 0;
  if (size < COMPRESSED_BYTES_MIN) return response;
  if (headers?.["content-encoding"] !== undefined || headers?.["vary"] !== undefined) return response;
  const varied = { ...headers, vary: "Accept-Encoding" };
  if (!accepts(request.headers.get("accept-encoding"), "gzip")) return { ...response, headers: varied };
  const etag = headers?.["etag"];
  const sent = {
    ...varied,
    "content-encoding": "gzip",
    // The same content in other bytes: RFC 9110, section 8.8.1.
    ...(etag === undefined || etag.startsWith("W/") ? {} : { etag: `W/${etag}` }),
  };
  const body = gzipped(bytes instanceof Uint8Array ? bytes : new TextEncoder().encode(text));
  const toSend = (gzip: Uint8Array<ArrayBuffer>): RenderedResponse => ({
    ...response,
    bytes: gzip,
    headers: sent,
  });
  return body instanceof Promise ? body.then(toSend) : toSend(body);
}
