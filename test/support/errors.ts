import { expect } from "bun:test";
import { type ErrorCode, errorDocs, errorMeaning } from "../../src/kernel/errors.ts";
import type { Answer } from "./client.ts";

/** A UUIDv7, as `X-Request-Id` carries it. */
export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Codes whose responses say which fields are wrong. */
const NAMES_FIELDS: ReadonlySet<string> = new Set(["validation_error", "gate.rule_invalid"]);

/** What no response may show: where the code lies, what called what, how the data is stored. */
const INNER_WORKINGS = /\bat \S+ \(|\.ts:\d+|node_modules|\/src\/|SQLite|SQLITE|TypeError|undefined/;

/** The body of an error, in both documented shapes at once. */
export interface ErrorBody {
  readonly error: { readonly code: ErrorCode; readonly message: string; readonly docs?: string };
  readonly code: ErrorCode;
  readonly request_id: string;
  readonly fields?: Readonly<Record<string, readonly string[]>>;
}

/** Asserts that an response is an error of this code, whole and in the documented shape. Returns its body. */
export function expectError(answer: Answer, code: string): ErrorBody {
  const body = answer.body as unknown as ErrorBody;
  expect({ status: answer.status, code: body.code }, answer.text).toEqual({
    status: errorMeaning(code as ErrorCode)[0],
    code: code as ErrorCode,
  });
  expectErrorShape(answer);
  return body;
}

/** Asserts the documented shape of an error, whichever it is. */
export function expectErrorShape(answer: Answer): void {
  const body = answer.body as unknown as ErrorBody;
  expect(answer.headers.get("content-type")).toBe("application/json");
  const { code: _code, message: _message, docs, ...rest } = body.error;
  expect(rest).toEqual({});
  // The client of a reverse proxy cannot read this server's pages.
  if (docs !== undefined) expect(docs).toBe(errorDocs(body.code));
  expect(body.code).toBe(body.error.code);
  expect(errorMeaning(body.code)[0]).toBe(answer.status as never);
  expect(body.error.message).toMatch(/^\S.{10,}[^\s]$/);
  expect(answer.text).not.toMatch(INNER_WORKINGS);
  expect(body.request_id).toMatch(UUID_V7);
  if (answer.headers.get("idempotent-replayed") === null) {
    expect(body.request_id).toBe(answer.headers.get("x-request-id") ?? "");
  }
  expect(body.fields !== undefined).toBe(NAMES_FIELDS.has(String(body.code)));
  for (const messages of Object.values(body.fields ?? {})) {
    expect(messages.length).toBeGreaterThan(0);
    for (const message of messages) expect(message).toMatch(/^\S.*\S$/);
  }
}
