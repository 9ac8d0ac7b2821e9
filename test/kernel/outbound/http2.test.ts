import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import http2 from "node:http2";
import { connect, createServer, type Server, type Socket } from "node:net";
import tls from "node:tls";
import { wireBytesMax } from "../../../src/kernel/outbound/http2.ts";
import { HEAD_BYTES_MAX, HEADER_LINES_MAX } from "../../../src/kernel/outbound/response-reader.ts";
import { type Certificate, CertificateAuthority } from "../../support/certificates.ts";
import { until } from "../../support/eventually.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { answeredWith, failureOf, get, Opened, textOf } from "./support.ts";

const BODY_BYTES_MAX = 65_536;
const opened = new Opened();
let authority: CertificateAuthority;
let own: Certificate;

beforeAll(() => {
  authority = new CertificateAuthority();
  own = authority.issue("localhost", "IP:127.0.0.1,DNS:localhost");
});
afterEach(() => opened.close());
afterAll(() => authority.remove());

const client = () => opened.client(undefined, { certificateAuthorities: authority.pem });

/** A request as checks of monitors send it. */
const check = (url: string, more: object = {}) =>
  get(url, {
    reuseConnection: false,
    readsCertificate: true,
    fallsBackToHttp2: true,
    ...more,
  });

async function listening(server: Server | tls.Server | http2.Http2SecureServer): Promise<number> {
  opened.add({ stop: () => server.close() });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** An HTTPS server that says which version a request has. */
async function secureServer(
  respond: (request: Http2ServerRequest, response: Http2ServerResponse, body: string) => void,
  allowHTTP1 = false,
): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const server = http2.createSecureServer({ ...own, allowHTTP1 }, async (request, response) => {
    let body = "";
    for await (const piece of request) body += String(piece);
    respond(request, response, body);
  });
  server.on("sessionError", () => {}).on("tlsClientError", () => {});
  server.on("connection", () => {
    connections += 1;
  });
  return { port: await listening(server), connections: () => connections };
}

describe("a server that offers HTTP/2 only", () => {
  test("gets the request over HTTP/2, as it would over HTTP/1.1", async () => {
    const { port } = await secureServer(({ method, url, headers, httpVersion }, response, body) => {
      response.setHeader("X-Answer", "yes");
      response.setHeader("Set-Cookie", ["a=1", "b=2"]);
      response.writeHead(201);
      response.end(JSON.stringify({ method, url, httpVersion, body, ...headers }));
    });
    const outcome = await client().send(
      check(`https://localhost:${port}/a/b?c=d`, {
        method: "POST",
        headers: {
          "X-Own": " 1\t",
          "HTTP2-Settings": "x",
          Connection: "x",
          TE: "gzip",
          Host: "shop.example",
        },
        body: Buffer.from("sent"),
      }),
    );
    const { status, headers, certificate, address } = answeredWith(outcome);
    expect(headers).toMatchObject({
      "x-answer": "yes",
      "set-cookie": "a=1, b=2",
    });
    expect([status, address, certificate?.issuer]).toEqual([201, "127.0.0.1", "Test Authority"]);
    const { ":authority": host, ...request } = JSON.parse(textOf(outcome));
    expect(host).toBe("shop.example");
    expect(request).toMatchObject({
      method: "POST",
      url: "/a/b?c=d",
      httpVersion: "2.0",
      body: "sent",
      "x-own": "1",
      "accept-encoding": "identity",
      "content-length": "4",
    });
    for (const name of ["connection", "te", "http2-settings"]) expect(request).not.toHaveProperty(name);
  });

  test("may respond without a body, and with one that is longer than is read", async () => {
    const { port } = await secureServer(({ url }, response) => {
      if (url === "/none") response.writeHead(204).end();
      else response.end("x".repeat(BODY_BYTES_MAX + (url === "/longer" ? 1 : 0)));
    });
    const url = `https://127.0.0.1:${port}`;
    const read = async (path: string, method = "GET") => {
      const { status, body, truncated } = answeredWith(await client().send(check(url + path, { method })));
      return [status, body.length, truncated];
    };
    expect(await read("/none")).toEqual([204, 0, false]);
    expect(await read("/", "HEAD")).toEqual([200, 0, false]);
    expect(await read("/")).toEqual([200, BODY_BYTES_MAX, false]);
    expect(await read("/longer")).toEqual([200, BODY_BYTES_MAX, true]);
  });

  test("must have a valid certificate, and may be asked for one of the client", async () => {
    const others = authority.issue("others", "DNS:others.example");
    const server = http2.createSecureServer({ ...others }, (_, response) => response.end("ok"));
    server.on("sessionError", () => {}).on("tlsClientError", () => {});
    const url = `https://127.0.0.1:${await listening(server)}/`;
    expect(failureOf(await client().send(check(url)))).toBe("tls");
    expect(textOf(await client().send(check(url, { verifiesTls: false })))).toBe("ok");
  });

  test("is not asked over HTTP/2 by other requests", async () => {
    const { port } = await secureServer((_, response) => response.end("ok"));
    const outcome = await client().send(get(`https://127.0.0.1:${port}/`));
    expect(outcome).toMatchObject({
      failure: {
        kind: "tls",
        message: "the TLS handshake failed: the server does not offer http/1.1",
      },
    });
  });

  test("that completes the handshake without a protocol, and then closes the connection", async () => {
    const { port } = await secureServer(({ httpVersion }, response) => response.end(httpVersion));
    const closing = await listening(
      tls.createServer({ ...own }, (socket) => {
        socket.on("error", () => {}).once("data", () => socket.end());
      }),
    );
    // Leads the first connection to one and all others to the other.
    const both = await proxy((connection) => (connection === 1 ? closing : port));
    expect(textOf(await client().send(check(`https://127.0.0.1:${both.port}/`)))).toBe("2.0");
    // It has no other protocol.
    const alone = await proxy(() => closing);
    expect(await client().send(check(`https://127.0.0.1:${alone.port}/`))).toMatchObject({
      failure: {
        kind: "reset",
        message: "the connection was closed before the response was complete",
      },
    });
    expect(alone.connections()).toBe(2);
  });
});

