import { describe, expect, test } from "bun:test";
import { inspect } from "node:util";
import { Ninefold } from "../../src/client/index.ts";
import { apiError, startStub } from "./stub-server.ts";
import { createRecorder } from "./support.ts";

const KEY = `sm_${"a".repeat(43)}_0123abcd`;
/** Nothing listens there, and nothing is to be sent. */
const NOBODY_URL = "http://127.0.0.1:9";

describe("the key of a client", () => {
  const nf = new Ninefold({ url: NOBODY_URL, apiKey: KEY, retries: 0 });

  test.each<[string, unknown]>([
    ["the client", nf],
    ["a part of it", nf.locks],
    ["a meter", nf.meter("m")],
    ["a list", nf.keys.list()],
    ["one made of it", nf.withKey(KEY)],
  ])("is not printed with %s", (_, value) => {
    const shown = [
      inspect(value, { depth: null, showHidden: true }),
      Bun.inspect(value, { depth: 20 }),
      JSON.stringify(value),
      String(value),
    ];
    expect(shown.join("\n")).not.toContain(KEY);
  });

  test("is not printed with an error", async () => {
    const error = await nf.account.balance().catch((thrown) => thrown);
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain(KEY);
  });

  test("is sent with requests, and another key with another client", async () => {
    using stub = await startStub({});
    const other = KEY.replace("a", "b");
    const first = new Ninefold({ url: stub.url, apiKey: KEY });
    await first.account.balance();
    await first.withKey(other).account.balance();
    await first.withKey(null).account.balance();
    expect(stub.requests.map(({ authorization }) => authorization)).toEqual([
      `Bearer ${KEY}`,
      `Bearer ${other}`,
      null,
    ]);
  });

  test.each([KEY, "http://me:secret@127.0.0.1:99999"])("a secret in the URL is not repeated", (url) => {
    expect(() => new Ninefold({ url, apiKey: KEY })).toThrow(
      new TypeError(
        `url must be an address such as https://ninefold.example.com, not a malformed string of ${url.length} characters`,
      ),
    );
  });
});

describe("an idempotencyKey", () => {
  test.each([
    [""],
    [" "],
    [" a"],
    ["a "],
    ["\ta"],
    ["a\nb"],
    ["ü"],
    ["заказ"],
    ["x".repeat(256)],
    [5 as never],
  ])("rejects %p before a request is sent", async (idempotencyKey) => {
    const recorder = createRecorder();
    const nf = new Ninefold({ url: NOBODY_URL, apiKey: KEY, fetch: recorder.fetch });
    const error = await nf
      .meter("m")
      .deduct(1, { idempotencyKey })
      .catch((thrown) => thrown);
    expect(error).toEqual(
      new TypeError(
        "idempotencyKey must be 1 to 255 printable ASCII characters without spaces around them, or null for none",
      ),
    );
    expect(recorder.requests).toEqual([]);
  });

  test.each(["a", "a b", "~!", "x".repeat(255)])("sends %p unchanged", async (idempotencyKey) => {
    using stub = await startStub({});
    await new Ninefold({ url: stub.url, apiKey: KEY }).meter("m").deduct(1, { idempotencyKey });
    expect(stub.requests[0]?.idempotencyKey).toBe(idempotencyKey);
  });
});

describe("other arguments", () => {
  const nf = new Ninefold({ url: NOBODY_URL, apiKey: KEY, retries: 0 });

  test("throws a TypeError for half of a surrogate pair", async () => {
    const error = await nf.keys.get("a\ud800").catch((thrown) => thrown);
    expect(error).toEqual(new TypeError('id must be a text of whole characters, not "a\\ud800"'));
    expect(await nf.keys.get("😀").catch(({ code }) => code)).toBe("connection_failed");
  });

  test("rejects an invalid Date with a TypeError", async () => {
    const error = await nf.catch.events.deleteBefore("b", new Date("soon")).catch((thrown) => thrown);
    expect(error).toEqual(new TypeError("before must be a valid time, not an invalid Date"));
  });

  test("accepts the longest timeout for locks, which add the wait", async () => {
    using stub = await startStub(apiError(408, "timeout"));
    const patient = new Ninefold({ url: stub.url, apiKey: KEY, timeoutMs: 2 ** 31 - 1 });
    expect(await patient.locks.acquire("k").catch(({ code }) => code)).toBe("timeout");
    expect(stub.requests).toHaveLength(1);
  });

  test.each([Number.NaN, -1, 0.5])("rejects %p retries of a lock", async (retries) => {
    const error = await nf.locks.acquire("k", { retries }).catch((thrown) => thrown);
    expect(error).toEqual(new TypeError(`retries must be 0 or a positive integer, not ${retries}`));
  });

  test("accepts a method in lower case", async () => {
    using stub = await startStub({});
    const lower = new Ninefold({ url: stub.url, apiKey: KEY });
    await lower.request("patch" as "PATCH", "/v1/projects/p", {});
    await lower.request("get" as "GET", "/v1/projects/p");
    expect(stub.requests.map(({ method }) => method)).toEqual(["PATCH", "GET"]);
    expect(stub.requests[1]?.idempotencyKey).toBeNull();
  });
});
