import {
  findExactNumber,
  findExcess,
  type Inexactness,
  JSON_VALUES_MAX,
  withExactNumbers,
} from "../../../json-text.ts";
import { ApiError, invalidField, rejectionBy } from "../../errors.ts";
import { realDelay } from "../../time/clock.ts";
import type { BodyLimits } from "../operation.ts";
import { type BodyInProgress, type LargeBodySlot, readingError } from "./bodies-in-progress.ts";
import { LargeBody } from "./large-body.ts";
import { assertNoTrailers, isChunked } from "./trailers.ts";

/**
 * How much of a body that is too large is read and discarded, so that its sender gets to read the response: more than the largest
 * webhooks of senders that have a limit.
 */
export const DISCARDED_BYTES_MAX = 32 * 1024 * 1024;
/** How long that may take. */
const DISCARDING_MS_MAX = 5_000;

/** Initial buffer of a body without a length, in bytes. */
const CHUNKED_ROOM_BYTES = 16 * 1024;

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** A body that is to be read. */
export interface IncomingBody {
  /** Its `Content-Length`; null without one. */
  readonly declared: string | null;
  readonly bytesMax: number;
  /** Counts its bytes while they arrive; null for a body that is complete. */
  readonly progress: BodyInProgress | null;
}

/** How a body is read that is larger than `bytesMax` of its {@link IncomingBody}: in pieces. */
export interface LargerBody<T> {
  readonly bytesMax: number;
  readonly take: (body: LargeBody) => Promise<T>;
  /** @throws ApiError `service_unavailable` when too many large bodies are being received. */
  readonly begin: () => LargeBodySlot;
}

/**
 * Opens a body when it is first read: until then the runtime holds less of it in memory, and many large ones wait for their turn.
 */
class LateReader implements BodyReader {
  private opened: BodyReader | null = null;

  constructor(private readonly request: Request) {}

  read(): ReturnType<BodyReader["read"]> {
    return this.reader.read();
  }

  cancel(): Promise<void> {
    return this.reader.cancel();
  }

  private get reader(): BodyReader {
    if (this.opened !== null) return this.opened;
    const { body } = this.request;
    if (body === null) throw readingError(null);
    this.opened = body.getReader();
    return this.opened;
  }
}

/** The start of a body that turned out to be large, and where the rest comes from. */
class Oversized {
  constructor(
    readonly start: Uint8Array,
    readonly reader: BodyReader,
  ) {}
}

/**
 * Reads the exact bytes of a request's body, at most `bytesMax` of them, and returns the result of `take` for them; of a larger one
 * that of `larger`.
 *
 * @throws ApiError `request_too_large` when there are more, `timeout` when they take too long, `service_unavailable` when
 *   too many bodies are being received; what `take` throws.
 */
export function readBody<T>(
  request: Request,
  body: IncomingBody,
  take: (bytes: Uint8Array) => T | Promise<T>,
  larger: LargerBody<T> | null = null,
): Promise<T> {
  const reading = bytesOf(request, body, larger);
  const taken = (read: Uint8Array | Oversized): T | Promise<T> =>
    read instanceof Oversized ? takeLarge(request, body, read, larger) : take(read);
  if (body.progress !== null) return body.progress.within(reading, taken);
  return reading.then(taken, (error) => {
    throw readingError(error);
  });
}

function bytesOf<T>(
  request: Request,
  { declared, bytesMax, progress }: IncomingBody,
  larger: LargerBody<T> | null,
): Promise<Uint8Array | Oversized> {
  if (declared !== null) {
    if (Number(declared) > bytesMax) {
      const most = larger?.bytesMax ?? bytesMax;
      if (Number(declared) > most) return rejectLarge(request, Number(declared), most);
      return Promise.resolve(new Oversized(new Uint8Array(), new LateReader(request)));
    }
    const excess = rejectionBy(() => progress?.grow(Number(declared)));
    return excess === null ? request.bytes() : Promise.reject(excess);
  }
  if (request.body === null) return Promise.resolve(new Uint8Array());
  const reading = readChunked(request.body.getReader(), bytesMax, progress, larger !== null);
  if (!isChunked(request)) return reading;
  return reading.then((read) =>
    read instanceof Oversized ? read : assertNoTrailers(request).then(() => read),
  );
}

