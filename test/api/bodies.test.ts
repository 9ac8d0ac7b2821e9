import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BODY_BYTES_MAX, SMALL_BODY_BYTES_MAX } from "../../src/kernel/http/operation.ts";
import type { Answer } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { sendRaw } from "../support/raw-http.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const REFILL = "/v1/meter/customer-1/refill";
const refill = (body: string | Uint8Array): Promise<Answer> => server.operator.post(REFILL, body);
const balance = async (): Promise<unknown> =>
  (await server.operator.get("/v1/meter/customer-1/balance")).body.balance;

describe("400: bodies that are not a JSON object", () => {
  test.each([
    ["words", "hello", "body is not JSON: it must be one JSON object"],
    ["half of an object", '{"amount": 1', "body is not JSON: it must be one JSON object"],
    ["two objects", '{"amount":1}{"amount":1}', "body is not JSON: it must be one JSON object"],
    ["a form", "amount=1", "body is not JSON: it must be one JSON object"],
    ["a space", " ", "body is not JSON: it must be one JSON object"],
    ["NaN", '{"amount": NaN}', "body is not JSON: it must be one JSON object"],
    ["an array", '[{"amount":1}]', "body must be a JSON object"],
    ["a number", "1", "body must be a JSON object"],
    ["a text", '"amount"', "body must be a JSON object"],
    ["null", "null", "body must be a JSON object"],
    ["true", "true", "body must be a JSON object"],
    [
      "invalid UTF-8",
      new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      "body must be UTF-8 text, not compressed",
    ],
    ["UTF-16", new Uint8Array(Buffer.from('{"amount":1}', "utf16le")), "body is not JSON"],
  ])("%s", async (_, body, message) => {
    const { error, fields } = expectError(await refill(body), "validation_error");
    expect(error.message).toStartWith(message);
    expect(Object.keys(fields ?? {})).toEqual(["body"]);
  });

  test("a missing body counts as an empty object: the error names the missing fields", async () => {
    const { fields } = expectError(await server.operator.post(REFILL), "validation_error");
    expect(fields).toEqual({ amount: ["is required: it must be an integer from 1 to 9007199254740991"] });
  });
});

describe("fields", () => {
  test("the error names every invalid field with what it expects", async () => {
    const answer = await server.operator.post("/v1/admin/accounts", { email: "nobody", balance: -1 });
    const { fields, error } = expectError(answer, "validation_error");
    expect(fields).toEqual({
      email: ["must be an e-mail address"],
      tier: ["is required: it must be one of free, starter, pro, scale, unlimited"],
      balance: ["must be an integer from 0 to 9007199254740991"],
    });
    expect(Object.keys(fields ?? {})).toContain(error.message.split(" ")[0] as string);
  });

  test("unknown fields are ignored, also those of earlier versions", async () => {
    const before = await balance();
    const text = '{"amount": 2, "more": [1], "__proto__": {"amount": 9}, "constructor": 1, "": null}';
    expect((await refill(text)).body.balance).toBe(Number(before) + 2);
  });

  test("of a duplicate name the last value counts, as in JSON.parse", async () => {
    const before = await balance();
    expect((await refill('{"amount": 5, "amount": 1}')).body.balance).toBe(Number(before) + 1);
  });

  test("the error names query parameters; repeated ones are rejected and unknown ones ignored", async () => {
    const path = "/v1/meter/customer-1/history";
    const bad = expectError(await server.operator.get(`${path}?limit=0`), "validation_error");
    expect(bad.fields).toEqual({ limit: ["must be an integer from 1 to 100"] });
    const twice = expectError(await server.operator.get(`${path}?limit=1&limit=2`), "validation_error");
    expect(twice.fields).toEqual({ limit: ["is given more than once"] });
    expect((await server.operator.get(`${path}?color=blue`)).status).toBe(200);
  });

  test("the error names path parameters", async () => {
    const answer = await server.operator.post("/v1/meter/a.b/refill", { amount: 1 });
    const { fields } = expectError(answer, "validation_error");
    expect(fields).toEqual({ meterId: ["must be 1 to 64 letters, digits, dashes or underscores"] });
  });
});

