import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { eventually } from "../support/eventually.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const MIB = 1024 * 1024;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

/** Opens a connection and sends the beginning of a request; collects the response. */
function begin(head: string, sent: Uint8Array | string): { socket: Socket; response: Promise<string> } {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  let text = "";
  const response = new Promise<string>((resolve) => {
    socket.on("data", (chunk) => {
      text += String(chunk);
    });
    socket.on("close", () => resolve(text));
    socket.on("error", () => resolve(text));
  });
  socket.write(`${head}\r\nHost: ${hostname}:${port}\r\n`);
  socket.write(sent);
  return { socket, response };
}

function post(path: string, key: string, bytes: number): string {
  return `POST ${path} HTTP/1.1\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${bytes}`;
}

describe("half-sent bodies", () => {
  test("of one account are rejected with 503 above 64 MiB, while other accounts are served", async () => {
    const account = await server.account();
    const other = await server.account();
    const half = `\r\n${" ".repeat(MIB / 2)}`;
    const open = Array.from({ length: 70 }, () => begin(post("/v1/gate", account.key ?? "", MIB), half));
    const rejected = await Promise.any(open.map(({ response }) => response));
    expect(rejected).toContain("503 Service Unavailable");
    expect(rejected.toLowerCase()).toContain("connection: close");
    expect((await other.post("/v1/gate", { flag_key: "a", enabled: true })).status).toBe(201);
    for (const { socket } of open) socket.destroy();
    // Their memory is released.
    const wait = async (): Promise<number> =>
      (await account.post("/v1/gate", `{"flag_key":"b","enabled":true}${" ".repeat(MIB / 2)}`)).status;
    await eventually(async () => expect(await wait()).toBe(201));
  }, 60_000);
});

describe("a body of 3 MB on a route with a smaller limit", () => {
  test("is always rejected with 413, with and without a length", async () => {
    const account = await server.account();
    const key = account.key ?? "";
    const bytes = 3_000_000;
    const body = " ".repeat(bytes);
    for (let turn = 0; turn < 20; turn += 1) {
      const declared = begin(post("/v1/meter/m/refill", key, bytes), `\r\n${body}`);
      expect(await declared.response).toContain("413 Payload Too Large");
      const head = post("/v1/meter/m/refill", key, 0).replace(
        "Content-Length: 0",
        "Transfer-Encoding: chunked",
      );
      const chunked = begin(head, `\r\n${bytes.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
      expect(await chunked.response).toContain("413 Payload Too Large");
    }
  }, 60_000);

  test("is rejected with 413 also if it is sent slowly", async () => {
    const account = await server.account();
    const { socket, response } = begin(post("/v1/meter/m/refill", account.key ?? "", 3_000_000), "\r\n ");
    expect(await response).toContain("413 Payload Too Large");
    socket.destroy();
  }, 60_000);
});
