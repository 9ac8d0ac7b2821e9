import { afterEach, describe, expect, test } from "bun:test";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { OutboundClient } from "../../../src/kernel/outbound/client.ts";
import { ENDING_CONNECTIONS_MAX } from "../../../src/kernel/outbound/connection.ts";
import { STALL_MS_MAX } from "../../../src/kernel/outbound/event-loop.ts";
import type { FailureKind } from "../../../src/kernel/outbound/outcome.ts";
import { eventually } from "../../support/eventually.ts";
import { RawServer } from "../../support/raw-server.ts";
import { answeredWith, failureOf, get, LOOPBACK, Opened, textOf } from "./support.ts";

const opened = new Opened();
afterEach(() => opened.close());

const client = opened.client.bind(opened);

async function rawServer(respond: (socket: Socket, request: string, connection: number) => void) {
  return opened.add(await new RawServer(respond).start());
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

describe("a request", () => {
  test("is sent unchanged with the client's framing", async () => {
    const server = await rawServer((socket) => socket.write(OK));
    const url = `http://127.0.0.1:${server.port}/path/a%20b?query=1#fragment`;
    const outcome = await client().send(
      get(url, {
        method: "POST",
        headers: {
          "X-Custom": "value",
          "content-length": "999",
          Connection: "upgrade",
          "Transfer-Encoding": "chunked",
          Expect: "100-continue",
        },
        body: Buffer.from("büdget"),
      }),
    );
    expect(textOf(outcome)).toBe("ok");
    expect(server.requests).toEqual([
      `POST /path/a%20b?query=1 HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nX-Custom: value\r\nAccept-Encoding: identity\r\nContent-Length: 7\r\nConnection: keep-alive\r\n\r\n${Buffer.from("büdget").toString("latin1")}`,
    ]);
  });

  test("has the Host and Accept-Encoding of its headers, each once", async () => {
    const server = await rawServer((socket) => socket.write(OK));
    await client().send(
      get(`http://127.0.0.1:${server.port}/`, {
        headers: { accept: "*/*", "accept-encoding": "br", HOST: "shop.example.com" },
      }),
    );
    expect(server.requests).toEqual([
      "GET / HTTP/1.1\r\nHost: shop.example.com\r\naccept: */*\r\nAccept-Encoding: br\r\nConnection: keep-alive\r\n\r\n",
    ]);
  });

  test("a GET has no body and no length; a POST without a body has the length 0", async () => {
    const server = await rawServer((socket) => socket.write(OK));
    const outbound = client();
    await outbound.send(get(`http://127.0.0.1:${server.port}/`));
    await outbound.send(get(`http://127.0.0.1:${server.port}/`, { method: "POST" }));
    expect(server.requests.map((request) => /content-length: \d+/i.exec(request)?.[0] ?? null)).toEqual([
      null,
      "Content-Length: 0",
    ]);
  });

  test("proxies of the environment are ignored", async () => {
    const server = await rawServer((socket) => socket.write(OK));
    const proxy = await rawServer((socket) => socket.end("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n"));
    const proxyUrl = `http://127.0.0.1:${proxy.port}`;
    const script = `
      import { OutboundClient } from "./src/kernel/outbound/client.ts";
      const outbound = new OutboundClient(["127.0.0.0/8"]);
      const request = ${JSON.stringify(get(`http://127.0.0.1:${server.port}/`))};
      const outcome = await outbound.send(request);
      console.log(outcome.status);
      process.exit(0);`;
    const child = Bun.spawn([process.execPath, "-e", script], {
      env: { HTTP_PROXY: proxyUrl, http_proxy: proxyUrl, HTTPS_PROXY: proxyUrl, ALL_PROXY: proxyUrl },
      stdout: "pipe",
    });
    expect(await new Response(child.stdout).text()).toBe("200\n");
    expect({ asked: server.requests.length, proxied: proxy.connections }).toEqual({ asked: 1, proxied: 0 });
  });
});

describe("responses", () => {
  const whole: readonly (readonly [name: string, bytes: string, status: number, body: string])[] = [
    ["sized", OK, 200, "ok"],
    ["sized, empty", "HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n", 404, ""],
    ["without a reason", "HTTP/1.1 299\r\nContent-Length: 1\r\n\r\nx", 299, "x"],
    ["until the end", "HTTP/1.1 200 OK\r\n\r\nall of it", 200, "all of it"],
    ["of HTTP/1.0", "HTTP/1.0 500 Oh\r\n\r\nold", 500, "old"],
    [
      "in chunks",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n",
      200,
      "abc0123456789",
    ],
    [
      "in chunks whose sizes have zeros before them",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0000000000000003\r\nabc\r\n00000000\r\n\r\n",
      200,
      "abc",
    ],
    [
      "with an unknown coding",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
      200,
      "ok",
    ],
    ["without a body", "HTTP/1.1 204 No Content\r\nContent-Length: 10\r\n\r\n", 204, ""],
    ["not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", 304, ""],
    [
      "after interim ones",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${OK}`,
      200,
      "ok",
    ],
    ["with the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", 200, "ok"],
    ["with an odd status", "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", 999, ""],
  ];
  for (const [name, bytes, status, body] of whole) {
    for (const piece of [bytes.length, 1]) {
      test(`${name}, ${piece === 1 ? "byte by byte" : "in one piece"}`, async () => {
        const server = await rawServer(async (socket) => {
          for (let at = 0; at < bytes.length; at += piece) {
            socket.write(bytes.slice(at, at + piece));
            if (piece === 1) await new Promise((resolve) => setImmediate(resolve));
          }
          if (!/content-length|chunked/i.test(bytes)) socket.end();
        });
        const outcome = await client().send(get(`http://127.0.0.1:${server.port}/`));
        expect({ status: answeredWith(outcome).status, body: textOf(outcome) }).toEqual({ status, body });
      });
    }
  }

  test("to HEAD have no body, whatever their Content-Length", async () => {
    const server = await rawServer((socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"));
    const outcome = await client().send(get(`http://127.0.0.1:${server.port}/`, { method: "HEAD" }));
    expect(textOf(outcome)).toBe("");
  });

  const broken: readonly (readonly [name: string, kind: FailureKind, respond: (socket: Socket) => void])[] = [
    ["nothing of HTTP", "malformed", (socket) => socket.write("SSH-2.0-OpenSSH_9.9\r\n")],
    ["binary", "malformed", (socket) => socket.write(Buffer.from([0, 1, 2, 3, 255, 254, 13, 10, 13, 10]))],
    ["another version", "malformed", (socket) => socket.write("HTTP/2.0 200 OK\r\n\r\n")],
    ["a status of two digits", "malformed", (socket) => socket.write("HTTP/1.1 20 OK\r\n\r\n")],
    ["a status below 100", "malformed", (socket) => socket.write("HTTP/1.1 099 OK\r\n\r\n")],
    [
      "another protocol",
      "malformed",
      (socket) => socket.write("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
    ],
    ["a header without a name", "malformed", (socket) => socket.write("HTTP/1.1 200 OK\r\n: x\r\n\r\n")],
    ["a folded header", "malformed", (socket) => socket.write("HTTP/1.1 200 OK\r\nA: x\r\n y\r\n\r\n")],
    [
      "two lengths",
      "malformed",
      (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!"),
    ],
    [
      "a negative length",
      "malformed",
      (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
    ],
    [
      "a bad chunk",
      "malformed",
      (socket) => socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    ],
    [
      "a chunk that runs over",
      "malformed",
      (socket) => socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n"),
    ],
    [
      "an unknown transfer coding",
      "malformed",
      (socket) => socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ],
    ["a reset", "reset", (socket) => socket.resetAndDestroy()],
    ["a close without a word", "reset", (socket) => socket.end()],
    ["half a head", "reset", (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Le")],
    ["half a body", "reset", (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")],
    [
      "half the chunks",
      "reset",
      (socket) => socket.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
    ],
    [
      "one endless header",
      "too-large",
      (socket) => flood(socket, "HTTP/1.1 200 OK\r\nX: ", "a".repeat(10_000)),
    ],
    ["endless headers", "too-large", (socket) => flood(socket, "HTTP/1.1 200 OK\r\n", "X-More: again\r\n")],
    [
      "endless interim responses",
      "too-large",
      (socket) => flood(socket, "", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
    ],
    [
      "endless trailers",
      "too-large",
      (socket) =>
        flood(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n".repeat(100)),
    ],
  ];
  for (const [name, kind, respond] of broken) {
    test(`${kind}: ${name}`, async () => {
      const server = await rawServer(respond);
      const outcome = await client().send(get(`http://127.0.0.1:${server.port}/`));
      expect(failureOf(outcome)).toBe(kind);
      await closed(server);
    });
  }
});

describe("limits", () => {
  test("a body at the limit is complete, and cut above it", async () => {
    const server = await rawServer((socket, request) => {
      const length = Number(/ \/(\d+) /.exec(request)?.[1]);
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${"x".repeat(length)}`);
    });
    const outbound = client();
    const ask = (length: number, longerBody: "truncate" | "fail") =>
      outbound.send(get(`http://127.0.0.1:${server.port}/${length}`, { bodyBytesMax: 1_000, longerBody }));
    const at = answeredWith(await ask(1_000, "fail"));
    expect({ truncated: at.truncated, length: at.body.length }).toEqual({ truncated: false, length: 1_000 });
    const past = answeredWith(await ask(1_001, "truncate"));
    expect({ truncated: past.truncated, length: past.body.length }).toEqual({
      truncated: true,
      length: 1_000,
    });
    expect(failureOf(await ask(1_001, "fail"))).toBe("too-large");
  });

  test("an endless body is read to the limit, and the connection closed", async () => {
    for (const head of ["", "Transfer-Encoding: chunked\r\n"]) {
      const chunk = head === "" ? "x".repeat(10_000) : `2710\r\n${"x".repeat(10_000)}\r\n`;
      const server = await rawServer((socket) => flood(socket, `HTTP/1.1 200 OK\r\n${head}\r\n`, chunk));
      const answer = answeredWith(await client().send(get(`http://127.0.0.1:${server.port}/`)));
      expect(answer.truncated).toBe(true);
      expect(answer.body.length).toBe(65_536);
      await closed(server);
    }
  });

  test("compression is not requested, and a compressed body is not decoded", async () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000));
    const server = await rawServer((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`);
      socket.write(bomb);
    });
    const answer = answeredWith(await client().send(get(`http://127.0.0.1:${server.port}/`)));
    expect(server.requests[0]).toContain("Accept-Encoding: identity\r\n");
    expect(Buffer.compare(answer.body, bomb.subarray(0, 65_536))).toBe(0);
  });

  const slow: readonly (readonly [name: string, begin: string])[] = [
    ["says nothing", ""],
    ["sends its head byte by byte", "HTTP/1.1 200 OK\r\nX-Slow: "],
    ["sends its body byte by byte", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"],
    ["sends a body without an end", "HTTP/1.1 200 OK\r\n\r\n"],
  ];
  for (const [name, begin] of slow) {
    test(`a server that ${name} times out`, async () => {
      const server = await rawServer((socket) => {
        if (begin === "") return;
        socket.write(begin);
        const drip = setInterval(() => socket.write("x"), 20);
        socket.on("close", () => clearInterval(drip));
      });
      const outcome = await client().send(get(`http://127.0.0.1:${server.port}/`, { timeoutMs: 150 }));
      expect(failureOf(outcome)).toBe("timeout");
      expect(outcome.latencyMs).toBeGreaterThanOrEqual(149);
      // The default timeout of a request is fifteen seconds.
      expect(outcome.latencyMs).toBeLessThan(10_000);
      await closed(server);
    });
  }

  test("the timeout includes the lookup", async () => {
    const resolver = { resolve: () => new Promise<readonly string[]>(() => {}) };
    const outcome = await client([], { resolver }).send(get("http://slow.example/", { timeoutMs: 50 }));
    expect(failureOf(outcome)).toBe("timeout");
  });

  test("of a probe is no result while the process stands still, and is repeated twice at most", async () => {
    const server = await rawServer(() => {});
    const reached = async (hanging: number, stalledMs: number): Promise<unknown> => {
      let attempts = 0;
      const found = Promise.withResolvers<readonly string[]>();
      const stalls = {
        longestSince: () => stalledMs,
        wake: () => {
          attempts += 1;
          if (attempts > hanging) found.resolve(["127.0.0.1"]);
        },
        stop: () => {},
      };
      const outbound = client(LOOPBACK, { resolver: { resolve: () => found.promise }, stalls });
      const terms = { account: null, timeoutMs: 50 };
      return [await outbound.reaches(`http://probe.example:${server.port}`, terms), attempts];
    };
    expect(await reached(1, STALL_MS_MAX + 1)).toEqual([true, 2]);
    expect(await reached(9, STALL_MS_MAX + 1)).toEqual([false, 3]);
    expect(await reached(1, STALL_MS_MAX)).toEqual([false, 1]);
  });

  test("a name without an address and a rejected connection have their own errors", async () => {
    const resolver = { resolve: () => Promise.reject(new Error("NXDOMAIN")) };
    expect(failureOf(await client([], { resolver }).send(get("http://none.example/")))).toBe("dns");
    const server = await rawServer(() => {});
    server.stop();
    expect(failureOf(await client().send(get(`http://127.0.0.1:${server.port}/`)))).toBe("connect");
  });
});

describe("connections", () => {
  test("are reused only for the same target", async () => {
    const server = await rawServer((socket) => socket.write(OK));
    const resolver = { resolve: async () => ["127.0.0.1"] };
    const outbound = client(LOOPBACK, { resolver });
    const ask = (host: string, reuseConnection = true) =>
      outbound.send(get(`http://${host}:${server.port}/`, { reuseConnection }));
    await ask("a.example");
    await ask("a.example");
    expect(server.connections).toBe(1);
    await ask("b.example");
    expect(server.connections).toBe(2);
    await ask("a.example", false);
    expect(server.connections).toBe(3);
  });

  test("are not reused after a response that closes or has surplus bytes", async () => {
    for (const bytes of [
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
      "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ]) {
      const server = await rawServer((socket) => socket.write(bytes));
      const outbound = client();
      for (let turn = 0; turn < 2; turn += 1) {
        expect(textOf(await outbound.send(get(`http://127.0.0.1:${server.port}/`)))).toBe("ok");
      }
      expect(server.connections).toBe(2);
    }
  });

  test("that closed while idle are replaced silently", async () => {
    const server = await rawServer((socket, _request, connection) => {
      if (connection === 1 && server.requests.length === 2) socket.resetAndDestroy();
      else socket.write(OK);
    });
    const outbound = client();
    for (let turn = 0; turn < 3; turn += 1) {
      expect(textOf(await outbound.send(get(`http://127.0.0.1:${server.port}/`)))).toBe("ok");
    }
    expect(server.connections).toBe(2);
  });

  test("that fail because of this machine's limits are not failures of the target", async () => {
    const server = await rawServer((socket) => socket.write(OK));
    const script = `
      import { connect } from "node:net";
      import { OutboundClient } from "./src/kernel/outbound/client.ts";
      const outbound = new OutboundClient(["127.0.0.0/8"]);
      const request = ${JSON.stringify(get(`http://127.0.0.1:${server.port}/`))};
      const before = await outbound.send({ ...request, reuseConnection: false });
      for (let number = 0; number < 200; number += 1) {
        connect(${server.port}, "127.0.0.1").on("error", () => {});
      }
      await Bun.sleep(200);
      const after = await outbound.send({ ...request, reuseConnection: false });
      console.log(before.status, after.failure?.kind);
      process.exit(0);`;
    const command = [
      "sh",
      "-c",
      'ulimit -Sn 100; ulimit -Hn 100; exec "$0" -e "$1"',
      process.execPath,
      script,
    ];
    const child = Bun.spawn(command, { stdout: "pipe" });
    expect(await new Response(child.stdout).text()).toBe("200 local\n");
  });

  test("are attempted to each address in turn", async () => {
    const server = await rawServer((socket) => socket.write(OK));
    const resolver = { resolve: async () => ["127.0.0.9", "127.0.0.1"] };
    const outcome = await client(LOOPBACK, { resolver }).send(get(`http://two.example:${server.port}/`));
    expect(textOf(outcome)).toBe("ok");
  });
});

function flood(socket: Socket, begin: string, more: string): void {
  socket.write(begin);
  const pump = (): void => {
    while (!socket.destroyed) {
      if (!socket.write(more)) {
        socket.once("drain", pump);
        return;
      }
    }
  };
  pump();
}

/** The client closes a connection that it cannot use again. */
async function closed(server: RawServer): Promise<void> {
  await eventually(() => expect(server.open.size).toBe(0));
}

test("an HTTP/2 session has a permitted address, too", async () => {
  const server = await rawServer(() => undefined);
  const url = `http://127.0.0.1:${server.port}`;
  const outbound = new OutboundClient([]);
  await expect(outbound.openHttp2(url, 1_000)).rejects.toMatchObject({ kind: "blocked" });
  outbound.close();
});

describe("a connection over which nothing is sent", () => {
  /** What a server sees that greets only when the other end has ended its side. */
  async function lateGreeting(more: (port: number) => Promise<unknown>): Promise<string[]> {
    const seen: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", (error) => seen.push(String(error)));
      socket.on("close", () => resolve());
      socket.on("data", () => seen.push("data"));
      socket.on("end", () => {
        seen.push("end");
        socket.write("220 late\r\n");
        // What a reset would follow is sent in a packet of its own.
        setTimeout(() => socket.end("more\r\n"), 20);
      });
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    opened.add({ stop: () => server.close() });
    await more((server.address() as AddressInfo).port);
    await promise;
    return seen;
  }

  test("is ended, not reset, and read to the end: of a TCP check and of a probe", async () => {
    const account = 1;
    const outbound = client();
    expect(
      await lateGreeting((port) =>
        outbound.connectTo({ account, host: "127.0.0.1", port, tls: null, expected: null, timeoutMs: 5_000 }),
      ),
    ).toEqual(["end"]);
    expect(
      await lateGreeting((port) =>
        outbound.reaches(`http://127.0.0.1:${port}`, { account, timeoutMs: 5_000 }),
      ),
    ).toEqual(["end"]);
  });

  test(`at most ${ENDING_CONNECTIONS_MAX} wait for the other end, and none after the client is closed`, async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) => socket.on("error", () => {}));
    const open = (): Promise<number> =>
      new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    opened.add({ stop: () => server.close() });
    const { port } = server.address() as AddressInfo;
    const outbound = new OutboundClient(LOOPBACK);
    const check = () =>
      outbound.connectTo({
        account: 1,
        host: "127.0.0.1",
        port,
        tls: null,
        expected: null,
        timeoutMs: 5_000,
      });
    for (let count = 0; count < ENDING_CONNECTIONS_MAX + 8; count += 1) await check();
    expect(await open()).toBeGreaterThanOrEqual(ENDING_CONNECTIONS_MAX);
    outbound.close();
  });
});
