import { errorText } from "../../kernel/errors.ts";
import type { Http2Session } from "../../kernel/outbound/client.ts";
import { realTimeout } from "../../kernel/time/clock.ts";

/** Bytes before a message: whether it is compressed, and its length. */
const MESSAGE_PREFIX_BYTES = 5;
/** `grpc-status` of a call that has succeeded. */
const OK = "0";

/** A call had no response, or was rejected: it may have had its effect. */
export class GrpcFailure extends Error {}

/** A unary call: one message in each direction. */
export interface GrpcCall {
  /** `/service/method`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly message: Uint8Array;
  readonly timeoutMs: number;
}

/**
 * Resolves to the message of the response. After a failure, the caller closes the session: the response may still come.
 *
 * @throws GrpcFailure
 */
export async function callUnary(
  session: Http2Session,
  { path, headers, message, timeoutMs }: GrpcCall,
): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const fail = (reason: string): void => reject(new GrpcFailure(reason));
  const cancel = realTimeout(timeoutMs, () => fail(`no response within ${timeoutMs} ms`));
  try {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      te: "trailers",
      "content-type": "application/grpc",
      ...headers,
    });
    const chunks: Buffer[] = [];
    let status: unknown;
    const readStatus = (fields: Readonly<Record<string, unknown>>): void => {
      status = fields["grpc-status"] ?? status;
    };
    // A call that is rejected immediately has its status there.
    stream.on("response", readStatus);
    stream.on("trailers", readStatus);
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", (error) => fail(error.message));
    stream.on("close", () => {
      const received = messageIn(Buffer.concat(chunks));
      if (status === undefined) fail("the connection was closed");
      else if (status !== OK) fail(`the server has rejected the call with status ${status}`);
      else if (received === null) fail("the response is incomplete");
      else resolve(received);
    });
    stream.end(withPrefix(message));
    return await promise;
  } catch (error) {
    throw error instanceof GrpcFailure ? error : new GrpcFailure(errorText(error));
  } finally {
    cancel();
  }
}

function withPrefix(message: Uint8Array): Uint8Array {
  const prefix = Buffer.alloc(MESSAGE_PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The message of a body; null when it is incomplete. */
function messageIn(body: Buffer): Uint8Array | null {
  if (body.length < MESSAGE_PREFIX_BYTES) return null;
  const end = MESSAGE_PREFIX_BYTES + body.readUInt32BE(1);
  return body.length < end ? null : body.subarray(MESSAGE_PREFIX_BYTES, end);
}
