import { ApiError, invalidField } from "../errors.ts";

/** Largest request body. Catch has its own rule for the same size. */
export const BODY_BYTES_MAX = 1024 * 1024;

const UTF8 = new TextDecoder("utf-8", { fatal: true });
const EMPTY = new Uint8Array(0);

/**
 * The exact bytes of a request's body, at most {@link BODY_BYTES_MAX} of them.
 * @throws ApiError `request_too_large` as soon as the size is known or passed: nothing more is read then.
 */
export async function readBody(request: Request): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > BODY_BYTES_MAX) throw tooLarge();
    return new Uint8Array(await received(request.arrayBuffer()));
  }
  if (request.body === null) return EMPTY;
  return readChunked(request.body);
}

async function readChunked(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await received(reader.read());
    if (done) break;
    size += value.length;
    if (size > BODY_BYTES_MAX) {
      reader.cancel().catch(() => {});
      throw tooLarge();
    }
    chunks.push(value);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : new Uint8Array(Buffer.concat(chunks));
}

/** A client that goes away in the middle of its body gets no answer; for the log it is a bad request, not a defect. */
async function received<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch {
    throw invalidField("body", "ended before it was complete");
  }
}

/**
 * The text of a body.
 * @throws ApiError `validation_error` when the bytes are not UTF-8.
 */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw invalidField("body", "must be UTF-8 text");
  }
}

/**
 * The JSON object in a body. No body counts as an empty object, so that its required fields are named.
 * @throws ApiError `validation_error` when it is not JSON, or not an object.
 */
export function parseObject(text: string): Record<string, unknown> {
  if (text === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidField("body", "is not JSON: it must be one JSON object");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidField("body", "must be a JSON object");
  }
  return value as Record<string, unknown>;
}

function tooLarge(): ApiError {
  return new ApiError("request_too_large", `The body is larger than ${BODY_BYTES_MAX} bytes.`, {
    headers: { connection: "close" },
  });
}
