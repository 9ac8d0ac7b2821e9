import { describe, expect, test } from "bun:test";
import { messagePayloadTexts, payloadText } from "../../../src/areas/relay/payload.ts";
import { JSON_LEVELS_MAX } from "../../../src/json-text.ts";

/** The text of the payload in a body, as it is sent. */
const sentOf = async (body: string): Promise<string> => payloadText(body, JSON.parse(body).payload);

describe("a payload", () => {
  const bodyOf = (payload: string): string => `{"other":"[[{{\\"[","payload":${payload}}`;

  test(`may have ${JSON_LEVELS_MAX} levels`, async () => {
    const payload = `{"a":${"[".repeat(JSON_LEVELS_MAX - 2)}[0.10]${"]".repeat(JSON_LEVELS_MAX - 2)}}`;
    expect(await sentOf(bodyOf(payload))).toBe(payload);
  });

  test("may contain brackets in its strings", async () => {
    const payload = `{"text":${JSON.stringify('["{'.repeat(1_000))}}`;
    expect(await sentOf(bodyOf(payload))).toBe(payload);
  });

  const sent: readonly (readonly [payload: string, sent: string])[] = [
    ['{ "a": 1,\n "b": [true, null] }', '{"a":1,"b":[true,null]}'],
    ['{ "a": 1.0,\n\t "b" : [true , null], "c": {} }', '{"a":1.0,"b":[true,null],"c":{}}'],
    ['{"id":12345678901234567890}', '{"id":12345678901234567890}'],
    ['{"price":1.0,"small":1e-7,"big":1E400}', '{"price":1.0,"small":1e-7,"big":1E400}'],
    ['{"nested":{"deep":[0.10]}}', '{"nested":{"deep":[0.10]}}'],
    ['{"text":"12345678901234567890.0"}', '{"text":"12345678901234567890.0"}'],
    ['{"__proto__":{"a":1.50}}', '{"__proto__":{"a":1.50}}'],
    ['{"é":"\\u00e9"}', '{"é":"é"}'],
    ['{"é":"\\u00e9 \\"1.0\\" \\\\","n":1.0}', '{"é":"é \\"1.0\\" \\\\","n":1.0}'],
    ['{"payload":{"payload":1.0}}', '{"payload":{"payload":1.0}}'],
    ['[1.0, {"payload": []}]', '[1.0,{"payload":[]}]'],
    ["{}", "{}"],
  ];
  for (const [payload, expected] of sent)
    test(`${payload.replaceAll("\n", " ")} is sent as ${expected}`, async () => {
      expect(await sentOf(`{"payload":${payload}}`)).toBe(expected);
    });

  test("is found between other members of the same name", async () => {
    const body =
      '{"a":{"payload":{"n":1}},"p\\u0061yload":{"n":2.0},"payload": {"n": 3.0},"z":[{"payload":4}]}';
    expect(await sentOf(body)).toBe('{"n":3.0}');
  });

  test("is an empty object when it is omitted", async () => {
    expect(await payloadText('{"delay":1.0}', undefined)).toBe("{}");
  });
});

describe("the payloads of a batch", () => {
  const sentAll = (body: string): Promise<string[]> =>
    messagePayloadTexts(
      body,
      (JSON.parse(body).messages as { payload: object }[]).map(({ payload }) => payload),
    );

  test("are found at their messages", async () => {
    const body = `{"x":[{"payload":{"n":9.0}}],"messages":[{"event_type":"a","payload":{"n": 1.0}},
      {"payload":{"payload":{"n":2}},"channels":["a","b"]}, {"headers":{"payload":{"n":7}},"payload":[3]}],"y":[{"payload":8},1]}`;
    expect(await sentAll(body)).toEqual(['{"n":1.0}', '{"payload":{"n":2}}', "[3]"]);
  });

  test("without fractions are written as they were parsed", async () => {
    expect(await sentAll('{"messages":[{"payload":{"n": 1}},{"payload":{}}]}')).toEqual(['{"n":1}', "{}"]);
  });

  test("of the last list count", async () => {
    const body = '{"messages":[{"payload":{"n":1.0}},{"payload":{}}],"messages":[{"payload":{"n":2.5}}]}';
    expect(await sentAll(body)).toEqual(['{"n":2.5}']);
  });
});
