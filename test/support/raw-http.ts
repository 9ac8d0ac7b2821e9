import { connect } from "node:net";
import type { Answer } from "./client.ts";

/** Longest wait for an answer: a server that says nothing for so long, on a busy machine too, says nothing at all. */
export const RESPONSE_TIMEOUT_MS = 30_000;

/**
 * Sends exact bytes on a connection of their own and reads one answer, for requests that no client library
 * would write: targets that are not normalized, odd methods, bodies in pieces. Null when none came in time.
 */
export async function sendRaw(
  url: string,
  pieces: readonly (string | Uint8Array)[],
  timeoutMs: number = RESPONSE_TIMEOUT_MS,
): Promise<Answer | null> {
  const { hostname, port } = new URL(url);
  const headOnly = String(pieces[0]).startsWith("HEAD ");
  return new Promise((resolve) => {
    let received = Buffer.alloc(0);
    const socket = connect(Number(port), hostname);
    const timer = setTimeout(() => finish(null), timeoutMs);
    const finish = (answer: Answer | null): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    socket.on("connect", () => {
      for (const piece of pieces) socket.write(piece);
    });
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, Buffer.from(chunk)]);
      const answer = readAnswer(received, headOnly);
      if (answer !== null) finish(answer);
    });
    socket.on("error", () => finish(null));
    socket.on("close", () => finish(null));
  });
}

/** An answer, when all of it is there: the server says how long a small body is, and sends a large one in chunks. */
function readAnswer(bytes: Buffer, headOnly: boolean): Answer | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const [statusLine = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const status = Number(statusLine.split(" ")[1]);
  const headers = new Headers();
  for (const line of lines)
    headers.append(line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1));
  const rest = bytes.subarray(end + 4);
  // A stream of events has no end.
  const isEndless = headers.get("content-type")?.startsWith("text/event-stream") === true;
  const hasChunks = !headOnly && !isEndless && headers.get("transfer-encoding") === "chunked";
  const length = headOnly || status === 204 ? 0 : Number(headers.get("content-length") ?? 0);
  const body = hasChunks ? joinedChunks(rest) : rest.length < length ? null : rest.subarray(0, length);
  if (body === null) return null;
  const text = body.toString("utf8");
  return { status, headers, text, body: parsed(text) };
}

/** The content of a body in chunks; null while it is not complete. */
function joinedChunks(bytes: Buffer): Buffer | null {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return null;
    const size = Number.parseInt(bytes.toString("latin1", at, line), 16);
    if (size === 0) return Buffer.concat(chunks);
    const next = line + 2 + size + 2;
    if (bytes.length < next) return null;
    chunks.push(bytes.subarray(line + 2, line + 2 + size));
    at = next;
  }
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
