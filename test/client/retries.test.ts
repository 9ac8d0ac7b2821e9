import { describe, expect, test } from "bun:test";
import { backoffMs, RETRY_AFTER_MS_MAX } from "../../src/client/abort.ts";
import { Ninefold, NinefoldConnectionError, NinefoldError } from "../../src/client/index.ts";
import { apiError, type StubAnswer, startStub } from "./stub-server.ts";

const KEY = `sm_${"a".repeat(43)}_0123abcd`;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const BUSY = apiError(503, "service_unavailable");
const CARRIED_OUT = apiError(503, "service_unavailable", {}, { carried_out: true });
const LIMITED = apiError(429, "rate_limit_exceeded", { "Retry-After": "0" });
const PROXY = { status: 502, body: "<html>Bad Gateway</html>" };
const CUT: StubAnswer = { instead: "cut" };
const BALANCE = { body: { balance: 7, meter_id: "m" } };

const call = {
  deduct: (nf: Ninefold) => nf.meter("m").deduct(3),
  balance: (nf: Ninefold) => nf.meter("m").balance(),
  verify: (nf: Ninefold) => nf.keys.verify("acme_x"),
  signup: (nf: Ninefold) => nf.signup({ email: "ada@example.com", tier: "free" }),
  send: (nf: Ninefold) => nf.catch.send("brave-otter-314159", "{}"),
  unkeyed: (nf: Ninefold) => nf.meter("m").deduct(3, { idempotencyKey: null }),
  revoke: (nf: Ninefold) => nf.keys.revoke("k"),
  raw: (nf: Ninefold) => nf.request("POST", "/v1/meter/m/deduct", { amount: 3 }),
};

describe("retries", () => {
  test.concurrent.each<[name: keyof typeof call, first: StubAnswer, requests: number]>([
    ["deduct", BUSY, 2],
    ["deduct", LIMITED, 2],
    ["deduct", CUT, 2],
    ["deduct", PROXY, 2],
    ["deduct", { ...PROXY, status: 504 }, 2],
    ["deduct", apiError(409, "conflict", { "Retry-After": "0" }), 2],
    ["deduct", apiError(409, "conflict"), 1],
    ["deduct", apiError(500, "internal_error"), 1],
    ["deduct", apiError(402, "insufficient_balance"), 1],
    ["deduct", { ...PROXY, status: 500 }, 1],
    ["deduct", CARRIED_OUT, 1],
    ["unkeyed", CARRIED_OUT, 1],
    ["revoke", CUT, 2],
    ["raw", CUT, 2],
    ["balance", CUT, 2],
    ["balance", PROXY, 2],
    ["balance", apiError(409, "conflict", { "Retry-After": "0" }), 1],
    ["verify", CUT, 2],
    // These may have happened, and would happen twice.
    ["signup", CUT, 1],
    ["signup", PROXY, 1],
    ["signup", BUSY, 2],
    ["send", CUT, 1],
    ["send", LIMITED, 2],
    ["unkeyed", CUT, 1],
    ["unkeyed", PROXY, 1],
    ["unkeyed", BUSY, 2],
  ])("%s after %o: %i requests", async (name, first, requests) => {
    using stub = await startStub(first, BALANCE);
    const nf = new Ninefold({ url: stub.url, apiKey: KEY, retries: 1 });
    const outcome = await call[name](nf).then(
      () => "answered",
      () => "refused",
    );
    expect(stub.requests).toHaveLength(requests);
    expect(outcome).toBe(requests === 2 ? "answered" : "refused");
  });

  test("throws the last error after all retries", async () => {
    using stub = await startStub(CUT, CUT, BUSY);
    const nf = new Ninefold({ url: stub.url, apiKey: KEY });
    const error = await nf
      .meter("m")
      .deduct(3, { retries: 2 })
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "service_unavailable", status: 503, requestId: "req-1" });
    expect(stub.requests).toHaveLength(3);
  });

  test("counts waiting for a first attempt in progress as one retry, up to the timeout", async () => {
    const running = apiError(409, "conflict", { "Retry-After": "0" });
    using stub = await startStub(CUT, running, running, running, BALANCE);
    const nf = new Ninefold({ url: stub.url, apiKey: KEY, retries: 1 });
    expect(await nf.meter("m").deduct(3)).toEqual({ balance: 7, meter_id: "m" });
    expect(stub.requests).toHaveLength(5);
    using endless = await startStub({ instead: "hang" }, running);
    const hasty = new Ninefold({ url: endless.url, apiKey: KEY, retries: 1, timeoutMs: 1_000 });
    const error = await call.deduct(hasty).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "conflict", status: 409 });
    expect(endless.requests.length).toBeGreaterThanOrEqual(3);
    expect(endless.requests.length).toBeLessThanOrEqual(8);
  });

  test("does not retry with retries 0", async () => {
    using stub = await startStub(BUSY);
    const nf = new Ninefold({ url: stub.url, apiKey: KEY, retries: 0 });
    await expect(nf.ping()).rejects.toThrow("a service_unavailable");
    await nf.ping().catch(() => {});
    expect(stub.requests).toHaveLength(2);
  });

  test("does not retry if Retry-After exceeds the maximum", async () => {
    using stub = await startStub(apiError(429, "rate_limit_exceeded", { "Retry-After": "3600" }));
    const nf = new Ninefold({ url: stub.url, apiKey: KEY });
    const error = await nf.account.rotateKey().catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "rate_limit_exceeded", retryAfterMs: 3_600_000 });
    expect(stub.requests).toHaveLength(1);
  });
});

