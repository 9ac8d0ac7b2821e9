import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A request that a sink has received. */
export interface ReceivedWebhook {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The exact body as text: the input of signatures. */
  readonly body: string;
}

/** A webhook receiver in this process, on its own loopback port. */
export interface WebhookSink {
  /** URL for webhooks; any path below it is received too. */
  readonly url: string;
  /** Received requests, oldest first. */
  readonly received: readonly ReceivedWebhook[];
  /** Sets the response status from now on, 200 to 599; initially 200. @throws RangeError for another one. */
  status: number;
}

/** A sink and its close function. */
export interface OpenSink {
  readonly sink: WebhookSink;
  close(): Promise<void>;
}

/** Opens a sink. It keeps no process alive. */
export async function openSink(): Promise<OpenSink> {
  const received: ReceivedWebhook[] = [];
  const server = createServer((request, response) => {
    text(request)
      .then((body) => {
        const { method = "", url = "", headers } = request;
        received.push({ method, path: url, headers, body });
        response.writeHead(sink.status, { connection: "close" }).end();
      })
      // An incomplete request is ignored and must not end the test's process.
      .catch(() => response.destroy());
  });
  const port = await listen(server);
  server.unref();
  let current = 200;
  const sink: WebhookSink = {
    url: `http://127.0.0.1:${port}`,
    received,
    get status() {
      return current;
    },
    set status(status) {
      if (!Number.isInteger(status) || status < 200 || status > 599)
        throw new RangeError(`status must be an HTTP status from 200 to 599, not ${String(status)}`);
      current = status;
    },
  };
  return { sink, close: () => close(server) };
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
