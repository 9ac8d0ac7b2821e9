import { RawServer } from "../support/raw-server.ts";

/** What the stub does with a request. */
export interface StubAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or a text as it is. */
  readonly body?: unknown;
  /** Breaks the connection instead of answering, or lets the request hang. */
  readonly instead?: "cut" | "hang";
}

/** A request, as the stub has got it. */
export interface StubRequest {
  readonly method: string;
  readonly path: string;
  readonly idempotencyKey: string | null;
  readonly authorization: string | null;
  readonly body: string;
}

/** A server that answers as it is told, one answer after another, and the last one for ever. */
export interface StubServer extends Disposable {
  readonly url: string;
  readonly requests: StubRequest[];
}

/** An error of the API. */
export function apiError(
  status: number,
  code: string,
  headers: Readonly<Record<string, string>> = {},
  extras: object = {},
): StubAnswer {
  return {
    status,
    headers,
    body: { error: { code, message: `a ${code}` }, code, request_id: "req-1", ...extras },
  };
}

/** Starts a stub on a real socket. */
export async function startStub(...answers: readonly StubAnswer[]): Promise<StubServer> {
  const requests: StubRequest[] = [];
  const server = await new RawServer((socket, text) => {
    requests.push(parse(text));
    const answer = answers[Math.min(requests.length, answers.length) - 1] ?? {};
    if (answer.instead === "cut") socket.destroy();
    else if (answer.instead === undefined) socket.end(render(answer));
  }).start();
  return { url: `http://127.0.0.1:${server.port}`, requests, [Symbol.dispose]: () => server.stop() };
}

function render({ status = 200, headers = {}, body = { pong: true } }: StubAnswer): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const all = {
    "Content-Type": "application/json",
    "X-Request-Id": "req-1",
    Connection: "close",
    "Content-Length": String(Buffer.byteLength(text)),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} Stub`, ...lines, "", text].join("\r\n");
}

function parse(text: string): StubRequest {
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const [start = "", ...lines] = head.split("\r\n");
  const [method = "", path = ""] = start.split(" ");
  const headers = new Map(
    lines.map((line) => line.split(": ") as [string, string]).map(([k, v]) => [k.toLowerCase(), v]),
  );
  return {
    method,
    path,
    body,
    idempotencyKey: headers.get("idempotency-key") ?? null,
    authorization: headers.get("authorization") ?? null,
  };
}