describe("the Idempotency-Key", () => {
  test("is the same for all retries of a call and different for the next call", async () => {
    using stub = await startStub(CUT, BUSY, BALANCE, BALANCE);
    const nf = new Ninefold({ url: stub.url, apiKey: KEY });
    await nf.meter("m").deduct(3);
    await nf.meter("m").deduct(3);
    const [first, second, third, next] = stub.requests.map(({ idempotencyKey }) => idempotencyKey);
    expect(first).toMatch(UUID);
    expect([second, third]).toEqual([first ?? "", first ?? ""]);
    expect(next).toMatch(UUID);
    expect(next).not.toBe(first ?? "");
    expect(new Set(stub.requests.map(({ body }) => body))).toEqual(new Set(['{"amount":3}']));
  });

  test.each<[string, (nf: Ninefold) => Promise<unknown>, RegExp | string | null]>([
    [
      "the caller's own goes out as given",
      (nf) => nf.meter("m").refill(1, { idempotencyKey: "order 17" }),
      "order 17",
    ],
    ["every change has one", (nf) => nf.keys.revoke("k"), UUID],
    ["a raw change too", (nf) => nf.request("PUT", "/v1/pulse/x", {}), UUID],
    ["and what this client does not know", (nf) => nf.request("POST", "/v2/new", {}), UUID],
    ["null sends none", call.unkeyed, null],
    ["reads have none", call.balance, null],
    ["nor has what only reads, though it is a POST", call.verify, null],
    ["nor lock acquire, whose token does the same", (nf) => nf.locks.acquire("k"), null],
    ["nor a raw lock acquire", (nf) => nf.request("POST", "/v1/latch/k/acquire", {}), null],
    ["nor what takes none", call.signup, null],
  ])("%s", async (_, send, expected) => {
    using stub = await startStub(BALANCE);
    await send(new Ninefold({ url: stub.url, apiKey: KEY }));
    const [request] = stub.requests;
    if (expected instanceof RegExp) expect(request?.idempotencyKey).toMatch(expected);
    else expect(request?.idempotencyKey).toBe(expected);
  });

  test("sends the API key only with requests that require it", async () => {
    using stub = await startStub(BALANCE);
    const nf = new Ninefold({ url: `${stub.url}/`, apiKey: KEY });
    for (const send of [call.balance, call.signup, call.send, (one: Ninefold) => one.ping()]) await send(nf);
    expect(stub.requests.map(({ authorization }) => authorization)).toEqual([
      `Bearer ${KEY}`,
      null,
      null,
      null,
    ]);
  });
});

