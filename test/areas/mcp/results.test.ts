import { expect, test } from "bun:test";
import { dataResult, PAYLOAD_BYTES_MAX, RESPONSE_BYTES_MAX } from "../../../src/areas/mcp/results.ts";
import { dataOf } from "./support.ts";

test("numbers keep their digits", () => {
  const { text } = dataResult('{"payload":{"id":1234567890123456789},"n":[1.0e400]}').content[0];
  expect(text).toContain('{"payload":{"id":1234567890123456789},"n":[1.0e400]}');
});

const shown = (value: object) => dataOf(dataResult(JSON.stringify(value)).content[0].text);

test("a text of the most bytes is whole, a longer one is cut and says so", () => {
  const whole = "x".repeat(PAYLOAD_BYTES_MAX);
  expect(shown({ output: whole })).toEqual({ output: whole });
  expect(shown({ list: [{ output: `${whole}y` }] })).toEqual({
    list: [
      {
        output: `${whole}… (cut: ${PAYLOAD_BYTES_MAX} of ${PAYLOAD_BYTES_MAX + 1} bytes)`,
      },
    ],
  });
});

test("a text is cut between two characters", () => {
  const output = String(shown({ output: `x${"€".repeat(PAYLOAD_BYTES_MAX)}` })["output"]);
  expect(output).toStartWith("x€€");
  expect(output).not.toContain("�");
  expect(output).toEndWith(`€… (cut: 16384 of ${1 + 3 * PAYLOAD_BYTES_MAX} bytes)`);
});

test("a payload that is an object is whole up to the limit, and cut as a text beyond", () => {
  const inside = "x".repeat(PAYLOAD_BYTES_MAX - '{"a":["","b"]}'.length);
  expect(shown({ payload: { a: [inside, "b"] } })).toEqual({
    payload: { a: [inside, "b"] },
  });
  const { payload } = shown({ payload: { a: [inside, "bc"] } });
  expect(payload).toBe(`{"a":["${inside}","bc"]… (cut: 16384 of 16385 bytes)`);
});

test("fields with secrets are omitted, but not from payloads", () => {
  const payload = { ping_url: "https://example.com" };
  expect(
    shown({
      monitors: [{ ping_url: "https://n/ping/1", secret_digest: {}, name: "n" }],
      payload,
    }),
  ).toEqual({
    monitors: [{ name: "n" }],
    payload,
  });
});

test("a response of the most bytes is a result, a larger one is an error that requests a smaller page", () => {
  const filled = (bytes: number) => JSON.stringify({ n: "x".repeat(bytes - '{"n":""}'.length) });
  expect(dataResult(filled(RESPONSE_BYTES_MAX)).isError).toBe(false);
  const { content, isError } = dataResult(filled(RESPONSE_BYTES_MAX + 1));
  expect(isError).toBe(true);
  expect(content[0].text).toContain("Request less");
});