test("a server that offers both gets HTTP/1.1 over one connection", async () => {
  const { port, connections } = await secureServer(
    ({ httpVersion }, response) => response.end(httpVersion),
    true,
  );
  expect(textOf(await client().send(check(`https://127.0.0.1:${port}/`)))).toBe("1.1");
  expect(connections()).toBe(1);
});

/** Passes bytes on to the port that is chosen for each connection. */
async function proxy(
  portOf: (connection: number) => number,
): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const server = createServer((near) => {
    connections += 1;
    const far = connect(portOf(connections), "127.0.0.1");
    near.on("error", () => {}).on("close", () => far.destroy());
    far.on("error", () => {}).on("close", () => near.destroy());
    near.pipe(far).pipe(near);
  });
  return { port: await listening(server), connections: () => connections };
}

const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION] = [0, 1, 3, 4, 6, 8, 9];
const END_STREAM = 1;
const END_HEADERS = 4;
const PREFACE_LENGTH = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".length;

function frame(type: number, flags: number, stream: number, content: Uint8Array | string = ""): Buffer {
  const bytes = Buffer.from(content);
  const head = Buffer.alloc(9);
  head.writeUIntBE(bytes.length, 0, 3);
  head.writeUInt16BE((type << 8) | flags, 3);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, bytes]);
}

/** A length in HPACK, with a prefix of 7 bits. */
function hpackLength(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** A header in HPACK, neither compressed nor remembered. */
function field(name: string, value: string): Buffer {
  const text = (content: string) => [hpackLength(content.length), Buffer.from(content, "latin1")];
  return Buffer.concat([Buffer.from([0]), ...text(name), ...text(value)]);
}

const STATUS = field(":status", "200");
const OK = frame(HEADERS, END_HEADERS, 1, STATUS);
const headed = (...fields: Buffer[]) => frame(HEADERS, END_HEADERS, 1, Buffer.concat([STATUS, ...fields]));
const body = (text: string, flags = END_STREAM) => frame(DATA, flags, 1, text);
const many = (count: number, one: (at: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, at) => one(at)));

/** A head in many frames. */
function inContinuations(fields: Buffer): Buffer {
  const last = Math.ceil(fields.length / 16_000) - 1;
  return Buffer.concat([
    frame(HEADERS, 0, 1, STATUS),
    many(last + 1, (at) =>
      frame(CONTINUATION, at === last ? END_HEADERS : 0, 1, fields.subarray(at * 16_000, (at + 1) * 16_000)),
    ),
  ]);
}