describe("waits", () => {
  test("are cancelled with the caller's reason", async () => {
    using stub = await startStub(apiError(503, "service_unavailable", { "Retry-After": "20" }));
    const nf = new Ninefold({ url: stub.url, apiKey: KEY });
    const controller = new AbortController();
    const pending = nf.ping({ signal: controller.signal }).catch((thrown) => thrown);
    while (stub.requests.length === 0) await Bun.sleep(1);
    await Bun.sleep(10);
    controller.abort(new Error("the user left"));
    expect(await pending).toEqual(new Error("the user left"));
    expect(stub.requests).toHaveLength(1);
  });

  test("cancels a request in flight, and does not send one that was cancelled before", async () => {
    using stub = await startStub({ instead: "hang" });
    const nf = new Ninefold({ url: stub.url, apiKey: KEY });
    const controller = new AbortController();
    const pending = nf
      .meter("m")
      .deduct(1, { signal: controller.signal })
      .catch((thrown) => thrown);
    while (stub.requests.length === 0) await Bun.sleep(1);
    controller.abort("enough");
    expect(await pending).toBe("enough");
    expect(await nf.ping({ signal: controller.signal }).catch((thrown) => thrown)).toBe("enough");
    expect(stub.requests).toHaveLength(1);
  });

  test("retries an attempt after its timeout", async () => {
    using stub = await startStub({ instead: "hang" }, BALANCE);
    const nf = new Ninefold({ url: stub.url, apiKey: KEY, timeoutMs: 1_000 });
    expect(await nf.meter("m").deduct(1)).toEqual({ balance: 7, meter_id: "m" });
    expect(stub.requests).toHaveLength(2);
  });

  test("returns the fallback of a flag after one attempt", async () => {
    using stub = await startStub({ instead: "hang" }, CUT, BUSY, {
      body: { enabled: true, flag_key: "beta" },
    });
    const nf = new Ninefold({ url: stub.url, apiKey: KEY });
    expect(await nf.flags.isEnabled("beta", { fallback: false, timeoutMs: 50 })).toBe(false);
    expect(await nf.flags.isEnabled("beta", { fallback: true })).toBe(true);
    expect(await nf.flags.isEnabled("beta", { fallback: false })).toBe(false);
    expect(stub.requests).toHaveLength(3);
    expect(await nf.flags.isEnabled("beta", { fallback: false })).toBe(true);
    const given = nf.flags.isEnabled("beta", { fallback: false, signal: AbortSignal.abort("enough") });
    expect(await given.catch((reason) => reason)).toBe("enough");
  });

  test("throws a connection error without retries", async () => {
    using stub = await startStub({ instead: "hang" });
    const error = await new Ninefold({ url: stub.url, apiKey: null, timeoutMs: 50 })
      .ping({ retries: 0 })
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(NinefoldConnectionError);
    expect(error).toMatchObject({ code: "timed_out", status: 0, requestId: null });
    expect(error.message).toBe(`GET ${stub.url}/v1/ping did not respond within 50 ms`);
  });

  test.each([
    [0, null, 0, 250],
    [0, null, 1, 500],
    [1, null, 0.5, 750],
    [4, null, 1, 8_000],
    [30, null, 1, 8_000],
    [0, 1_000, 0, 1_000],
    [0, 1_000, 1, 1_250],
    [0, RETRY_AFTER_MS_MAX, 0, RETRY_AFTER_MS_MAX],
    [0, RETRY_AFTER_MS_MAX + 1, 0, null],
  ])("retry %i, Retry-After %p, chance %p: %p ms", (retry, retryAfterMs, chance, expected) => {
    expect(backoffMs(retry, retryAfterMs, () => chance)).toBe(expected);
  });
});

describe("errors", () => {
  test("contain the fields of the response", async () => {
    const extras = { balance: 2, meter_id: "m" };
    using stub = await startStub(apiError(402, "insufficient_balance", {}, extras));
    const error = await call.deduct(new Ninefold({ url: stub.url, apiKey: KEY })).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(NinefoldError);
    expect({ ...error }).toEqual({
      name: "NinefoldError",
      code: "insufficient_balance",
      status: 402,
      requestId: "req-1",
      docs: null,
      fields: {},
      extras,
      retryAfterMs: null,
      leader: null,
    });
    expect(error.message).toBe("a insufficient_balance");
  });

  test.each<[string, StubAnswer, string]>([
    ["of a proxy", PROXY, "returned 502 without an error of the API"],
    ["that is no JSON", { body: "hello" }, "returned 200 with a body that is not JSON"],
    [
      "that leads elsewhere",
      { status: 301, headers: { Location: "https://ninefold.example.com/v1/ping" } },
      "returned 301 without an error of the API, to https://ninefold.example.com/v1/ping: use that address as url",
    ],
  ])("an answer %s", async (_, answer, message) => {
    using stub = await startStub(answer);
    const error = await new Ninefold({ url: stub.url, apiKey: null, retries: 0 })
      .ping()
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "unexpected_answer", message: `GET ${stub.url}/v1/ping ${message}` });
  });

  test("contain the reason of a failed connection, and never the key", async () => {
    const nf = new Ninefold({ url: "http://127.0.0.1:9", apiKey: KEY, retries: 0 });
    const error = await nf.account.balance().catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "connection_failed", status: 0 });
    expect(error.message).toStartWith("GET http://127.0.0.1:9/v1/meter/balance could not be reached: ");
    expect(Bun.inspect(error)).not.toContain(KEY);
  });
});

