import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { IDLE_TIMEOUT_SECONDS } from "../../src/kernel/http/http.ts";
import { makeHeartbeat } from "../support/heartbeats.ts";
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

/** As docs/api/basics.md describes: the runtime sends these responses itself, before the API sees the request. */
describe("requests rejected by the transport have no body and no request id", () => {
  test.each<[string, string, number]>([
    ["no request line", "hello\r\n\r\n", 400],
    ["no Host", `${PING}\r\n\r\n`, 400],
    ["a header without a name", request(PING, ": x"), 400],
    ["a control character in a header", request(PING, "a: \x01"), 400],
    ["a length that is no number", request(PING, "Content-Length: x"), 400],
    ["a length above 2^64", request(PING, "Content-Length: 99999999999999999999"), 400],
    ["a length together with chunks", request(PING, "Content-Length: 1", "Transfer-Encoding: chunked"), 400],
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

  test("an unknown method gets no response", async () => {
    expect(await sendRaw(server.url, [request("FOO /v1/ping HTTP/1.1")])).toBeNull();
  });

  test("15 KiB of headers and 150 headers are accepted", async () => {
    for (const headers of [
      [`a: ${"x".repeat(15 * 1024)}`],
      Array.from({ length: 150 }, (_, at) => `a${at}: x`),
    ]) {
      expect((await sendRaw(server.url, [request(PING, ...headers)]))?.status).toBe(200);
    }
  });
});

describe("a header that a request must not repeat", () => {
  const BODY_BYTES = 100_000;

  test.each([PING, "GET /no/such/path HTTP/1.1", "GET /docs HTTP/1.1", "GET /v1/gate/f HTTP/1.1"])(
    "two Host headers: %s",
    async (line) => {
      for (const second of ["other", "test"]) {
        const answer = await sendRaw(server.url, [request(line, `Host: ${second}`)]);
        expect([answer?.status, answer?.body["code"]]).toEqual([400, "invalid_request"]);
      }
    },
  );

  test("two Content-Length headers: the limit of bodies holds", async () => {
    const length = `Content-Length: ${BODY_BYTES}`;
    const login = request("POST /v1/session HTTP/1.1", length, length);
    const answer = await sendRaw(server.url, [login, "x".repeat(BODY_BYTES)]);
    expect([answer?.status, answer?.body["code"]]).toEqual([400, "invalid_request"]);
  });
});

describe("a target that is not normalized is rejected with 400", () => {
  const keyed = (line: string): string => request(line, `Authorization: Bearer ${server.key}`);

  test.each([
    "/v1/gate/..",
    "/v1/gate/.",
    "/v1/meter/%2e%2E/balance",
    "/v1/meter/./balance",
    "/v1/meter/a/../balance",
    "/v1/meter/a\\b/balance",
    "/v1/meter/a\\../balance",
    "/v1/meter/%5c\\/balance",
    "/v1\\meter/balance",
    "/v1/keys/../meter/balance",
  ])("%s", async (path) => {
    const answer = await sendRaw(server.url, [keyed(`GET ${path} HTTP/1.1`)]);
    expect(answer?.body).toMatchObject({ code: "invalid_request" });
    expect(answer?.status).toBe(400);
    const without = await sendRaw(server.url, [request(`GET ${path} HTTP/1.1`)]);
    expect(without?.status).toBe(401);
  });

  test("outside the API as well", async () => {
    for (const path of ["/status/..", "/docs/../openapi.json"]) {
      const answer = await sendRaw(server.url, [request(`GET ${path} HTTP/1.1`)]);
      expect([path, answer?.status]).toEqual([path, 400]);
    }
  });

  test("an encoded backslash is part of a value", async () => {
    const answer = await sendRaw(server.url, [keyed("GET /v1/gate/a%5Cb HTTP/1.1")]);
    expect(answer?.body).toMatchObject({ code: "validation_error" });
  });

  test("dots within a segment, a query or a fragment are unchanged", async () => {
    for (const target of [
      "/v1/meter/a..b/balance",
      "/v1/meter/.../balance",
      "/v1/meter/a/balance?x=../..\\",
    ]) {
      const answer = await sendRaw(server.url, [keyed(`GET ${target} HTTP/1.1`)]);
      expect([target, answer?.body["code"]]).not.toEqual([target, "invalid_request"]);
    }
  });
});

/** The runtime discards the response in progress when the next request arrives: docs/api/basics.md says so. */
describe("pipelined requests", () => {
  const keyed = (path: string, body: string, key: string): string =>
    `${request(
      `POST ${path} HTTP/1.1`,
      `Authorization: Bearer ${server.key}`,
      `Idempotency-Key: ${key}`,
      `Content-Length: ${body.length}`,
    )}${body}`;

  test("the connection is closed, and a retry gets the stored response of a change that was made", async () => {
    const refill = keyed("/v1/meter/pipelined/refill", '{"amount":7}', "pipelined");
    expect(await sendRaw(server.url, [refill + request(PING)])).toBeNull();
    const retried = await sendRaw(server.url, [refill]);
    expect(retried?.headers.get("idempotent-replayed")).toBe("true");
    const balance = await server.operator.get("/v1/meter/pipelined/balance");
    expect(balance.body["balance"]).toBe(7);
  });
});

/** The runtime takes trailer fields for the next request, and rejects it in place of the response. */
describe("trailer fields of a body in chunks", () => {
  const keyed = (path: string, ...headers: string[]): string =>
    request(
      `POST ${path} HTTP/1.1`,
      `Authorization: Bearer ${server.key}`,
      "Transfer-Encoding: chunked",
      ...headers,
    );
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const TRAILER = "0\r\nX-Checksum: 1\r\n\r\n";

  async function balance(meter: string): Promise<unknown> {
    const { body } = await server.operator.get(`/v1/meter/${meter}/balance`);
    return body["balance"];
  }

  test("a change with announced ones is rejected with a reason, and not made", async () => {
    const head = keyed("/v1/meter/announced/refill", "Trailer: X-Checksum");
    const answer = await sendRaw(server.url, [head + chunk('{"amount":5}') + TRAILER]);
    expect([answer?.status, answer?.body["code"]]).toEqual([400, "invalid_request"]);
    expect(answer?.text).toContain("Trailer fields");
    expect(await balance("announced")).toBe(0);
  });

  test.each([
    ["in one piece", (body: string) => [body + TRAILER]],
    ["behind the body", (body: string) => [body, TRAILER]],
  ])("a change with others gets a bare 400, and is not made: %s", async (name, pieces) => {
    const meter = `trailer-${name.replaceAll(" ", "-")}`;
    const [first = "", ...rest] = pieces(chunk('{"amount":5}'));
    const answer = await sendRaw(server.url, [keyed(`/v1/meter/${meter}/refill`) + first, ...rest]);
    expect([answer?.status, answer?.text]).toEqual([400, ""]);
    expect(await balance(meter)).toBe(0);
  });

  test("with an Idempotency-Key, the request can be repeated without them", async () => {
    const key = "Idempotency-Key: trailer-1";
    const path = "/v1/meter/repeated/refill";
    const body = chunk('{"amount":5}');
    expect((await sendRaw(server.url, [keyed(path, key) + body + TRAILER]))?.status).toBe(400);
    const repeated = await sendRaw(server.url, [`${keyed(path, key)}${body}0\r\n\r\n`]);
    expect([repeated?.status, repeated?.headers.get("idempotent-replayed")]).toEqual([200, null]);
    expect(await balance("repeated")).toBe(5);
  });

  test("an event with them is not stored", async () => {
    const terms = { target_url: "https://example.com/hook" };
    const { body: bucket } = await server.operator.post("/v1/catch/buckets", terms);
    const path = new URL(String(bucket["ingest_url"])).pathname;
    expect((await sendRaw(server.url, [keyed(path) + chunk("{}") + TRAILER]))?.status).toBe(400);
    expect((await sendRaw(server.url, [`${keyed(path)}${chunk("{}")}0\r\n\r\n`]))?.status).toBe(200);
    const { body } = await server.operator.get(`/v1/catch/${bucket["id"]}/events`);
    expect(body["events"]).toHaveLength(1);
  });

  test("an operation without a body is not carried out", async () => {
    const heartbeat = await makeHeartbeat(server, server.operator, { period_ms: 60_000 });
    const ping = keyed(heartbeat.path) + chunk("x");
    expect((await sendRaw(server.url, [ping + TRAILER]))?.status).toBe(400);
    expect((await heartbeat.view())["status"]).toBe("unknown");
    expect((await sendRaw(server.url, [`${ping}0\r\n\r\n`]))?.status).toBe(200);
    expect((await heartbeat.view())["status"]).toBe("up");
  });

  test("the runtime still has this behavior: without it, the checks of trailers.ts can go", async () => {
    using bare = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (given) => {
        await given.text();
        await Bun.sleep(10);
        return new Response("ok");
      },
    });
    const answer = await sendRaw(bare.url.href, [keyed("/") + chunk("x") + TRAILER]);
    expect(answer?.status).toBe(400);
  });
});

describe("Expect", () => {
  const body = '{"amount":1}';
  const expecting = (value: string): string =>
    request(
      "POST /v1/meter/expect/refill HTTP/1.1",
      `Authorization: Bearer ${server.key}`,
      `Expect: ${value}`,
      `Content-Length: ${body.length}`,
    );

  test("100-continue gets 100 before the body is sent", async () => {
    expect((await sendRaw(server.url, [expecting("100-continue")]))?.status).toBe(100);
  });

  test("in capitals it gets the response once the body is there", async () => {
    expect((await sendRaw(server.url, [expecting("100-Continue"), body]))?.status).toBe(200);
  });

  test("the runtime still ignores it in capitals: if not, docs/deployment.md need not say so", async () => {
    expect(await sendRaw(server.url, [expecting("100-Continue")], 200)).toBeNull();
  });
});

test.each([
  ["AWS Application Load Balancer", 60],
  ["nginx", 60],
  ["Traefik", 90],
  ["Caddy", 120],
])("idle connections stay open for longer than those of %s: %d s", (_, seconds) => {
  // The runtime closes them up to 4 s early.
  expect(IDLE_TIMEOUT_SECONDS - 4).toBeGreaterThan(seconds);
});
