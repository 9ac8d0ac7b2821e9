// Sends large webhooks from several networks, and receives what is forwarded of them. A process of its own, so that it does not
// delay those that measure. Arguments: the URL of the buckets' server; the input is one line of JSON, see `Orders`.
import { createHash } from "node:crypto";
import { connect } from "node:net";
import type { ForwardedReport, Orders, SentReport } from "./large-events.ts";

const [url = ""] = process.argv.slice(2);
const hashes: string[] = [];
const target = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const hash = createHash("sha256");
    for await (const piece of request.body ?? []) hash.update(piece);
    hashes.push(hash.digest("hex"));
    return new Response("ok");
  },
});
console.log(JSON.stringify({ target: `http://127.0.0.1:${target.port}/` }));

for await (const line of console) {
  const { buckets, events, networks, bytes, forwarded }: Orders = JSON.parse(line);
  const body = Buffer.alloc(bytes);
  for (let at = 0; at + 4 <= bytes; at += 4) body.writeUInt32LE(Math.imul(at + 1, 2_654_435_761) >>> 0, at);
  const startedAt = performance.now();
  const statuses = await Promise.all(
    Array.from({ length: events }, (_, at) => {
      const bucket = buckets[at % buckets.length] ?? "";
      return send(bucket, `198.51.${Math.floor((at % networks) / 250)}.${(at % networks) + 1}`, body);
    }),
  );
  const sent: SentReport = {
    accepted: statuses.filter((text) => text.includes('"accepted"')).length,
    other: statuses.filter((text) => !text.includes('"accepted"')).slice(0, 3),
    sentMs: performance.now() - startedAt,
  };
  console.log(JSON.stringify(sent));
  while (hashes.length < forwarded) await Bun.sleep(50);
  const report: ForwardedReport = {
    forwardedMs: performance.now() - startedAt,
    forwardedEqual: hashes.every((hash) => hash === createHash("sha256").update(body).digest("hex")),
  };
  console.log(JSON.stringify(report));
  break;
}
await target.stop(true);

function send(bucket: string, network: string, body: Uint8Array): Promise<string> {
  const { hostname, port } = new URL(url);
  const head = [
    `POST /v1/in/${bucket} HTTP/1.1`,
    `Host: ${hostname}`,
    `X-Forwarded-For: ${network}`,
    "Connection: close",
    `Content-Length: ${body.length}`,
  ];
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(port), hostname);
    socket.on("data", (bytes) => {
      text += String(bytes);
    });
    socket.on("close", () => resolve(text));
    socket.on("error", (error) => {
      text += error.message;
    });
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    let at = 0;
    const more = (): void => {
      while (at < body.length) {
        const piece = body.subarray(at, at + 65_536);
        at += piece.length;
        if (!socket.write(piece)) return void socket.once("drain", more);
      }
    };
    more();
  });
}