async function takeLarge<T>(
  request: Request,
  { declared }: IncomingBody,
  { start, reader }: Oversized,
  larger: LargerBody<T> | null,
): Promise<T> {
  if (larger === null) throw new Error("a large body is read by an endpoint that takes none");
  const { bytesMax, begin } = larger;
  const size = declared === null ? null : Number(declared);
  const tooMuch = async (error: ApiError): Promise<ApiError> => {
    if (size === null || size <= DISCARDED_BYTES_MAX) await discardRest(reader);
    return error;
  };
  let slot: LargeBodySlot;
  try {
    slot = begin();
  } catch (error) {
    throw error instanceof ApiError ? await tooMuch(error) : error;
  }
  const source = {
    start,
    read: () => reader.read(),
    ended: () => (isChunked(request) ? assertNoTrailers(request) : Promise.resolve()),
    tooLarge: () => tooMuch(tooLarge(bytesMax)),
    cancel: () => void Promise.try(() => reader.cancel()).catch(() => undefined),
  };
  const body = new LargeBody(source, slot, bytesMax, size);
  try {
    return await larger.take(body);
  } finally {
    body.close();
  }
}

async function rejectLarge(request: Request, declared: number, bytesMax: number): Promise<never> {
  if (declared <= DISCARDED_BYTES_MAX && request.body !== null) await discardRest(request.body.getReader());
  throw tooLarge(bytesMax);
}

type BodyReader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

/** Chunks are copied together as they come: kept one by one, a megabyte in chunks of a byte would take a hundred. */
async function readChunked(
  reader: BodyReader,
  bytesMax: number,
  progress: BodyInProgress | null,
  mayBeLarger: boolean,
): Promise<Uint8Array | Oversized> {
  progress?.grow(CHUNKED_ROOM_BYTES);
  let room = new Uint8Array(CHUNKED_ROOM_BYTES);
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return room.subarray(0, size);
    const total = size + value.length;
    if (total > bytesMax) {
      if (mayBeLarger) return new Oversized(Buffer.concat([room.subarray(0, size), value]), reader);
      await discardRest(reader);
      throw tooLarge(bytesMax);
    }
    if (total > room.length) {
      const capacity = Math.min(bytesMax, Math.max(total, 2 * room.length));
      progress?.grow(capacity - room.length);
      const more = new Uint8Array(capacity);
      more.set(room.subarray(0, size));
      room = more;
    }
    room.set(value, size);
    size = total;
  }
}

/**
 * Reads what is left of a body that is too large, and forgets it: a client that is still sending when the connection is
 * closed may never read its 413. It ends at {@link DISCARDED_BYTES_MAX} and {@link DISCARDING_MS_MAX}.
 */
async function discardRest(reader: BodyReader): Promise<void> {
  const overdue = realDelay(DISCARDING_MS_MAX).then(() => ({ done: true, value: undefined }) as const);
  let discarded = 0;
  for (;;) {
    const next = reader.read().catch(() => ({ done: true, value: undefined }) as const);
    const { done, value } = await Promise.race([next, overdue]);
    if (done) break;
    discarded += value.length;
    if (discarded > DISCARDED_BYTES_MAX) break;
  }
  reader.cancel().catch(() => {});
}

/**
 * The text of a body.
 * @throws ApiError `validation_error` when the bytes are not UTF-8.
 */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw invalidField("body", "must be UTF-8 text, not compressed");
  }
}

/**
 * Checks the text of a JSON body before it is parsed.
 * @throws ApiError `validation_error` when it is nested too deeply, or has more than {@link JSON_VALUES_MAX} values.
 */
export function assertWithinLimits(text: string, { levelsMax }: BodyLimits): void {
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

/**
 * A member of a body with all digits of its numbers, as `parseJson` reads it.
 * @throws ApiError `validation_error` that names it, for too many numbers that a double does not hold, or too many digits.
 */
export function exactMember<Name extends string, Body extends { readonly [name in Name]?: unknown }>(
  name: Name,
  body: Body,
  bodyText: string,
): Body[Name] {
  try {
    return withExactNumbers(body, bodyText)[name];
  } catch (error) {
    throw error instanceof RangeError ? invalidField(name, TOO_LONG) : error;
  }
}

const TOO_LONG = "has numbers that are too long: send them as strings";

/**
 * The path of the first number in some members of a body that a double does not hold; null if there is none. What is stored of
 * such a number, or compared with it, would have other digits.
 */
export function exactNumberIn(bodyText: string, members: readonly string[]): Inexactness["path"] | null {
  try {
    const body = withExactNumbers<Record<string, unknown> | null>(null, bodyText) ?? {};
    return findExactNumber(Object.fromEntries(members.map((name) => [name, body[name]])));
  } catch (error) {
    // Too many of them, or too long.
    if (error instanceof RangeError) return ["body"];
    throw error;
  }
}

function tooLarge(bytesMax: number): ApiError {
  return new ApiError("request_too_large", `The body is larger than ${bytesMax} bytes.`, {
    headers: { connection: "close" },
  });
}
