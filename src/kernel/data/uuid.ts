/** The 16 bytes of a UUID's text, for storing. Written out for speed: it runs once per ledger entry. */
export function uuidToBytes(uuid: string): Uint8Array {
  const bytes = new Uint8Array(16);
  let at = 0;
  for (let index = 0; index < uuid.length && at < 16; index += 2) {
    if (uuid.charCodeAt(index) === DASH) index += 1;
    bytes[at++] = (hexDigit(uuid.charCodeAt(index)) << 4) | hexDigit(uuid.charCodeAt(index + 1));
  }
  return bytes;
}

const DASH = 45;

/** The value of the ASCII code of a lower-case hex digit. */
function hexDigit(code: number): number {
  return code <= 57 ? code - 48 : code - 87;
}

/** The text of a UUID's 16 bytes. */
export function bytesToUuid(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a text is a UUID, in lower case. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** An id whose first letters say what it is of, with a UUID's digits behind them: no dot stands in it. */
export function prefixedId(prefix: string, uuid: string): string {
  return `${prefix}_${uuid.replaceAll("-", "")}`;
}

/** Whether a text has the form of one with these letters. */
export function isPrefixedId(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}_`) && DIGITS.test(text.slice(prefix.length + 1));
}

const DIGITS = /^[0-9a-f]{32}$/;
