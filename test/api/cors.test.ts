import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Answer, Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const LISTED = "https://app.example.com";
const ALSO_LISTED = "http://localhost:5173";
const OTHERS = [
  "https://evil.example.com",
  "http://app.example.com",
  `${LISTED}:444`,
  `${LISTED}.evil.com`,
  "null",
];

let open: TestServer;
let closed: TestServer;
beforeAll(async () => {
  open = await startTestServer({ manualClock: true, args: ["--cors-origins", `${LISTED},${ALSO_LISTED}`] });
  closed = await startTestServer({ manualClock: true });
});
afterAll(() => Promise.all([open.stop(), closed.stop()]));

function from(origin: string, more: Record<string, string> = {}): { headers: Record<string, string> } {
  return { headers: { origin, ...more } };
}

function preflight(client: Client, origin: string, path = "/v1/meter/m/deduct"): Promise<Answer> {
  const headers = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,idempotency-key",
  };
  return client.send("OPTIONS", path, undefined, from(origin, headers));
}

/** The CORS headers of a response. */
function corsOf({ headers }: Answer): string[] {
  return [...headers.keys()].filter((name) => name.startsWith("access-control-")).sort();
}

describe("a listed origin", () => {
  test.each([LISTED, ALSO_LISTED])("%s can read responses and their headers", async (origin) => {
    const answer = await open.operator.get("/v1/meter/balance", from(origin));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
    expect(answer.headers.get("vary")).toBe("Origin");
    const exposed = answer.headers.get("access-control-expose-headers") ?? "";
    expect(exposed.split(", ").sort()).toEqual([
      "etag",
      "idempotent-replayed",
      "retry-after",
      "x-next-cursor",
      "x-ratelimit-limit",
      "x-ratelimit-remaining",
      "x-ratelimit-reset",
      "x-request-id",
      "x-witness-status",
    ]);
    expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
  });

  test("can read errors", async () => {
    const nobody = open.client(null);
    for (const [path, code] of [
      ["/v1/meter/balance", "unauthorized"],
      ["/nowhere", "not_found"],
    ] as const) {
      const answer = await nobody.get(path, from(LISTED));
      expectError(answer, code);
      expect(answer.headers.get("access-control-allow-origin")).toBe(LISTED);
    }
  });

  test("gets 204 with methods and headers for a preflight without a key", async () => {
    const answer = await preflight(open.client(null), LISTED);
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: "" });
    expect(answer.headers.get("access-control-allow-origin")).toBe(LISTED);
    expect(answer.headers.get("access-control-allow-methods")).toBe("GET, HEAD, POST, PUT, PATCH, DELETE");
    expect(answer.headers.get("access-control-allow-headers")).toBe(
      "authorization, content-type, idempotency-key, if-none-match, x-api-key, last-event-id, cache-control, x-ninefold-project",
    );
    expect(answer.headers.get("access-control-max-age")).toBe("600");
    expect(answer.headers.get("vary")).toBe("Origin");
    expect(answer.headers.get("x-request-id")).not.toBeNull();
    expect(answer.headers.get("content-type")).toBeNull();
  });

  test("OPTIONS without a preflight is an unknown route", async () => {
    expectError(await open.client(null).send("OPTIONS", "/v1/ping", undefined, from(LISTED)), "unauthorized");
    expectError(await open.operator.send("OPTIONS", "/v1/ping", undefined, from(LISTED)), "not_found");
  });
});

describe("any other origin", () => {
  test.each(OTHERS)("%s gets a response without CORS headers", async (origin) => {
    const answer = await open.operator.get("/v1/meter/balance", from(origin));
    expect(answer.status).toBe(200);
    expect(corsOf(answer)).toEqual([]);
    expect(answer.headers.get("vary")).toBe("Origin");
  });

  test.each(OTHERS)("%s gets no preflight response", async (origin) => {
    const answer = await preflight(open.client(null), origin);
    expectError(answer, "unauthorized");
    expect(corsOf(answer)).toEqual([]);
  });

  test("a request without an origin is served as usual", async () => {
    const answer = await open.operator.get("/v1/meter/balance");
    expect(answer.status).toBe(200);
    expect(corsOf(answer)).toEqual([]);
    expect(answer.headers.get("vary")).toBe("Origin");
  });
});

describe("without a list", () => {
  test.each([LISTED, "null"])("no origin gets CORS headers: %s", async (origin) => {
    const answer = await closed.operator.get("/v1/meter/balance", from(origin));
    expect(answer.status).toBe(200);
    expect(corsOf(answer)).toEqual([]);
    expect(answer.headers.get("vary")).toBeNull();
    const asked = await preflight(closed.client(null), origin);
    expectError(asked, "unauthorized");
    expect(corsOf(asked)).toEqual([]);
    expectError(await preflight(closed.client(null), origin, "/nowhere"), "not_found");
  });
});
