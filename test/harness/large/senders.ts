// Sends large webhooks from several networks, and receives what is forwarded of them. A process of its own, so that it does not
// delay those that measure. Arguments: the URL of the buckets' server. The first line of input is JSON, see `Orders`; each further
// one is confirmed, and waits until everything has been received once more.
import { connect } from "node:net";
import type { Orders, ReceivedReport, SentReport } from "./large-events.ts";

/** Bytes written at a time. Each of them begins with the number of its event, so that no two events have a piece in common. */
const WRITTEN_BYTES = 65_536;
/** How often a body is sent at most, and the pause before it is sent again. */
const ATTEMPTS_MAX = 200;
const AGAIN_MS = 250;

const [url = ""] = process.argv.slice(2);
/** Checksums of the events that were acknowledged, by their ids. */
const sent = new Map<string, number>();
/** Checksums of everything that was sent, also where no response came. */
const checksums = new Set<number>();
/** What was received since the last report, by event. */
const received = new Map<string, number>();
const target = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    let checksum = 0;
    for await (const piece of request.body ?? []) checksum = Bun.hash.crc32(piece, checksum);
    received.set(request.headers.get("x-svc-event-id") ?? "", checksum);
    tell({ progress: received.size });
    return new Response("ok");
  },
});
tell({ target: `http://127.0.0.1:${target.port}/` });

let startedAt = performance.now();
for await (const line of console) {
  if (sent.size === 0) {
    startedAt = performance.now();
    tell(await sendAll(JSON.parse(line) as Orders));
  } else {
    startedAt = performance.now();
    received.clear();
    tell({ progress: 0 });
  }
  while (![...sent.keys()].every((id) => received.has(id))) await Bun.sleep(50);
  const report: ReceivedReport = {
    receivedMs: performance.now() - startedAt,
    areEqual: [...received].every(([id, checksum]) =>
      sent.has(id) ? sent.get(id) === checksum : checksums.has(checksum),
    ),
  };
  tell(report);
}
await target.stop(true);

function tell(message: object): void {
  console.log(JSON.stringify(message));
}

async function sendAll({ buckets, events, networks, bytes, sendsAgain }: Orders): Promise<SentReport> {
  const body = Buffer.alloc(bytes);
  for (let at = 0; at + 4 <= bytes; at += 4) body.writeUInt32LE(Math.imul(at + 1, 2_654_435_761) >>> 0, at);
  const other: string[] = [];
  const attempts = sendsAgain ? ATTEMPTS_MAX : 1;
  const sendOne = async (number: number): Promise<void> => {
    const bucket = buckets[number % buckets.length] ?? "";
    const network = `198.51.${Math.floor((number % networks) / 250)}.${(number % networks) + 1}`;
    let text = "";
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      if (attempt > 1) await Bun.sleep(AGAIN_MS);
      const { response, checksum } = await send(bucket, network, body, number);
      text = response;
      const id = /"status":"accepted".*"event_id":"([^"]+)"/.exec(response)?.[1];
      if (id === undefined) continue;
      sent.set(id, checksum);
      tell({ progress: sent.size });
      return;
    }
    other.push(text);
  };
  await Promise.all(Array.from({ length: events }, (_, number) => sendOne(number)));
  return { accepted: sent.size, other: other.slice(0, 3), sentMs: performance.now() - startedAt };
}

/** The checksum counts only where there is a response, which comes after the last byte. */
function send(
  bucket: string,
  network: string,
  body: Buffer,
  number: number,
): Promise<{ readonly response: string; readonly checksum: number }> {
  const { hostname, port } = new URL(url);
  const head = [
    `POST /v1/in/${bucket} HTTP/1.1`,
    `Host: ${hostname}`,
    `X-Forwarded-For: ${network}`,
    "Connection: close",
    `Content-Length: ${body.length}`,
  ];
  return new Promise((resolve) => {
    let response = "";
    let checksum = 0;
    const socket = connect(Number(port), hostname);
    socket.on("data", (bytes) => {
      response += String(bytes);
    });
    socket.on("close", () => resolve({ response, checksum }));
    socket.on("error", (error) => {
      response += error.message;
    });
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    let at = 0;
    const more = (): void => {
      while (at < body.length && !socket.destroyed) {
        const piece = Buffer.from(body.subarray(at, at + WRITTEN_BYTES));
        if (piece.length >= 4) piece.writeUInt32LE(number);
        at += piece.length;
        checksum = Bun.hash.crc32(piece, checksum);
        if (at === body.length) checksums.add(checksum);
        if (!socket.write(piece)) return void socket.once("drain", more);
      }
    };
    more();
  });
}
