import { describe, expect, test } from "bun:test";
import { createCors } from "../../../../src/kernel/http/responses/response.ts";

const APP = "https://app.example.com";
const OTHER = "http://localhost:5173";

function decorated(origins: readonly string[], headers: Record<string, string>): Record<string, string> {
  const answer = new Headers({ "content-type": "application/json" });
  createCors(origins).decorate(new Request("http://localhost/", { headers }), answer);
  return Object.fromEntries(answer);
}

function preflight(origins: readonly string[], headers: Record<string, string>, method = "OPTIONS") {
  return createCors(origins).preflight(new Request("http://localhost/", { method, headers }));
}

const ASKING = { "access-control-request-method": "POST" };

describe("without listed origins", () => {
  test("no origin gets CORS headers or preflight responses", () => {
    expect(decorated([], { origin: APP })).toEqual({ "content-type": "application/json" });
    expect(preflight([], { origin: APP, ...ASKING })).toBeNull();
  });
});

describe("with listed origins", () => {
  test.each([APP, OTHER])("%s is allowed and can read the headers", (origin) => {
    expect(decorated([APP, OTHER], { origin })).toEqual({
      "content-type": "application/json",
      vary: "Origin",
      "access-control-allow-origin": origin,
      "access-control-expose-headers":
        "etag, x-request-id, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, idempotent-replayed, x-witness-status, x-next-cursor",
    });
  });

  test.each([
    ["another origin", { origin: "https://evil.example.com" }],
    ["the same name on another scheme", { origin: "http://app.example.com" }],
    ["the same name on another port", { origin: "https://app.example.com:8443" }],
    ["a name that ends in it", { origin: "https://evil-app.example.com" }],
    ["a name that begins with it", { origin: "https://app.example.com.evil.com" }],
    ["the opaque origin", { origin: "null" }],
    ["no origin at all", {}],
  ])("%s gets only Vary", (_, headers) => {
    const answer = decorated([APP, OTHER], headers as Record<string, string>);
    expect(answer).toEqual({ "content-type": "application/json", vary: "Origin" });
    expect(preflight([APP, OTHER], { ...(headers as Record<string, string>), ...ASKING })).toBeNull();
  });

  test("a preflight request of a listed origin gets 204 with the allowed methods and headers", () => {
    expect(preflight([APP], { origin: APP, ...ASKING })).toEqual({
      status: 204,
      text: "",
      headers: {
        "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
        "access-control-allow-headers":
          "authorization, content-type, idempotency-key, if-none-match, x-api-key, last-event-id, cache-control, x-ninefold-project",
        "access-control-max-age": "600",
      },
    });
  });

  describe("a preflight response allows the other headers that the request names", () => {
    /** Those that are allowed in addition to the usual ones. */
    function further(named: string): string[] {
      const answer = preflight([APP], { origin: APP, ...ASKING, "access-control-request-headers": named });
      const all = String(answer?.headers?.["access-control-allow-headers"]).split(", ");
      return all.slice(all.indexOf("x-ninefold-project") + 1);
    }
    const many = Array.from({ length: 33 }, (_, at) => `x-${at}`);

    test.each([
      ["those of tracing", "baggage,traceparent,tracestate", ["baggage", "traceparent", "tracestate"]],
      ["in any case, with blanks, once", "Sentry-Trace , b3,B3", ["sentry-trace", "b3"]],
      ["none that is allowed anyway", "authorization,content-type,if-none-match", []],
      ["none that is no name", "a b, x:y, ,x-\u00e9,x-ok", ["x-ok"]],
      ["at most 32", many.join(","), many.slice(0, 32)],
    ])("%s", (_, named, expected) => expect(further(named)).toEqual(expected));
  });

  test("an OPTIONS request without a known method is not a preflight request", () => {
    expect(preflight([APP], { origin: APP })).toBeNull();
    expect(preflight([APP], { origin: APP, ...ASKING }, "POST")).toBeNull();
  });
});
