import type { Connection } from "./connection.ts";
import type { Deadline } from "./deadline.ts";
import { OutboundFailure } from "./outcome.ts";
import { HeadTooLarge, ResponseReader, type WantedBody } from "./response-reader.ts";

/** Thrown when a connection that had been idle was closed before any answer: another one may do better. */
export class StaleConnection extends Error {}

/**
 * Sends one request over a connection and reads the answer. Afterwards the connection has no listener, and is closed
 * unless it can be used again.
 *
 * @throws OutboundFailure `timeout`, `reset`, `malformed`, `too-large`
 * @throws StaleConnection
 */
export async function exchange(
  connection: Connection,
  bytes: Uint8Array,
  answer: WantedBody & { readonly method: string },
  deadline: Deadline,
): Promise<ResponseReader> {
  const reader = new ResponseReader(answer.method, answer);
  try {
    await deadline.within<void>((settle) => {
      let heard = false;
      const end = (): void => {
        if (reader.end()) settle.resolve();
        else settle.reject(ended(connection, heard));
      };
      connection.listener = {
        onBytes(received) {
          heard = true;
          try {
            if (reader.push(received)) settle.resolve();
          } catch (error) {
            settle.reject(answerFailure(error));
          }
        },
        onEnd: end,
        onClosed: end,
      };
      // If it was closed since it was opened, no event will come.
      if (connection.isOpen) connection.write(bytes);
      else end();
    });
  } catch (error) {
    connection.listener = null;
    connection.destroy();
    throw error;
  }
  connection.listener = null;
  connection.uses += 1;
  if (!reader.reusable) connection.destroy();
  return reader;
}

function ended(connection: Connection, heard: boolean): Error {
  if (connection.uses > 0 && !heard) return new StaleConnection();
  return new OutboundFailure("reset", "the connection was closed before the answer was complete");
}

function answerFailure(error: unknown): OutboundFailure {
  if (error instanceof HeadTooLarge)
    return new OutboundFailure("too-large", "the answer's headers do not end");
  return new OutboundFailure("malformed", "the answer is not HTTP/1.1");
}
