import { findExcess, JSON_LEVELS_MAX, JSON_VALUES_MAX } from "../../json-text.ts";
import { ApiError, invalidField } from "../errors.ts";

/** Largest request body. Catch has its own rule for the same size. */
export const BODY_BYTES_MAX = 1024 * 1024;
/** Largest body where nothing large is to be said: parsing it takes a fraction of a millisecond. */
export const SMALL_BODY_BYTES_MAX = 64 * 1024;

/** What a body may be. */
export interface BodyBounds {
  readonly bytesMax: number;
  /** Levels of objects and arrays, the body itself included. */
  readonly levelsMax: number;
}

/** The bounds of most bodies. */
export const SMALL_BODY: BodyBounds = { bytesMax: SMALL_BODY_BYTES_MAX, levelsMax: JSON_LEVELS_MAX };

/** The bounds of bodies that carry the user's own data. `levelsAround` levels stand around data of {@link JSON_LEVELS_MAX}. */
export function largeBody(levelsAround = 0): BodyBounds {
  return { bytesMax: BODY_BYTES_MAX, levelsMax: JSON_LEVELS_MAX + levelsAround };
}

/** Bytes that a body without a length is given room for at first. */
const CHUNKED_ROOM_BYTES = 16 * 1024;

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The exact bytes of a request's body, at most `bytesMax` of them.
 * @throws ApiError `request_too_large` as soon as the size is known or passed: nothing more is read then.
 */
export function readBody(request: Request, bytesMax: number): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > bytesMax) return Promise.reject(tooLarge(bytesMax));
    return received(request.bytes());
  }
  if (request.body === null) return Promise.resolve(new Uint8Array());
  return readChunked(request.body, bytesMax);
}

/** Chunks are copied together as they come: kept one by one, a megabyte in chunks of a byte would take a hundred. */
async function readChunked(stream: ReadableStream<Uint8Array>, bytesMax: number): Promise<Uint8Array> {
  let room = new Uint8Array(CHUNKED_ROOM_BYTES);
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await received(reader.read());
    if (done) return room.subarray(0, size);
    const total = size + value.length;
    if (total > bytesMax) {
      reader.cancel().catch(() => {});
      throw tooLarge(bytesMax);
    }
    if (total > room.length) {
      const more = new Uint8Array(Math.min(bytesMax, Math.max(total, 2 * room.length)));
      more.set(room.subarray(0, size));
      room = more;
    }
    room.set(value, size);
    size = total;
  }
}

/** A client that goes away in the middle of its body gets no answer; for the log it is a bad request, not a defect. */
function received<T>(reading: Promise<T>): Promise<T> {
  return reading.catch(() => {
    throw invalidField("body", "ended before it was complete");
  });
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
 * Checks the text of a JSON body before it is parsed.
 * @throws ApiError `validation_error` when it is nested too deeply, or has more than {@link JSON_VALUES_MAX} values.
 */
export function assertWithinBounds(text: string, { levelsMax }: BodyBounds): void {
  const excess = findExcess(text, levelsMax);
  if (excess === "levels") throw invalidField("body", `is nested deeper than ${levelsMax} levels`);
  if (excess === "values") throw invalidField("body", `has more than ${JSON_VALUES_MAX} values`);
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

function tooLarge(bytesMax: number): ApiError {
  return new ApiError("request_too_large", `The body is larger than ${bytesMax} bytes.`, {
    headers: { connection: "close" },
  });
}
