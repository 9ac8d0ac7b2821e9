import { hash } from "node:crypto";
import { invalidField } from "../../kernel/errors.ts";
import { findInexactness, pathText } from "../../verify/exact-json.ts";

/** A log that may be signed: what its text says is what was sent. */
export interface LogEntry {
  readonly log: Readonly<Record<string, unknown>>;
  /** `JSON.stringify(log)`: what is hashed, kept and given back. */
  readonly text: string;
  /** The raw SHA-256 of the text's UTF-8. */
  readonly contentHash: Uint8Array;
}

/**
 * Takes the log out of a request's body. A notary signs nothing other than what it was given.
 *
 * @throws ApiError `validation_error` for a number that JSON readers cannot carry exactly, or a name that stands twice in
 *   one object.
 */
export function readLogEntry(body: { log: Record<string, unknown> }, bodyText: string): LogEntry {
  const inexact = findInexactness(bodyText, body, "log");
  if (inexact !== null) throw invalidField(pathText(inexact.path), inexact.problem);
  const text = JSON.stringify(body.log);
  return { log: body.log, text, contentHash: contentHashOf(text) };
}

/** The raw SHA-256 of a log's text. */
export function contentHashOf(logText: string): Uint8Array {
  return hash("sha256", logText, "buffer");
}
