import { afterEach, expect, test } from "bun:test";
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { EtcdPut } from "../../src/cluster/engines/etcd-put.ts";
import { callUnary, GrpcFailure } from "../../src/cluster/engines/grpc.ts";
import { OutboundClient } from "../../src/kernel/outbound/client.ts";

const LONG_MS = 60_000;
const SHORT_MS = 20;
const MIB = 1024 * 1024;
const MESSAGE = Buffer.from("request");
const OK = { "grpc-status": "0" };

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server of gRPC whose calls a test handles, in the order of the calls. */
class Peer {
  url = "";
  readonly sessions: ServerHttp2Session[] = [];
  readonly requests: { headers: Readonly<Record<string, unknown>>; body: Buffer }[] = [];

  async start(respond: (stream: ServerHttp2Stream, call: number) => void): Promise<this> {
    const server = createServer();
    server.on("session", (session) => {
      this.sessions.push(session);
      session.on("error", () => undefined);
    });
    server.on("stream", (stream, headers) => {
      const chunks: Buffer[] = [];
      stream.on("error", () => undefined);
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const call = this.requests.push({ headers, body: Buffer.concat(chunks) });
        respond(stream as ServerHttp2Stream, call);
      });
    });
    this.url = await listening(server as unknown as Server);
    cleanups.push(() => {
      for (const session of this.sessions) session.destroy();
    });
    return this;
  }
}

function messageOf(text: string | Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(Buffer.from(text).length, 1);
  return Buffer.concat([prefix, Buffer.from(text)]);
}

/** A response with trailers. */
function respondWith(stream: ServerHttp2Stream, body: Uint8Array, trailers: Record<string, string>): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.end(body);
}

const SUCCEEDED = messageOf(Uint8Array.of(0x0a, 2, 8, 1, 0x10, 1));

function openClient(): OutboundClient {
  const client = new OutboundClient(["all"]);
  cleanups.push(() => client.close());
  return client;
}

async function sessionTo(url: string) {
  const session = await openClient().openHttp2(url, LONG_MS);
  cleanups.push(() => session.destroy());
  return session;
}

const callOf = (headers: Record<string, string> = {}, timeoutMs = LONG_MS) => ({
  path: "/service/Method",
  headers,
  message: MESSAGE,
  timeoutMs,
});

test("a call is a request of one message, and its response one message, in whatever pieces it comes", async () => {
  const peer = await new Peer().start((stream, call) => {
    if (call === 2) return respondWith(stream, messageOf("next"), OK);
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(OK));
    for (const byte of messageOf("response")) stream.write(Buffer.from([byte]));
    stream.end();
  });
  const session = await sessionTo(peer.url);
  const token = "t".repeat(300);
  expect(Buffer.from(await callUnary(session, callOf({ token }))).toString()).toBe("response");
  expect(Buffer.from(await callUnary(session, callOf())).toString()).toBe("next");
  expect(peer.sessions).toHaveLength(1);
  expect(peer.requests[0]?.body).toEqual(messageOf("request"));
  expect(peer.requests[0]?.headers).toMatchObject({
    ":method": "POST",
    ":path": "/service/Method",
    ":authority": new URL(peer.url).host,
    te: "trailers",
    "content-type": "application/grpc",
    token,
  });
});

test.each<[string, string, (stream: ServerHttp2Stream) => void]>([
  ["rejects", "status 7", (stream) => respondWith(stream, Buffer.alloc(0), { "grpc-status": "7" })],
  [
    "rejects immediately",
    "status 16",
    (stream) => stream.respond({ ":status": 200, "grpc-status": "16" }, { endStream: true }),
  ],
  ["rejects after a message", "status 2", (stream) => respondWith(stream, SUCCEEDED, { "grpc-status": "2" })],
  ["completes without a message", "incomplete", (stream) => respondWith(stream, Buffer.alloc(0), OK)],
  ["cuts off", "incomplete", (stream) => respondWith(stream, messageOf("cut off").subarray(0, 6), OK)],
  ["responds to without a status", "closed", (stream) => respondWith(stream, SUCCEEDED, { other: "0" })],
  ["resets", "", (stream) => stream.close(2)],
  ["destroys the connection of", "", (stream) => stream.session?.destroy()],
  ["never responds to", "no response within", () => undefined],
])("a call that the server %s fails", async (_, reason, respond) => {
  const { url } = await new Peer().start(respond);
  const session = await sessionTo(url);
  const called = callUnary(session, callOf({}, reason.startsWith("no response") ? SHORT_MS : LONG_MS));
  const error = await called.catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(GrpcFailure);
  expect((error as Error).message).toContain(reason);
});

test.each<[string, string | null]>([
  ["closes the connection", null],
  ["speaks only HTTP/1.1", "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"],
])("a call fails where the server %s", async (_, response) => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => (response === null ? socket.destroy() : socket.end(response)));
  });
  const session = await sessionTo(await listening(server));
  await expect(callUnary(session, callOf())).rejects.toBeInstanceOf(GrpcFailure);
  expect(session.destroyed || session.closed).toBe(true);
  await expect(callUnary(session, callOf())).rejects.toBeInstanceOf(GrpcFailure);
});

const KEY = Buffer.from("key");

function putsTo(url: string) {
  const client = openClient();
  const puts = new EtcdPut((to) => client.openHttp2(to, LONG_MS));
  cleanups.push(() => puts.close());
  return (value: Uint8Array, token: string | null = null) => puts.put({ url, token }, KEY, value);
}

test("puts over one session, also more than the server takes without confirmation, each with its token", async () => {
  const peer = await new Peer().start((stream) => respondWith(stream, SUCCEEDED, OK));
  const put = putsTo(peer.url);
  expect(await put(new Uint8Array(10))).toBe(true);
  expect(await put(new Uint8Array(3 * MIB), "secret")).toBe(true);
  expect(await put(new Uint8Array(), "other")).toBe(true);
  expect(peer.sessions).toHaveLength(1);
  expect(peer.requests.map(({ headers }) => headers["token"])).toEqual([undefined, "secret", "other"]);
  expect(peer.requests[1]?.body.length).toBeGreaterThan(3 * MIB);
});

test("after a failure the endpoint is left alone for a while, without its session", async () => {
  const peer = await new Peer().start((stream) =>
    respondWith(stream, Buffer.alloc(0), { "grpc-status": "14" }),
  );
  const put = putsTo(peer.url);
  await expect(put(KEY)).rejects.toThrow("status 14");
  expect(await put(KEY)).toBe(false);
  expect(peer.requests).toHaveLength(1);
  while (!peer.sessions[0]?.destroyed) await Bun.sleep(1);
});

test.each<[string, (session: ServerHttp2Session) => void]>([
  ["ends", (session) => session.goaway(0)],
  ["closes", (session) => session.close()],
  ["destroys", (session) => session.destroy()],
])("a session that the server %s between two puts is replaced", async (_, end) => {
  const peer = await new Peer().start((stream) => respondWith(stream, SUCCEEDED, OK));
  const client = openClient();
  const opened: { closed: boolean; destroyed: boolean }[] = [];
  const puts = new EtcdPut(async (to) => {
    const session = await client.openHttp2(to, LONG_MS);
    opened.push(session);
    return session;
  });
  cleanups.push(() => puts.close());
  const put = () => puts.put({ url: peer.url, token: null }, KEY, KEY);
  expect(await put()).toBe(true);
  end(peer.sessions[0] as ServerHttp2Session);
  while (opened[0]?.closed === false && !opened[0].destroyed) await Bun.sleep(1);
  expect(await put()).toBe(true);
  expect(opened).toHaveLength(2);
});
