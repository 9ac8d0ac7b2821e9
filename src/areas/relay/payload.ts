/** Texts of numbers that may not come out of JSON.parse as they went in. */
const RISKY_NUMBER = /\d{16}|\d[eE]|\.\d/;

type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;
interface RawJson {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): unknown;
}

/**
 * The JSON text of the member `payload` of a request, compact. Numbers keep the digits that they were sent with: what
 * passes through here is somebody else's, and 12345678901234567890 is not 12345678901234567000.
 */
export function payloadText(bodyText: string, payload: object): string {
  if (!RISKY_NUMBER.test(bodyText)) return JSON.stringify(payload);
  const json = JSON as unknown as RawJson;
  const exact = json.parse(bodyText, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && String(value) !== source
      ? json.rawJSON(source)
      : value,
  ) as { payload: object };
  return JSON.stringify(exact.payload);
}
