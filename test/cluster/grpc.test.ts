import { expect, test } from "bun:test";
import { GrpcConnection, GrpcFailure } from "../../src/cluster/engines/grpc.ts";
import type { Connection, ConnectionListener } from "../../src/kernel/outbound/connection.ts";

const LONG_MS = 60_000;
const MESSAGE = Buffer.from("request");
const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE] = [0, 1, 3, 4, 6, 7, 8];
const END_STREAM = 1;
const HEADER_BYTES = 9;
const PREFACE_BYTES = 24;

/** A server that a test plays. */
class Peer {
  listener: ConnectionListener | null = null;
  isOpen = true;
  private written = Buffer.alloc(0);

  readonly connection = new GrpcConnection(this as unknown as Connection, {
    url: "http://engine:2379",
    path: "/service/Method",
    headers: { token: "t".repeat(300) },
  });

  write(bytes: Uint8Array): void {
    this.written = Buffer.concat([this.written, bytes]);
  }

  destroy(): void {
    this.isOpen = false;
  }

  send(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): void {
    this.listener?.onBytes(frameOf(type, flags, stream, payload));
  }

  /** The frames that came since the last call. */
  frames(): { type: number; flags: number; stream: number; payload: Buffer }[] {
    const bytes = this.written;
    this.written = Buffer.alloc(0);
    const frames = [];
    for (let at = bytes.indexOf("PRI ") === 0 ? PREFACE_BYTES : 0; at < bytes.length; ) {
      const end = at + HEADER_BYTES + bytes.readUIntBE(at, 3);
      const payload = bytes.subarray(at + HEADER_BYTES, end);
      frames.push({
        type: bytes.readUInt8(at + 3),
        flags: bytes.readUInt8(at + 4),
        stream: bytes.readUInt32BE(at + 5),
        payload,
      });
      at = end;
    }
    return frames;
  }
}

function frameOf(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

function messageOf(text: string): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([prefix, Buffer.from(text)]);
}

const textOf = (message: Uint8Array): string => Buffer.from(message).toString();

test("a call is a request of one message, and its response one message, in whatever pieces it comes", async () => {
  const peer = new Peer();
  const called = peer.connection.call(MESSAGE, LONG_MS);
  const [settings, headers, data] = peer.frames();
  expect(settings).toMatchObject({ type: SETTINGS, stream: 0 });
  expect(headers).toMatchObject({ type: HEADERS, flags: 4, stream: 1 });
  for (const text of [":path", "/service/Method", "engine:2379", "application/grpc", "t".repeat(300)])
    expect(headers?.payload.includes(text)).toBe(true);
  expect(data).toEqual({ type: DATA, flags: END_STREAM, stream: 1, payload: messageOf("request") });
  const response = Buffer.concat([
    frameOf(SETTINGS, 0, 0, new Uint8Array()),
    frameOf(HEADERS, 4, 1, Buffer.from("headers")),
    frameOf(DATA, 0, 1, messageOf("response").subarray(0, 7)),
    frameOf(DATA, 0, 1, messageOf("response").subarray(7)),
    frameOf(HEADERS, 4 | END_STREAM, 1, Buffer.from("trailers")),
  ]);
  for (const byte of response) peer.listener?.onBytes(Buffer.from([byte]));
  expect(textOf(await called)).toBe("response");
  const next = peer.connection.call(MESSAGE, LONG_MS);
  expect(peer.frames().filter(({ type }) => type === DATA)).toMatchObject([{ stream: 3 }]);
  peer.send(DATA, END_STREAM, 3, messageOf("next"));
  expect(textOf(await next)).toBe("next");
});

test("a call that the server rejects or ends fails, and the connection carries the next one", async () => {
  const peer = new Peer();
  for (const [index, end] of [
    () => peer.send(HEADERS, 4 | END_STREAM, 1, Buffer.from("only trailers")),
    () => peer.send(RST_STREAM, 0, 3, Buffer.alloc(4)),
    () => peer.send(DATA, END_STREAM, 5, messageOf("cut off").subarray(0, 6)),
  ].entries()) {
    const called = peer.connection.call(MESSAGE, LONG_MS);
    // One of an earlier stream belongs to nobody.
    if (index > 0) peer.send(DATA, 0, 1, messageOf("late"));
    end();
    await expect(called).rejects.toBeInstanceOf(GrpcFailure);
  }
  expect(peer.connection.isOpen).toBe(true);
});

