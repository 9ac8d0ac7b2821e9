import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { type Assertions, optionsOf } from "../../../../src/areas/monitors/options.ts";
import { failureOf } from "../../../../src/areas/monitors/targets/assertions.ts";
import { expectError } from "../../../support/errors.ts";
import { leastMs, processorMs } from "../../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { type SinkAnswer, WebhookSink } from "../../../support/webhook-sink.ts";

const KIB_64 = 64 * 1024;

let server: TestServer;
let account: AccountClient;
let site: WebhookSink;
beforeAll(async () => {
  site = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(async () => {
  await server.stop();
  site.stop();
});
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
});

/** The result of one check of a monitor with these assertions. */
async function checked(assertions: object, answer: SinkAnswer): Promise<readonly unknown[]> {
  site.answers(answer);
  const created = await account.post("/v1/pulse", { url: site.url(), interval: 300_000, ...assertions });
  expect(created.status).toBe(201);
  await account.post(`/v1/pulse/${created.body["id"]}/check`);
  const { body } = await account.get(`/v1/pulse/${created.body["id"]}/history`);
  const [{ status, error, response_status }] = body["checks"] as [Record<string, unknown>];
  return [status, error, response_status];
}

const text = (body: string, headers: Record<string, string> = {}) => new Response(body, { headers });
const json = (body: unknown) => text(JSON.stringify(body));

describe("accept_status", () => {
  for (const [accepted, status, error] of [
    [["200"], 200, null],
    [["200"], 204, "status: 204"],
    [["200-299"], 299, null],
    [["200-299"], 300, "status: 300"],
    [["200-299"], 199 + 301, "status: 500"],
    [["404", "500-599"], 404, null],
    [["404", "500-599"], 503, null],
    [["404", "500-599"], 200, "status: 200"],
    [null, 404, "the target responded with 404"],
    [null, 399, null],
  ] as const) {
    test(`${accepted ?? "none"}: ${status} is ${error ?? "up"}`, async () => {
      expect(await checked({ accept_status: accepted }, status)).toEqual([
        error === null ? "up" : "down",
        error,
        status,
      ]);
    });
  }

  test("redirects are followed first", async () => {
    site.answersBy(({ path }) =>
      path === "/end" ? 200 : new Response(null, { status: 302, headers: { Location: "/end" } }),
    );
    const { body } = await account.post("/v1/pulse", {
      url: site.url(),
      interval: 300_000,
      accept_status: ["200"],
    });
    expect((await account.post(`/v1/pulse/${body["id"]}/check`)).body).toMatchObject({ status: "up" });
  });
});

describe("keyword and keyword_absent", () => {
  const missing = "keyword: not found in the first 64 KiB";
  const there = "keyword_absent: found in the first 64 KiB";
  const cases: readonly (readonly [string, object, string, string | null])[] = [
    ["is there", { keyword: "All good" }, "<p>All good</p>", null],
    ["is not there", { keyword: "All good" }, "<p>all good</p>", missing],
    ["of other characters", { keyword: "größe \u{1f642}" }, "x größe \u{1f642} y", null],
    ["ends at 64 KiB", { keyword: "end" }, `${"x".repeat(KIB_64 - 3)}end${"x".repeat(10)}`, null],
    ["ends behind 64 KiB", { keyword: "end" }, `${"x".repeat(KIB_64 - 2)}end${"x".repeat(10)}`, missing],
    ["in an empty body", { keyword: "x" }, "", missing],
    ["absent", { keyword_absent: "Exception" }, "fine", null],
    ["not absent", { keyword_absent: "Exception" }, "an Exception", there],
    ["absent in the first 64 KiB", { keyword_absent: "end" }, `${"x".repeat(KIB_64)}end`, null],
    ["both", { keyword: "a", keyword_absent: "b" }, "ab", there],
  ];
  for (const [name, assertions, body, error] of cases) {
    test(name, async () => {
      expect((await checked(assertions, text(body))).slice(0, 2)).toEqual([
        error === null ? "up" : "down",
        error,
      ]);
    });
  }

  test("the status is checked first", async () => {
    expect(await checked({ keyword: "x" }, new Response("x", { status: 500 }))).toEqual([
      ...["down", "the target responded with 500", 500],
    ]);
  });
});