describe("options", () => {
  test.each([
    [
      { url: "ninefold.example.com" },
      'url must be an address such as https://ninefold.example.com, not "ninefold.example.com"',
    ],
    [{ url: "ftp://a.example" }, "url must begin with https: or http:, not ftp:"],
    [{ url: "https://me:secret@a.example" }, "url must be an address without user name, password, ? and #"],
    [{ url: "https://a.example/?x=1" }, "url must be an address without user name, password, ? and #"],
    [
      { url: "https://a.example", apiKey: " sm_a_00000000\n" },
      "apiKey must be a key such as sm_<letters and digits>_<8 hex digits>; it is a malformed string of 15 characters",
    ],
    [
      { url: "https://a.example", timeoutMs: 0 },
      "timeoutMs must be from 1 to 2147483647 (milliseconds), not 0",
    ],
    [
      { url: "https://a.example", timeoutMs: 2 ** 31 },
      "timeoutMs must be from 1 to 2147483647 (milliseconds), not 2147483648",
    ],
    [
      { url: process.env["NINEFOLD_NOWHERE"] },
      'url is missing: pass the server\'s address, as in new Ninefold({ url: "https://ninefold.example.com", apiKey })',
    ],
    [
      { url: "" },
      'url is missing: pass the server\'s address, as in new Ninefold({ url: "https://ninefold.example.com", apiKey })',
    ],
    ...[undefined, ""].map(
      (apiKey) =>
        [
          { url: "https://a.example", apiKey },
          "apiKey is missing: pass the account's key (sm_…), as in new Ninefold({ url, apiKey: process.env.NINEFOLD_API_KEY }), or null for calls that need none",
        ] as const,
    ),
    [{ url: "https://a.example", retries: -1 }, "retries must be 0 or a positive integer, not -1"],
  ])("rejects %o", (options, message) => {
    expect(() => new Ninefold({ apiKey: null, ...options })).toThrow(new TypeError(message));
  });

  test("rejects missing options", () => {
    expect(() => Reflect.construct(Ninefold, [])).toThrow("url is missing: pass the server's address");
  });

  test("explains --cors-origins to a page of another origin", async () => {
    const nf = new Ninefold({
      url: "https://api.example/base",
      apiKey: null,
      retries: 0,
      fetch: () => Promise.reject(new TypeError("Failed to fetch")),
    });
    const message = async (): Promise<string> => (await nf.ping().catch((error) => error)).message;
    const plain = "GET https://api.example/base/v1/ping could not be reached: Failed to fetch";
    expect(await message()).toBe(plain);
    try {
      Object.assign(globalThis, { location: { origin: "https://shop.example" } });
      expect(await message()).toBe(
        `${plain}. If the server is running, it may not allow this origin: start it with --cors-origins https://shop.example`,
      );
      Object.assign(globalThis, { location: { origin: "https://api.example" } });
      expect(await message()).toBe(plain);
    } finally {
      Reflect.deleteProperty(globalThis, "location");
    }
  });

  test("keeps a path prefix and encodes parameters", async () => {
    using stub = await startStub(BALANCE);
    const nf = new Ninefold({ url: `${stub.url}/ninefold/`, apiKey: KEY });
    await nf.keys.get("a/b?c");
    await nf.relay.list({ status: "failed", limit: 5 }).page();
    expect(stub.requests.map(({ path }) => path)).toEqual([
      "/ninefold/v1/keys/a%2Fb%3Fc",
      "/ninefold/v1/relay?status=failed&limit=5",
    ]);
    await expect(nf.keys.get("")).rejects.toThrow('id must be a text that is not empty, not ""');
    await expect(nf.meter("..").balance()).rejects.toThrow("meterId must be a text");
    await expect(nf.request("GET", "v1/ping")).rejects.toThrow("path must begin with a slash");
  });
});
