import { ApiError } from "../errors.ts";

/** An answer with a status of its own; a handler that returns a plain object answers with its route's status. */
export class Reply<T extends object = object> {
  readonly status: number;
  readonly body: T;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, body: T, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** An answer that is no JSON. */
export class TextReply {
  readonly text: string;
  readonly contentType: string;

  constructor(text: string, contentType: string) {
    this.text = text;
    this.contentType = contentType;
  }
}

/** An answer as it goes out and as it is stored under an `Idempotency-Key`. */
export interface RenderedAnswer {
  readonly status: number;
  /** JSON text, unless `headers` name another content type; empty with 204 and 304. */
  readonly text: string;
  /** Instead of the text, for files. Such an answer is never stored. */
  readonly bytes?: Uint8Array<ArrayBuffer>;
  /** Headers beyond the usual ones. */
  readonly headers: Readonly<Record<string, string>> | null;
}

/** Leaves a unit of work (or a handler) with the stored answer of an earlier request. */
export class ReplayedAnswer extends Error {
  readonly answer: RenderedAnswer;

  constructor(answer: RenderedAnswer) {
    super("answered before");
    this.answer = answer;
  }
}

/** Renders what a handler returned. */
export function renderResult(result: object, status: number): RenderedAnswer {
  if (result instanceof TextReply) {
    return { status, text: result.text, headers: { "content-type": result.contentType } };
  }
  if (!(result instanceof Reply)) return { status, text: JSON.stringify(result), headers: null };
  const text = result.status === 204 ? "" : JSON.stringify(result.body);
  return { status: result.status, text, headers: result.headers };
}

/** Renders an error: one body for both documented shapes, nested and flat. */
export function renderError(error: ApiError, requestId: string): RenderedAnswer {
  const { extras, fields, retryAfterSeconds, headers } = error.details;
  const text = JSON.stringify({
    error: { code: error.code, message: error.message },
    code: error.code,
    request_id: requestId,
    ...extras,
    ...(fields === undefined ? {} : { fields }),
  });
  const retry = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  return { status: error.status, text, headers: { ...headers, ...retry } };
}

/** What callers read of anything that is not an ApiError. */
export function internalError(): ApiError {
  return new ApiError("internal_error", "Something went wrong on our side. Nothing was charged; try again.");
}
