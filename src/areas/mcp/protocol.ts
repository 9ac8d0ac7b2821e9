/** The revision of the protocol that this server speaks, without sessions. */
export const REVISION = "2026-07-28";
/** Earlier revisions, with `initialize`, whose messages about tools are the same. The newest first. */
export const EARLIER_REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26"];

/** Error codes of JSON-RPC, and of the protocol from -32020. */
export const CODES = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;

const VERSION_FIELD = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_FIELD = "io.modelcontextprotocol/clientCapabilities";

/** Id of a message. */
export type MessageId = string | number;

/** An error of the protocol, with the HTTP status of its response. */
export class ProtocolError extends Error {
  constructor(
    readonly status: 200 | 400 | 404,
    readonly code: number,
    message: string,
    readonly data?: object,
  ) {
    super(message);
  }
}

/** A message of a client. */
export interface Message {
  /** Null: a notification. */
  readonly id: MessageId | null;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The whole body. */
  readonly json: { readonly text: string; readonly value: unknown };
}

/** Parses a message. @throws ProtocolError */
export function readMessage(text: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ProtocolError(400, CODES.parse, "The body is not JSON. Send one JSON-RPC message.");
  }
  if (Array.isArray(value))
    throw invalid("Batches are not supported. Send each message as a request of its own.");
  if (!isObject(value) || value["jsonrpc"] !== "2.0" || typeof value["method"] !== "string")
    throw invalid('The body is not a JSON-RPC 2.0 request: "jsonrpc" or "method" is missing or wrong.');
  const { id = null, method } = value;
  // Some clients write what they leave out as null.
  const params = value["params"] ?? {};
  // Any other number would come back as another one, or as null.
  if (Object.hasOwn(value, "id") && typeof id !== "string" && !Number.isSafeInteger(id))
    throw invalid('"id" must be a string or an integer from -(2^53 - 1) to 2^53 - 1.');
  if (!isObject(params)) throw invalid('"params" must be an object.');
  return {
    id: id as MessageId | null,
    method: method as string,
    params,
    json: { text, value },
  };
}

/**
 * Checks the headers of a request against its message. Returns whether it is of an earlier revision.
 * @throws ProtocolError
 */
export function isEarlier({ method, params }: Message, headers: Headers): boolean {
  // Proxies pass a header on that has no value.
  const version = headers.get("mcp-protocol-version") || null;
  const meta = isObject(params["_meta"]) ? params["_meta"] : {};
  const named = meta[VERSION_FIELD];
  if (named === undefined) {
    // Without a version, it is of 2025-03-26, which had no such header.
    if (version === null || EARLIER_REVISIONS.includes(version)) return true;
  }
  if (version === null) throw mismatch("The header MCP-Protocol-Version is missing.");
  if (named !== undefined && named !== version)
    throw mismatch(`The header MCP-Protocol-Version is not the version in ${VERSION_FIELD}.`);
  if (version !== REVISION) {
    const data = {
      supported: [REVISION, ...EARLIER_REVISIONS],
      requested: version.slice(0, ECHO_MAX),
    };
    throw new ProtocolError(400, CODES.unsupportedVersion, "Unsupported protocol version.", data);
  }
  if (named === undefined || !isObject(meta[CAPABILITIES_FIELD]))
    throw new ProtocolError(
      400,
      CODES.invalidParams,
      `params._meta must have ${VERSION_FIELD} and ${CAPABILITIES_FIELD}.`,
    );
  if (headers.get("mcp-method") !== method)
    throw mismatch('The header Mcp-Method is missing, or is not the "method" of the body.');
  if (method === "tools/call" && decoded(headers.get("mcp-name")) !== params["name"])
    throw mismatch('The header Mcp-Name is missing, or is not "params.name" of the body.');
  return false;
}

/** Longest part of a header that an error repeats. */
const ECHO_MAX = 100;

const ENCODED_START = "=?base64?";
const ENCODED_END = "?=";

/** The value of a header, which clients encode as base64 if it is not plain ASCII. */
function decoded(value: string | null): string | null {
  if (value === null || !value.startsWith(ENCODED_START) || !value.endsWith(ENCODED_END)) return value;
  return Buffer.from(value.slice(ENCODED_START.length, -ENCODED_END.length), "base64").toString();
}

/** Whether a JSON value is an object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(message: string): ProtocolError {
  return new ProtocolError(400, CODES.invalidRequest, message);
}

function mismatch(message: string): ProtocolError {
  return new ProtocolError(400, CODES.headerMismatch, `Header mismatch: ${message}`);
}
