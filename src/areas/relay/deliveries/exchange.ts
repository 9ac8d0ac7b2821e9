import { SECRET } from "../../../kernel/audit/redaction.ts";
import { RESPONSE_BYTES_MAX } from "../../../kernel/outbound/attempt.ts";
import { type RequestHeaders, withDefaults, withSecretsCovered } from "../../../kernel/outbound/headers.ts";
import type { OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import { SECRET_NAMES } from "../../../kernel/secrets/secret-names.ts";
import type { RelayAttempt } from "./schema.ts";
import type { AttemptRow, Exchange } from "./store.ts";

/** Bytes of a response's headers that are stored, as JSON. */
export const STORED_HEADER_BYTES_MAX = 4 * 1024;
/** Bytes of a response's body that are stored. */
export const STORED_BODY_BYTES_MAX = 4 * 1024;
/** Bytes of a response's body that a callback contains: all that are read. */
export const CALLBACK_BODY_BYTES_MAX = RESPONSE_BYTES_MAX;

/** The record of an attempt: the request without its body, which the delivery has, and the start of the response. */
export function exchangeOf(
  custom: RequestHeaders,
  serverHeaders: RequestHeaders,
  outcome: OutboundOutcome,
): Exchange {
  const request_headers = JSON.stringify(withDefaults(serverHeaders, withSecretsCovered(custom)));
  if (!outcome.answered) {
    return { request_headers, response_headers: null, response_body: null, remote_address: null };
  }
  const { headers, body, address } = outcome;
  return {
    request_headers,
    response_headers: storedHeaders(headers),
    response_body: body.length === 0 ? null : body.subarray(0, STORED_BODY_BYTES_MAX),
    remote_address: address,
  };
}

/** The headers of a response as JSON, without secrets. */
export function storedHeaders(headers: RequestHeaders): string {
  const stored: Record<string, string> = {};
  // The braces.
  let bytes = 2;
  for (const [name, sent] of Object.entries(headers)) {
    const value = SECRET_NAMES.has(name) ? SECRET : sent;
    // Name, colon and comma included.
    bytes += Buffer.byteLength(JSON.stringify({ [name]: value }));
    if (bytes > STORED_HEADER_BYTES_MAX) break;
    stored[name] = value;
  }
  return JSON.stringify(stored);
}

/** An attempt as the API shows it. */
export function attemptView(row: AttemptRow): RelayAttempt {
  const { request_headers, response_headers, response_body, remote_address, ...attempt } = row;
  return {
    ...attempt,
    request_headers: headersIn(request_headers),
    response_headers: headersIn(response_headers),
    ...(response_headers === null ? { response_body: null } : bodyView(response_body ?? new Uint8Array())),
    remote_address,
  };
}

function headersIn(text: string | null): Record<string, string> | null {
  return text === null ? null : JSON.parse(text);
}

function bodyView(bytes: Uint8Array): Pick<RelayAttempt, "response_body" | "response_body_base64"> {
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    // The cut may split a character: decoding as a stream omits the rest of it.
    return { response_body: decoder.decode(bytes, { stream: bytes.length === STORED_BODY_BYTES_MAX }) };
  } catch {
    return { response_body: null, response_body_base64: Buffer.from(bytes).toString("base64") };
  }
}