/** A server without TLS that begins with the settings of HTTP/2, and responds to a request with these bytes. */
class FrameServer {
  port = 0;
  readonly open = new Set<Socket>();
  private readonly server = createServer((socket) => {
    this.open.add(socket);
    socket.on("error", () => {}).on("close", () => this.open.delete(socket));
    socket.write(frame(SETTINGS, 0, 0));
    let received = Buffer.alloc(0);
    let hasResponded = false;
    socket.on("data", (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      if (hasResponded || !hasRequest(received)) return;
      hasResponded = true;
      socket.write(this.response);
      if (this.closes) socket.end();
    });
  });

  constructor(
    private readonly response: Buffer | string,
    private readonly closes = false,
  ) {}

  async start(): Promise<this> {
    this.port = await listening(this.server);
    opened.add({
      stop: () => {
        for (const socket of this.open) socket.destroy();
      },
    });
    return this;
  }
}

function hasRequest(received: Buffer): boolean {
  if (!received.toString("latin1").startsWith("PRI ")) return false;
  for (let at = PREFACE_LENGTH; at + 9 <= received.length; at += 9 + received.readUIntBE(at, 3))
    if (received[at + 3] === HEADERS) return true;
  return false;
}

async function outcomeOf(response: Buffer | string, { closes = false, timeoutMs = 30_000 } = {}) {
  const server = await new FrameServer(response, closes).start();
  const outcome = await client().send(check(`http://127.0.0.1:${server.port}/`, { timeoutMs }));
  await until(() => server.open.size === 0);
  return outcome;
}

describe("a server that begins with HTTP/2 without TLS", () => {
  test("gets the request so", async () => {
    expect(textOf(await outcomeOf(Buffer.concat([OK, body("hello")])))).toBe("hello");
  });

  test("may send interim heads, padding by other frames, and trailers", async () => {
    const interim = frame(HEADERS, END_HEADERS, 1, field(":status", "103"));
    const trailers = frame(HEADERS, END_HEADERS + END_STREAM, 1, field("x-sum", "1"));
    const frames = [
      interim,
      frame(PING, 0, 0, "12345678"),
      OK,
      frame(99, 0, 1, "?"),
      body("hello", 0),
      trailers,
    ];
    expect(textOf(await outcomeOf(Buffer.concat(frames)))).toBe("hello");
  });

  test("sends headers that are read as over HTTP/1.1", async () => {
    const fields = [field("location", "/a"), field("location", "/b"), field("x", "\xe9"), field("x", "2")];
    const { headers } = answeredWith(await outcomeOf(Buffer.concat([headed(...fields), body("")])));
    expect({ ...headers }).toEqual({ location: "/a", x: "\xe9, 2" });
  });

  const long = (bytes: number) =>
    inContinuations(many(bytes / 8_000, (at) => field(`x-${at}`, "v".repeat(7_900))));
  const lines = (count: number) => inContinuations(many(count, (at) => field(at.toString(36), "")));
  test("may send headers up to the limits", async () => {
    const fields = HEAD_BYTES_MAX / 2;
    expect(textOf(await outcomeOf(Buffer.concat([long(fields), body("hello")])))).toBe("hello");
    expect(textOf(await outcomeOf(Buffer.concat([lines(HEADER_LINES_MAX), body("hello")])))).toBe("hello");
  });

  const cut = "reset: the connection was closed before the response was complete";
  const malformed = "malformed: the response is not HTTP/2, or its headers are too long";
  const failures: Readonly<Record<string, readonly [response: () => Buffer | string, failure: string]>> = {
    "no HTTP/2": [() => "HTTP/1.1 400 Bad Request\r\n\r\n", malformed],
    "no status": [
      () => Buffer.concat([frame(HEADERS, END_HEADERS, 1, field("x", "1")), body("")]),
      malformed,
    ],
    "a status that is none": [() => frame(HEADERS, END_HEADERS, 1, field(":status", "2x")), malformed],
    "a transfer encoding": [
      () => Buffer.concat([headed(field("transfer-encoding", "chunked")), body("")]),
      malformed,
    ],
    "a line end in a value": [() => Buffer.concat([headed(field("x", "a\r\nb")), body("")]), malformed],
    "less than its length": [() => Buffer.concat([headed(field("content-length", "9")), body("hello")]), cut],
    "an end without a response": [() => frame(RST_STREAM, 0, 1, Buffer.from([0, 0, 0, 0])), cut],
    "a rejection": [
      () => frame(RST_STREAM, 0, 1, Buffer.from([0, 0, 0, 7])),
      "reset: the HTTP/2 stream was reset (REFUSED_STREAM)",
    ],
    "too many headers": [
      () => Buffer.concat([lines(HEADER_LINES_MAX + 1), body("")]),
      "too-large: the response's headers are too long",
    ],
    "too long headers": [() => Buffer.concat([long(2 * HEAD_BYTES_MAX), body("")]), malformed],
  };
  for (const [name, [response, failure]] of Object.entries(failures))
    test(`that sends ${name}`, async () => {
      const outcome = await outcomeOf(response());
      if (outcome.answered) throw new Error(`answered ${outcome.status}`);
      expect(`${outcome.failure.kind}: ${outcome.failure.message}`).toBe(failure);
    });

  test("that closes the connection within a response", async () => {
    expect(
      failureOf(
        await outcomeOf(Buffer.concat([OK, body("hello", 0)]), {
          closes: true,
        }),
      ),
    ).toBe("reset");
    expect(failureOf(await outcomeOf("", { closes: true }))).toBe("reset");
  });

  test.each([
    ["no head", (): string => ""],
    ["no end", (): Buffer => Buffer.concat([OK, body("hello", 0)])],
  ] as const)("that sends %s is given up after the timeout", async (_, response) => {
    expect(failureOf(await outcomeOf(response(), { timeoutMs: 300 }))).toBe("timeout");
  });
});