describe("integers", () => {
  test.each([
    ["1", 1],
    ["1.0", 1],
    ["1e3", 1000],
    ["1E+3", 1000],
    ["10e-1", 1],
    ["2.50e1", 25],
  ])("%s is one", async (written, amount) => {
    const before = Number(await balance());
    expect((await refill(`{"amount": ${written}}`)).body.balance).toBe(before + amount);
  });

  test.each(['"5"', "1.5", "1e-1", "null", "true", "[1]", "{}", "1e400", "9007199254740992", '""'])(
    "%s is not an amount: validation_error",
    async (written) => {
      const { fields } = expectError(await refill(`{"amount": ${written}}`), "validation_error");
      expect(fields).toEqual({ amount: ["must be an integer from 1 to 9007199254740991"] });
    },
  );

  test.each(["01", "+1", ".5", "0x10", "1_000", "Infinity", "'1'"])("%s is not JSON", async (written) => {
    const { fields } = expectError(await refill(`{"amount": ${written}}`), "validation_error");
    expect(Object.keys(fields ?? {})).toEqual(["body"]);
  });
});

describe("the size of a body", () => {
  const padded = (size: number): string => {
    const head = '{"amount":1,"padding":"';
    return `${head}${"x".repeat(size - head.length - 2)}"}`;
  };
  const inPieces = (text: string): string[] => {
    const pieces = [text.slice(0, 30_000), text.slice(30_000)];
    return [...pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`), "0\r\n\r\n"];
  };
  const head = (...lines: string[]): string =>
    [`POST ${REFILL} HTTP/1.1`, "Host: test", `Authorization: Bearer ${server.key}`, ...lines, "", ""].join(
      "\r\n",
    );

  test("accepts 64 KiB with a Content-Length", async () => {
    expect((await refill(padded(SMALL_BODY_BYTES_MAX))).status).toBe(200);
  });

  test("accepts 64 KiB in chunks", async () => {
    const pieces = [head("Transfer-Encoding: chunked"), ...inPieces(padded(SMALL_BODY_BYTES_MAX))];
    expect((await sendRaw(server.url, pieces))?.status).toBe(200);
  });

  test("rejects a byte more with 413, with a Content-Length", async () => {
    const before = await balance();
    const answer = await refill(padded(SMALL_BODY_BYTES_MAX + 1));
    expectError(answer, "request_too_large");
    expect(answer.headers.get("connection")).toBe("close");
    expect(await balance()).toBe(before);
  });

  test("rejects a byte more with 413, in chunks", async () => {
    const before = await balance();
    const pieces = [head("Transfer-Encoding: chunked"), ...inPieces(padded(SMALL_BODY_BYTES_MAX + 1))];
    const answer = await sendRaw(server.url, pieces);
    expect({ status: answer?.status, code: answer?.body.code }).toEqual({
      status: 413,
      code: "request_too_large",
    });
    expect(await balance()).toBe(before);
  });

  test("accepts 1 MiB on routes for users' data and rejects a byte more", async () => {
    const account = await server.account();
    const flag = (size: number): string => `{"flag_key":"f","enabled":true,"x":"${"x".repeat(size - 38)}"}`;
    expect(flag(100)).toHaveLength(100);
    expect((await account.post("/v1/gate", flag(BODY_BYTES_MAX))).status).toBe(201);
    expectError(await account.post("/v1/gate", flag(BODY_BYTES_MAX + 1)), "request_too_large");
  });

  test("64 KiB in chunks of one byte use little more memory than their bytes", async () => {
    const text = padded(SMALL_BODY_BYTES_MAX);
    const pieces = [
      head("Transfer-Encoding: chunked"),
      ...[...text].map((one) => `1\r\n${one}\r\n`),
      "0\r\n\r\n",
    ];
    expect((await sendRaw(server.url, pieces, 20_000))?.status).toBe(200);
  });

  test("rejects with 413 by the Content-Length without waiting for the body", async () => {
    for (const length of [64 * 1024 * 1024, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
      const answer = await sendRaw(server.url, [head(`Content-Length: ${length}`), '{"amount":1']);
      expect({ status: answer?.status, code: answer?.body.code }).toEqual({
        status: 413,
        code: "request_too_large",
      });
    }
  });

  test("rejects with 413 also with an Idempotency-Key and on an endpoint without a body", async () => {
    const options = { headers: { "idempotency-key": "large" } };
    const large = padded(SMALL_BODY_BYTES_MAX + 1);
    expectError(await server.operator.post(REFILL, large, options), "request_too_large");
    expectError(await server.operator.post("/v1/keys/rotate", large, options), "request_too_large");
  });

  test("the Content-Type of the client is ignored", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/json; charset=utf-16",
    ]) {
      const options = { headers: { "content-type": type } };
      expect((await server.operator.post(REFILL, '{"amount":1}', options)).status).toBe(200);
    }
  });

  test("the server continues after a client that disconnects during its body", async () => {
    expect(await sendRaw(server.url, [head("Content-Length: 100"), '{"amount":1'], 100)).toBeNull();
    expect((await server.operator.get("/v1/ping")).status).toBe(200);
    expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
  });
});
