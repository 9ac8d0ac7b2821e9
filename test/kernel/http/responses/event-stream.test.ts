import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { ApiError } from "../../../../src/kernel/errors.ts";
import {
  type EventReader,
  type EventStream,
  EventStreams,
  WAITING_BYTES_MAX,
} from "../../../../src/kernel/http/responses/event-stream.ts";
import { realTimeout } from "../../../../src/kernel/time/clock.ts";
import { until } from "../../../support/eventually.ts";

const CHUNK = `: ${"x".repeat(1_021)}\n`;
/** More than any system buffers for a socket that is not read. */
const SENT_BYTES_MAX = 256 * 1024 * 1024;

let streams: EventStreams;
let reader: EventReader;
const attached: EventStream[] = [];
let ended = 0;
const timeouts: number[] = [];
/** Runs the next heartbeat of the stream that was begun last. */
let heartbeat = (): void => undefined;
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 60,
  fetch(request, own) {
    const call = {
      request,
      confirmation: null,
      setIdleTimeout: (seconds: number) => {
        timeouts.push(seconds);
        own.timeout(request, seconds);
      },
    };
    try {
      return new Response(streams.begin(call, reader));
    } catch (error) {
      return new Response(String(error), { status: error instanceof ApiError ? error.status : 500 });
    }
  },
});
beforeAll(() => {
  begin();
});
afterAll(() => server.stop(true));

/** Streams with a state that the test can see. */
function begin(more: Partial<EventReader> = {}): void {
  attached.length = 0;
  ended = 0;
  timeouts.length = 0;
  streams = new EventStreams({
    streamsMax: 12,
    perCredentialMax: 2,
    heartbeatMs: 60_000,
    heartbeat: ": ping\n\n",
    after: (delayMs, run) => {
      heartbeat = run;
      return realTimeout(delayMs, run);
    },
    retryAfterSeconds: 7,
  });
  reader = {
    credential: "one",
    accountRef: 1,
    begin: ": ok\n\n",
    reauthorize: () => {},
    attach: (stream) => {
      attached.push(stream);
      return () => {
        ended += 1;
      };
    },
    ...more,
  };
}

function open(): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect(server.port ?? 0, "127.0.0.1", () => {
      socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    });
    socket.once("data", () => {
      socket.pause();
      resolve(socket);
    });
  });
}

test("a client that does not read is disconnected only when it is too far behind", async () => {
  begin();
  const socket = await open();
  const [stream] = attached;
  let sent = 0;
  while (stream?.hasEnded === false && sent < SENT_BYTES_MAX) {
    stream.send(CHUNK);
    sent += CHUNK.length;
    // The system accepts what fits into its buffers.
    if (sent % (16 * 1024) === 0) await Bun.sleep(0);
  }
  expect(sent).toBeGreaterThan(WAITING_BYTES_MAX);
  expect(sent).toBeLessThan(SENT_BYTES_MAX);
  expect({ ended, open: streams.size }).toEqual({ ended: 1, open: 0 });
  // Its connection does not stay open forever.
  expect(timeouts).toEqual([0, 10]);
  socket.destroy();
});

test("a client that reads can receive any amount", async () => {
  begin();
  const socket = await open();
  let received = 0;
  socket.on("data", (bytes) => {
    received += bytes.length;
  });
  socket.resume();
  for (let sent = 0; sent < 100 * WAITING_BYTES_MAX; sent += CHUNK.length) {
    attached[0]?.send(CHUNK);
    if (sent % (16 * 1024) === 0) await Bun.sleep(0);
  }
  await until(() => received >= 100 * WAITING_BYTES_MAX);
  expect(attached[0]?.hasEnded).toBe(false);
  socket.destroy();
  await until(() => ended === 1);
});

test("a failed recheck ends a stream, whatever the error", async () => {
  begin({
    reauthorize: () => {
      throw new Error("the disk fails");
    },
  });
  const socket = await open();
  expect(attached[0]?.reauthorize()).toBe(false);
  expect(attached[0]?.reauthorize()).toBe(false);
  attached[0]?.send("nothing any more");
  expect({ ended, open: streams.size }).toEqual({ ended: 1, open: 0 });
  socket.destroy();
});

test("a stream that ends or fails at its start leaves nothing behind", async () => {
  begin({
    attach: (stream) => {
      stream.end();
      return () => {
        ended += 1;
      };
    },
  });
  const socket = await open();
  expect({ ended, open: streams.size }).toEqual({ ended: 1, open: 0 });
  socket.destroy();
  begin({
    attach: () => {
      throw new Error("the disk fails");
    },
  });
  expect((await fetch(server.url)).status).toBe(500);
  expect(streams.size).toBe(0);
});

test("streams are limited by credential, by account and in total; none start during shutdown", async () => {
  begin();
  const sockets = [await open(), await open()];
  const rejected = await fetch(server.url);
  expect({ status: rejected.status, text: await rejected.text() }).toEqual({
    status: 429,
    text: expect.stringContaining("of this key or session"),
  });
  reader = { ...reader, credential: "two" };
  sockets.push(await open());
  reader = { ...reader, credential: "three" };
  // A quarter of the 12, for any credential.
  expect(await (await fetch(server.url)).text()).toContain("of this account");
  for (const accountRef of [2, 3, 4]) {
    for (const name of ["a", "b", "c"]) {
      reader = { ...reader, credential: `${accountRef}${name}`, accountRef };
      sockets.push(await open());
    }
  }
  reader = { ...reader, credential: "five", accountRef: 5 };
  expect(await (await fetch(server.url)).text()).toContain("of this server");
  sockets[0]?.destroy();
  await until(() => streams.size === 11);
  sockets.push(await open());
  streams.stop();
  expect({ ended, open: streams.size }).toEqual({ ended: 13, open: 0 });
  expect((await fetch(server.url)).status).toBe(503);
  for (const socket of sockets) socket.destroy();
});

test("a heartbeat is sent while the credential is valid", async () => {
  let isValid = true;
  begin({
    reauthorize: () => {
      if (!isValid) throw new ApiError("unauthorized", "This key has ended.");
    },
  });
  let beat = (): void => {};
  streams = new EventStreams({
    streamsMax: 12,
    perCredentialMax: 2,
    heartbeatMs: 5,
    heartbeat: ": ping\n\n",
    retryAfterSeconds: 7,
    after: (_delayMs, run) => {
      beat = run;
      return () => {};
    },
  });
  const socket = await open();
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString();
  });
  socket.resume();
  beat();
  await until(() => text.includes(": ping\n\n"));
  isValid = false;
  beat();
  expect(ended).toBe(1);
  socket.destroy();
});

test("a reader that takes nothing between two heartbeats is disconnected, and one that takes something is not", async () => {
  begin();
  const request = new Request("http://127.0.0.1/");
  const call = { request, confirmation: null, setIdleTimeout: () => {} };
  const body = streams.begin(call, reader);
  if (typeof body === "string") throw new Error("no stream");
  const taken = body.getReader();
  await taken.read();
  heartbeat();
  await taken.read();
  heartbeat();
  expect(streams.size).toBe(1);
  heartbeat();
  expect([streams.size, ended]).toEqual([0, 1]);
});