describe("a server that floods a request of HTTP/2", () => {
  /** A flood is longer than what is read of it. */
  const FLOOD_BYTES = 2 * wireBytesMax({ bodyBytesMax: BODY_BYTES_MAX });
  const flood = (one: Buffer): Buffer => many(Math.ceil(FLOOD_BYTES / one.length), () => one);
  const floods: Readonly<Record<string, readonly [response: () => Buffer, outcomes: readonly string[]]>> = {
    "bytes of the body, one per frame": [() => Buffer.concat([OK, flood(body("x", 0))]), ["200"]],
    "frames of the body without bytes": [
      () => Buffer.concat([OK, flood(body("", 0))]),
      ["malformed", "too-large"],
    ],
    "interim heads": [
      () => flood(frame(HEADERS, END_HEADERS, 1, field(":status", "103"))),
      ["malformed", "too-large"],
    ],
    "pieces of one head without bytes": [
      () => Buffer.concat([frame(HEADERS, 0, 1, STATUS), flood(frame(CONTINUATION, 0, 1))]),
      ["malformed", "too-large"],
    ],
    "a head without end": [
      () =>
        Buffer.concat([
          frame(HEADERS, 0, 1, STATUS),
          flood(frame(CONTINUATION, 0, 1, field("x", "y".repeat(9_000)))),
        ]),
      ["malformed", "too-large"],
    ],
    "references to one long header": [
      () =>
        Buffer.concat([
          frame(
            HEADERS,
            END_HEADERS,
            1,
            Buffer.concat([
              STATUS,
              Buffer.from([0x40, 1, 0x61]),
              hpackLength(3_900),
              Buffer.alloc(3_900, "x"),
              Buffer.alloc(12_000, 0xbe),
            ]),
          ),
          body(""),
        ]),
      ["reset"],
    ],
    settings: [() => flood(frame(SETTINGS, 0, 0)), ["malformed", "too-large", "reset"]],
    pings: [() => flood(frame(PING, 0, 0, "12345678")), ["malformed", "too-large", "reset"]],
    "updates of windows": [
      () => flood(frame(WINDOW_UPDATE, 0, 0, Buffer.from([0, 0, 0, 1]))),
      ["malformed", "too-large"],
    ],
    "frames of an unknown type": [() => flood(frame(99, 0, 0)), ["too-large"]],
  };
  for (const [name, [response, outcomes]] of Object.entries(floods))
    test(`with ${name} neither holds the event loop nor goes on`, async () => {
      const server = await new FrameServer(response()).start();
      const outbound = client();
      const send = async (): Promise<void> => {
        const outcome = await outbound.send(check(`http://127.0.0.1:${server.port}/`));
        expect(outcomes).toContain(outcome.answered ? String(outcome.status) : outcome.failure.kind);
        await until(() => server.open.size === 0);
      };
      expect(await leastMs(TURN_MS_MAX, () => longestTurnMs(send))).toBeLessThanOrEqual(TURN_MS_MAX);
    }, 60_000);
});