describe("a body that is compressed although nothing was requested", () => {
  const page = `<p>All good</p>${" ".repeat(20_000)}`;
  const sent = (bytes: Uint8Array, coding: string) =>
    new Response(bytes, { headers: { "Content-Encoding": coding } });
  const undecodable = (coding: string) => `body: the Content-Encoding ${coding} cannot be decoded`;

  test.each([
    ["gzip", gzipSync(page)],
    ["x-gzip", gzipSync(page)],
    ["GZIP", gzipSync(page)],
    ["deflate", deflateSync(page)],
    ["deflate", deflateRawSync(page)],
    ["br", brotliCompressSync(page)],
    ["gzip, br", brotliCompressSync(gzipSync(page))],
    ["identity", Buffer.from(page)],
    ["utf-8", Buffer.from(page)],
  ])("%s is decoded", async (coding, bytes) => {
    expect((await checked({ keyword: "All good" }, sent(bytes, coding)))[1]).toBeNull();
    expect((await checked({ keyword_absent: "All good" }, sent(bytes, coding)))[1]).toBe(
      "keyword_absent: found in the first 64 KiB",
    );
  });

  test("JSON is decoded, too", async () => {
    const assertion = { json_path: "$.state", json_op: "==", json_value: "UP" };
    expect((await checked(assertion, sent(gzipSync('{"state":"UP"}'), "gzip")))[1]).toBeNull();
  });

  test.each([
    ["zstd", Buffer.from("x")],
    ["gzip", Buffer.from("no gzip")],
    ["gzip, gzip, gzip", gzipSync(gzipSync(gzipSync(page)))],
  ])("%s that cannot be decoded is an error of each assertion on the body", async (coding, bytes) => {
    expect((await checked({ keyword: "x" }, sent(bytes, coding)))[1]).toBe(undecodable(coding));
    expect((await checked({ keyword_absent: "x" }, sent(bytes, coding)))[1]).toBe(undecodable(coding));
  });

  test("at most 64 KiB of it are read, however much it would be", async () => {
    const at = (before: number) => gzipSync(`${"x".repeat(before)}here${"x".repeat(50_000_000)}`);
    expect((await checked({ keyword: "here" }, sent(at(KIB_64 - 4), "gzip")))[1]).toBeNull();
    expect((await checked({ keyword: "here" }, sent(at(KIB_64 - 3), "gzip")))[1]).toBe(
      "keyword: not found in the first 64 KiB",
    );
    const long = gzipSync(JSON.stringify({ v: "x".repeat(KIB_64) }));
    expect((await checked({ json_path: "$.v", json_op: "exists" }, sent(long, "gzip")))[1]).toBe(
      "json: the body is longer than 64 KiB",
    );
  });

  test("what is cut off by the limit is decoded as far as it goes", async () => {
    const noise = Buffer.concat([Buffer.from("All good"), crypto.getRandomValues(Buffer.alloc(2 * KIB_64))]);
    for (const [coding, bytes] of [
      ["gzip", gzipSync(noise)],
      ["br", brotliCompressSync(noise)],
    ] as const)
      expect((await checked({ keyword: "All good" }, sent(bytes, coding)))[1]).toBeNull();
  });
});

