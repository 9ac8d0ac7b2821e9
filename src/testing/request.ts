import { Agent, request as send } from "node:http";

/** An answer of the server. */
interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/**
 * Posts JSON with a key. Not by fetch, which gives up after minutes: an advance of the clock takes as long as what
 * falls due takes. The connection is closed with the answer, so it keeps no process alive.
 *
 * @throws Error of the connection.
 */
export function post(url: string, key: string, body: unknown): Promise<Answer> {
  const text = JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
  };
  return new Promise((resolve, reject) => {
    const outgoing = send(
      url,
      { method: "POST", headers, agent: new Agent({ keepAlive: false }) },
      (incoming) => {
        let received = "";
        incoming
          .setEncoding("utf8")
          .on("data", (chunk: string) => {
            received += chunk;
          })
          .on("end", () => resolve({ status: incoming.statusCode ?? 0, body: parse(received) }))
          .on("error", reject);
      },
    );
    outgoing.on("error", reject).end(text);
  });
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { error: { message: text } };
  }
}
