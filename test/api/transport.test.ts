import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sendRaw } from "../support/raw-http.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const request = (line: string, ...headers: string[]): string =>
  [line, "Host: test", ...headers, "", ""].join("\r\n");
const PING = "GET /v1/ping HTTP/1.1";

/** As docs/api/basics.md has it: the runtime answers these by itself, before the API sees anything of them. */
describe("what the transport refuses has neither body nor id", () => {
  test.each<[string, string, number]>([
    ["no request line", "hello\r\n\r\n", 400],
    ["no Host", `${PING}\r\n\r\n`, 400],
    ["a header without a name", request(PING, ": x"), 400],
    ["a control character in a header", request(PING, "a: \x01"), 400],
    ["a length that is no number", request(PING, "Content-Length: x"), 400],
    ["a length above 2^64", request(PING, "Content-Length: 99999999999999999999"), 400],
    ["a length beside chunks", request(PING, "Content-Length: 1", "Transfer-Encoding: chunked"), 400],
    ["a header of 16 KiB", request(PING, `a: ${"x".repeat(16 * 1024)}`), 431],
    ["200 headers", request(PING, ...Array.from({ length: 200 }, (_, at) => `a${at}: x`)), 431],
    ["HTTP/2.0", request("GET /v1/ping HTTP/2.0"), 505],
  ])("%s", async (_, text, status) => {
    const answer = await sendRaw(server.url, [text]);
    expect({ status: answer?.status, text: answer?.text, id: answer?.headers.get("x-request-id") }).toEqual({
      status,
      text: "",
      id: null,
    });
  });

  test("an unknown method gets no answer", async () => {
    expect(await sendRaw(server.url, [request("FOO /v1/ping HTTP/1.1")])).toBeNull();
  });

  test("15 KiB of headers and 150 headers are taken", async () => {
    for (const headers of [
      [`a: ${"x".repeat(15 * 1024)}`],
      Array.from({ length: 150 }, (_, at) => `a${at}: x`),
    ]) {
      expect((await sendRaw(server.url, [request(PING, ...headers)]))?.status).toBe(200);
    }
  });
});