describe("a body in another charset than UTF-8", () => {
  const latin = (text: string) => Buffer.from(text, "latin1");
  const utf16 = (text: string) => Buffer.from(text, "utf16le");
  const cases: readonly (readonly [what: string, keyword: string, bytes: Uint8Array, type: string])[] = [
    ["ISO-8859-1, by its header", "größe", latin("x größe y"), "text/html; charset=ISO-8859-1"],
    ["in quotes, in capitals", "größe", latin("x größe y"), 'text/html; Charset="Latin1"'],
    ["GBK, by its header", "你好", Buffer.from([0x78, 0xc4, 0xe3, 0xba, 0xc3]), "text/plain;charset=gbk"],
    ["UTF-16, by its header", "größe", utf16("x größe y"), "text/plain; charset=utf-16"],
    [
      "UTF-16, by its byte order mark",
      "größe",
      Buffer.concat([latin("\xff\xfe"), utf16("größe")]),
      "text/plain",
    ],
    [
      "UTF-16BE, by its byte order mark, before the header",
      "größe",
      Buffer.concat([latin("\xfe\xff"), utf16("größe").swap16()]),
      "text/plain; charset=utf-8",
    ],
    ["by meta charset", "größe", latin('<html><meta charset="iso-8859-1">größe'), "text/html"],
    [
      "by meta http-equiv",
      "größe",
      latin("<META http-equiv=Content-Type content='text/html; charset=windows-1252'>größe"),
      "text/html",
    ],
    [
      "by the declaration of XML",
      "größe",
      latin('<?xml version="1.0" encoding="ISO-8859-1"?>größe'),
      "text/xml",
    ],
    ["UTF-8 with a byte order mark", "größe", Buffer.from("\ufeffgröße"), "text/plain"],
    ["UTF-8 for an unknown charset", "größe", Buffer.from("größe"), "text/plain; charset=utf8mb4"],
    [
      "UTF-8 for a meta that cannot be true",
      "größe",
      Buffer.from('<meta charset="utf-16">größe'),
      "text/html",
    ],
    ["UTF-8 without any", "größe", Buffer.from("größe"), "text/html"],
  ];
  test.each(cases)("%s", async (_, keyword, bytes, type) => {
    const page = () => new Response(bytes, { headers: { "Content-Type": type } });
    expect((await checked({ keyword }, page()))[1]).toBeNull();
    expect((await checked({ keyword_absent: keyword }, page()))[1]).toBe(
      "keyword_absent: found in the first 64 KiB",
    );
  });

  test("JSON with a byte order mark is JSON", async () => {
    const answer = new Response('\ufeff{"v":1}');
    expect((await checked({ json_path: "$.v", json_op: "==", json_value: 1 }, answer))[1]).toBeNull();
  });
});