test.each([
  ["that is closed", (peer: Peer) => peer.listener?.onEnd()],
  ["that the server ends", (peer: Peer) => peer.send(GOAWAY, 0, 0, Buffer.alloc(8))],
  ["that is not HTTP/2", (peer: Peer) => peer.listener?.onBytes(Buffer.from("HTTP/1.1 400 Bad Request\r\n"))],
  ["with a call that takes too long", () => undefined],
])("a connection %s fails its call, and is not used again", async (_, end) => {
  const peer = new Peer();
  const called = peer.connection.call(MESSAGE, 1);
  end(peer);
  await expect(called).rejects.toBeInstanceOf(GrpcFailure);
  expect(peer.connection.isOpen).toBe(false);
  expect(peer.isOpen).toBe(false);
  await expect(peer.connection.call(MESSAGE, LONG_MS)).rejects.toBeInstanceOf(GrpcFailure);
});

test("a second call beside another is rejected", async () => {
  const peer = new Peer();
  const called = peer.connection.call(MESSAGE, LONG_MS);
  await expect(peer.connection.call(MESSAGE, LONG_MS)).rejects.toBeInstanceOf(GrpcFailure);
  peer.send(DATA, 0, 1, messageOf("response"));
  expect(textOf(await called)).toBe("response");
});

test("pings and settings are confirmed, and so is what was received", async () => {
  const peer = new Peer();
  peer.frames();
  peer.send(PING, 0, 0, Buffer.from("12345678"));
  peer.send(PING, 1, 0, Buffer.from("12345678"));
  peer.send(SETTINGS, 0, 0);
  expect(peer.frames()).toEqual([
    { type: PING, flags: 1, stream: 0, payload: Buffer.from("12345678") },
    { type: SETTINGS, flags: 1, stream: 0, payload: Buffer.alloc(0) },
  ]);
  for (let sent = 0; sent < 32_768; sent += 8_192) {
    expect(peer.frames()).toEqual([]);
    peer.send(DATA, 0, 99, Buffer.alloc(8_192));
  }
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(32_768);
  expect(peer.frames()).toEqual([{ type: WINDOW_UPDATE, flags: 0, stream: 0, payload }]);
});

test("a message must fit into what the server takes now, and is cut into frames", async () => {
  const peer = new Peer();
  peer.frames();
  expect(peer.connection.fits(Buffer.alloc(65_530))).toBe(true);
  expect(peer.connection.fits(Buffer.alloc(65_531))).toBe(false);
  const called = peer.connection.call(Buffer.alloc(40_000), LONG_MS);
  const data = peer.frames().filter(({ type }) => type === DATA);
  expect(data.map(({ flags, payload }) => [flags, payload.length])).toEqual([
    [0, 16_384],
    [0, 16_384],
    [END_STREAM, 7_237],
  ]);
  peer.send(DATA, 0, 1, messageOf("response"));
  await called;
  expect(peer.connection.fits(Buffer.alloc(25_525))).toBe(true);
  expect(peer.connection.fits(Buffer.alloc(25_526))).toBe(false);
  await expect(peer.connection.call(Buffer.alloc(25_526), LONG_MS)).rejects.toBeInstanceOf(GrpcFailure);
  const more = Buffer.alloc(4);
  more.writeUInt32BE(10_000);
  peer.send(WINDOW_UPDATE, 0, 0, more);
  expect(peer.connection.fits(Buffer.alloc(35_525))).toBe(true);
  // The window of each stream.
  peer.send(SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0x10, 0]));
  expect(peer.connection.fits(Buffer.alloc(4_091))).toBe(true);
  expect(peer.connection.fits(Buffer.alloc(4_092))).toBe(false);
});
