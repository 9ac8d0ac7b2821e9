import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that a sink has received. */
export interface ReceivedWebhook {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The exact body, as text: what signatures are computed over. */
  readonly body: string;
}

/** A receiver of webhooks in this process, on a loopback port of its own. */
export interface WebhookSink {
  /** Where to have webhooks sent; any path below it arrives here too. */
  readonly url: string;
  /** What has arrived, oldest first. */
  readonly received: readonly ReceivedWebhook[];
  /** What it answers from now on; 200 at first. */
  status: number;
}

/** A sink, and how to close it. */
export interface OpenSink {
  readonly sink: WebhookSink;
  close(): Promise<void>;
}

/** Opens a sink. It keeps no process alive. */
export async function openSink(): Promise<OpenSink> {
  const received: ReceivedWebhook[] = [];
  const server = createServer((request, response) => {
    void read(request).then((body) => {
      received.push({
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        body,
      });
      response.writeHead(sink.status, { connection: "close" }).end();
    });
  });
  const port = await listen(server);
  server.unref();
  const sink: WebhookSink = { url: `http://127.0.0.1:${port}`, received, status: 200 };
  return { sink, close: () => close(server) };
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