describe("json", () => {
  const value = (found: unknown, op: string, wanted: unknown) =>
    checked({ json_path: "$.v", json_op: op, json_value: wanted }, json({ v: found }));
  const long = "é".repeat(200);
  const cases: readonly (readonly [found: unknown, op: string, wanted: unknown, error: string | null])[] = [
    ["UP", "==", "UP", null],
    ["DOWN", "==", "UP", '$.v is "DOWN", not "UP"'],
    [1, "==", "1", '$.v is 1, not "1"'],
    [0, "==", false, "$.v is 0, not false"],
    [null, "==", null, null],
    [{ a: 1 }, "==", null, '$.v is {"a":1}, not null'],
    [long, "==", "x", `$.v is "${"é".repeat(99)}…, not "x"`],
    ["a", "!=", "b", null],
    ["a", "!=", "a", '$.v is "a", not other than "a"'],
    [4, "<", 5, null],
    [5, "<", 5, "$.v is 5, not below 5"],
    [5, "<=", 5, null],
    [6, "<=", 5, "$.v is 6, not at most 5"],
    [5.5, ">", 5, null],
    [5, ">", 5, "$.v is 5, not above 5"],
    [5, ">=", 5, null],
    ["9", ">=", 5, '$.v is "9", not at least 5'],
    [["a", "b"], "contains", "b", null],
    [[1, 2], "contains", 2, null],
    [["ab"], "contains", "b", '$.v is ["ab"], without "b"'],
    ["abc", "contains", "bc", null],
    ["123", "contains", 2, '$.v is "123", without 2'],
    [{ b: 1 }, "contains", "b", '$.v is {"b":1}, without "b"'],
    [null, "exists", undefined, null],
  ];
  /** 2^53 + 1, which a double cannot hold. */
  const odd = "9007199254740993";
  const numbers: readonly (readonly [found: string, op: string, wanted: unknown, error: string | null])[] = [
    [odd, "==", 2 ** 53, `$.v is ${odd}, not 9007199254740992`],
    [odd, "!=", 2 ** 53, null],
    [odd, ">", 2 ** 53, null],
    [odd, "<=", 2 ** 53, `$.v is ${odd}, not at most 9007199254740992`],
    [odd, "==", odd, null],
    [`[1, ${odd}]`, "contains", odd, null],
    [`[${odd}]`, "contains", 2 ** 53, `$.v is [${odd}], without 9007199254740992`],
    ["-1e400", "<", 0, null],
    ["1.0", "==", 1, null],
    ["0.10000000000000001", "==", 0.1, null],
    ["1e-7", ">", 0, null],
  ];
  test.each(numbers)("all digits of numbers count: %s %s %j", async (found, op, wanted, error) => {
    const answer = text(`{"v": ${found}}`);
    const assertion = { json_path: "$.v", json_op: op, json_value: wanted };
    expect((await checked(assertion, answer))[1]).toBe(error === null ? null : `json: ${error}`);
  });

  test("a value that a double cannot hold is rejected, also in an update", async () => {
    const terms = `"json_path": "$.v", "json_op": "==", "json_value": ${odd}`;
    const url = JSON.stringify(site.url());
    const created = await account.post("/v1/pulse", `{"url": ${url}, "interval": 300000, ${terms}}`);
    expectError(created, "validation_error");
    expect(created.text).toContain("json_value is a number that JSON readers cannot carry exactly");
    const { body } = await account.post("/v1/pulse", { url: site.url(), interval: 300_000 });
    expectError(await account.put(`/v1/pulse/${body["id"]}`, `{${terms}}`), "validation_error");
  });

  for (const [found, op, wanted, error] of cases) {
    test(`${JSON.stringify(found)?.slice(0, 20)} ${op} ${JSON.stringify(wanted)}`, async () => {
      expect((await value(found, op, wanted)).slice(0, 2)).toEqual([
        error === null ? "up" : "down",
        error === null ? null : `json: ${error}`,
      ]);
    });
  }

  test("a missing value fails every comparison", async () => {
    for (const [op, wanted] of [
      ["==", null],
      ["!=", "x"],
      ["exists", undefined],
    ]) {
      const assertion = { json_path: "$.a.b", json_op: op, json_value: wanted };
      expect((await checked(assertion, json({ a: {} })))[1]).toBe("json: there is no $.a.b");
    }
  });

  test("a byte order mark is not part of the text", async () => {
    expect((await checked({ json_path: "$", json_value: 1 }, text("\ufeff1")))[0]).toBe("up");
  });

  const hostile: readonly (readonly [string, string, string])[] = [
    ["no JSON", "<html>", "json: the body is not JSON"],
    ["nothing", "", "json: the body is not JSON"],
    ["more than 64 KiB", `{"v":1,"x":"${"x".repeat(KIB_64)}"}`, "json: the body is longer than 64 KiB"],
    ["deep lists", "[".repeat(KIB_64), "json: the body has more than 500 levels"],
    ["deep objects", '{"a":'.repeat(13_000), "json: the body has more than 500 levels"],
    ["another prototype", '{"__proto__":{"v":1}}', "json: there is no $.v"],
  ];
  for (const [name, body, error] of hostile) {
    test(`a body of ${name}`, async () => {
      expect((await checked({ json_path: "$.v", json_value: 1 }, text(body)))[1]).toBe(error);
    });
  }

  test("a body of 64 KiB is read completely", async () => {
    const [head, tail] = ['{"x":"', '","v":1}'];
    const body = `${head}${"x".repeat(KIB_64 - head.length - tail.length)}${tail}`;
    expect(body.length).toBe(KIB_64);
    expect((await checked({ json_path: "$.v", json_value: 1 }, text(body)))[0]).toBe("up");
  });
});

test("bodies designed for slow searches take less than 100 ms", async () => {
  const body = Buffer.from("a".repeat(KIB_64));
  const answer = { status: 200, headers: {}, body, truncated: false };
  const none = optionsOf(null);
  const slow: readonly Partial<Assertions>[] = [
    { keyword: `${"a".repeat(255)}b` },
    { keyword: `b${"a".repeat(255)}` },
    { keyword_absent: `${"a".repeat(128)}b${"a".repeat(127)}` },
  ];
  for (const assertions of slow) {
    const searching = () =>
      processorMs(() => {
        const failure = failureOf({ ...none, ...assertions }, answer);
        expect(failure === null).toBe(assertions.keyword === undefined);
      });
    expect(await leastMs(100, searching)).toBeLessThanOrEqual(100);
  }
});
