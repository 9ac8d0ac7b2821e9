import ipaddr from "ipaddr.js";
import { OutboundFailure } from "../outcome.ts";

/**
 * Records of a name that are used; no name in use has as many. A response can hold 5,000, each of which would be parsed,
 * compared, or checked as an address.
 */
export const RECORDS_MAX = 64;

/** Types of records that can be looked up. */
export const RECORD_TYPES = ["A", "AAAA", "CAA", "CNAME", "MX", "NS", "PTR", "SOA", "SRV", "TXT"] as const;
/** One of {@link RECORD_TYPES}. */
export type RecordType = (typeof RECORD_TYPES)[number];

const TYPE_NUMBERS: Readonly<Record<RecordType, number>> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  CAA: 257,
};

/** Lengths of the header, and of the fixed fields of a question and a record (RFC 1035, section 4). */
const HEADER_BYTES = 12;
const QUESTION_FIELDS_BYTES = 4;
const RECORD_FIELDS_BYTES = 10;
/** Longest label and name (RFC 1035, section 2.3.4). */
const LABEL_BYTES_MAX = 63;
const NAME_BYTES_MAX = 255;
/** The type of EDNS, and the size of UDP responses that is free of fragments in every network (DNS flag day 2020). */
const OPT = 41;
const UDP_BYTES_MAX = 1_232;

const RECURSION_DESIRED = 0x0100;
const RESPONSE = 0x8000;
const TRUNCATED = 0x0200;
const CODE_MASK = 0x000f;

/** Codes of responses (RFC 1035, section 4.1.1). */
export const RESPONSE_CODES = { ok: 0, formatError: 1, noSuchName: 3, notImplemented: 4 } as const;

/** How documentation and tools write the codes of errors. */
const CODE_NAMES: Readonly<Record<number, string>> = {
  1: "FORMERR",
  2: "SERVFAIL",
  4: "NOTIMP",
  5: "REFUSED",
  9: "NOTAUTH",
};

/** The name of a code, such as `SERVFAIL`. */
export function codeName(code: number): string {
  return CODE_NAMES[code] ?? `the code ${code}`;
}

/** The name whose `PTR` records are those of an address (RFC 1035, section 3.5; RFC 3596, section 2.5). */
export function reverseName(address: string): string {
  const parsed = ipaddr.parse(address);
  const bytes = parsed.toByteArray();
  if (parsed.kind() === "ipv4") return `${bytes.reverse().join(".")}.in-addr.arpa`;
  const digits = Buffer.from(bytes).toString("hex");
  return `${[...digits].reverse().join(".")}.ip6.arpa`;
}

/** A question to a name server. */
export interface Question {
  readonly name: string;
  readonly type: RecordType;
}

/** The response of a name server. */
export interface Response {
  readonly code: number;
  /** Whether the records did not fit into the packet: the question has to be repeated over TCP. */
  readonly isTruncated: boolean;
  /** The records of the requested type, as zone files have them, without the quotes of texts and the final dots of names. */
  readonly values: readonly string[];
  /** Seconds for which all records are valid. */
  readonly ttl: number;
}

/** A question as bytes; null for a name that DNS does not allow. `hasEdns`: whether larger UDP responses are accepted. */
export function encodeQuestion(id: number, { name, type }: Question, hasEdns: boolean): Buffer | null {
  const labels = name.split(".").map((label) => Buffer.from(label, "latin1"));
  const nameBytes = labels.reduce((sum, label) => sum + label.length + 1, 1);
  if (nameBytes > NAME_BYTES_MAX || !labels.every(isLabel)) return null;
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(id, 0);
  head.writeUInt16BE(RECURSION_DESIRED, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(hasEdns ? 1 : 0, 10);
  const fields = Buffer.alloc(1 + QUESTION_FIELDS_BYTES);
  fields.writeUInt16BE(TYPE_NUMBERS[type], 1);
  fields.writeUInt16BE(1, 3);
  const edns = Buffer.alloc(hasEdns ? 1 + RECORD_FIELDS_BYTES : 0);
  if (hasEdns) {
    edns.writeUInt16BE(OPT, 1);
    edns.writeUInt16BE(UDP_BYTES_MAX, 3);
  }
  return Buffer.concat([
    head,
    ...labels.flatMap((label) => [Buffer.from([label.length]), label]),
    fields,
    edns,
  ]);
}

function isLabel({ length }: Buffer): boolean {
  return length > 0 && length <= LABEL_BYTES_MAX;
}

/**
 * Throws if the header, of which 8 bytes suffice, announces more than {@link RECORDS_MAX} records.
 * @throws OutboundFailure `dns`
 */
export function assertFewRecords(message: Buffer): void {
  if (message.readUInt16BE(6) > RECORDS_MAX) throw tooManyRecords();
}

/** Why the records of a name are not used. */
export function tooManyRecords(): OutboundFailure {
  return new OutboundFailure("dns", `too many records: more than ${RECORDS_MAX}`);
}

/**
 * Reads a response, in time that is linear in its records. Null: it is malformed, or no response to `asked`, the bytes of a
 * question.
 * @throws OutboundFailure `dns` for more than {@link RECORDS_MAX} records, or parts of texts
 */
export function readResponse(message: Buffer, asked: Buffer, type: RecordType): Response | null {
  if (message.length < HEADER_BYTES || message.readUInt16BE(0) !== asked.readUInt16BE(0)) return null;
  const flags = message.readUInt16BE(2);
  if ((flags & RESPONSE) === 0) return null;
  const code = flags & CODE_MASK;
  // A server that does not know EDNS may omit the question.
  if (code === RESPONSE_CODES.formatError) return { code, isTruncated: false, values: [], ttl: 0 };
  const end = questionEnd(message, asked);
  if (end === null) return null;
  if ((flags & TRUNCATED) !== 0) return { code, isTruncated: true, values: [], ttl: 0 };
  assertFewRecords(message);
  try {
    return { code, isTruncated: false, ...readRecords(message, end, type) };
  } catch (error) {
    if (error instanceof OutboundFailure) throw error;
    // A field beyond the end of the message.
    return null;
  }
}

/** Where the question ends that a response repeats; null if it is another one. Letters of names have no case. */
function questionEnd(message: Buffer, asked: Buffer): number | null {
  if (message.readUInt16BE(4) !== 1) return null;
  let end = HEADER_BYTES;
  while ((asked[end] ?? 0) > 0) end += 1 + (asked[end] ?? 0);
  end += 1 + QUESTION_FIELDS_BYTES;
  const isSame =
    message.toString("latin1", HEADER_BYTES, end).toLowerCase() ===
    asked.toString("latin1", HEADER_BYTES, end).toLowerCase();
  return isSame ? end : null;
}

/** @throws RangeError for a malformed message; OutboundFailure `dns` */
function readRecords(message: Buffer, start: number, type: RecordType): Pick<Response, "values" | "ttl"> {
  const values: string[] = [];
  let ttl = Number.POSITIVE_INFINITY;
  let at = start;
  for (let count = message.readUInt16BE(6); count > 0; count -= 1) {
    at = nameEnd(message, at);
    const recordType = message.readUInt16BE(at);
    ttl = Math.min(ttl, message.readUInt32BE(at + 4));
    const from = at + RECORD_FIELDS_BYTES;
    at = from + message.readUInt16BE(at + 8);
    if (at > message.length) throw new RangeError("the record is cut off");
    // Others, such as aliases on the way, are skipped.
    if (recordType === TYPE_NUMBERS[type]) values.push(valueOfRecord(message, from, at, type));
  }
  return { values, ttl: Number.isFinite(ttl) ? ttl : 0 };
}

/** The value of a record. */
function valueOfRecord(message: Buffer, from: number, to: number, type: RecordType): string {
  switch (type) {
    case "A":
    case "AAAA":
      return addressIn(message.subarray(from, to), type);
    case "CAA":
      return authorizationIn(message.subarray(from, to));
    case "MX":
      return `${message.readUInt16BE(from)} ${readName(message, from + 2)}`;
    case "SOA":
      return authorityIn(message, from);
    case "SRV":
      return `${numbersIn(message, from, 3, 2).join(" ")} ${readName(message, from + 6)}`;
    case "TXT":
      return textIn(message, from, to);
    default:
      return readName(message, from);
  }
}

/** `count` numbers of `bytes` bytes each. */
function numbersIn(message: Buffer, from: number, count: number, bytes: number): number[] {
  return Array.from({ length: count }, (_, index) => message.readUIntBE(from + index * bytes, bytes));
}

/** Names of the server and of the mailbox, serial, refresh, retry, expire and minimum (RFC 1035, section 3.3.13). */
function authorityIn(message: Buffer, from: number): string {
  const mailbox = nameEnd(message, from);
  const numbers = numbersIn(message, nameEnd(message, mailbox), 5, 4);
  return `${readName(message, from)} ${readName(message, mailbox)} ${numbers.join(" ")}`;
}

/** Flags, tag and value (RFC 8659, section 4.1). */
function authorizationIn(bytes: Buffer): string {
  const end = 2 + bytes.readUInt8(1);
  if (end > bytes.length) throw new RangeError("the tag is cut off");
  const value = bytes.toString("utf8", end).replace(/["\\]/g, "\\$&");
  return `${bytes.readUInt8(0)} ${bytes.toString("latin1", 2, end)} "${value}"`;
}

function addressIn(bytes: Buffer, type: "A" | "AAAA"): string {
  if (bytes.length !== (type === "A" ? 4 : 16)) throw new RangeError("no address has this length");
  return type === "A" ? bytes.join(".") : ipaddr.fromByteArray([...bytes]).toString();
}

/** A text, whose parts belong together. @throws OutboundFailure `dns` for more than {@link RECORDS_MAX} parts */
function textIn(message: Buffer, from: number, to: number): string {
  const parts: Buffer[] = [];
  for (let at = from; at < to; ) {
    const end = at + 1 + message.readUInt8(at);
    if (end > to) throw new RangeError("the text is cut off");
    if (parts.length === RECORDS_MAX) throw tooManyRecords();
    parts.push(message.subarray(at + 1, end));
    at = end;
  }
  return Buffer.concat(parts).toString("utf8");
}

/** The bits that make the length of a label a pointer. */
const POINTER = 0xc0;

/** Where a name ends, which may be in a pointer. */
function nameEnd(message: Buffer, start: number): number {
  for (let at = start; ; ) {
    const length = message.readUInt8(at);
    if (length === 0) return at + 1;
    if (length >= POINTER) return at + 2;
    at += 1 + length;
  }
}

/** A name, whose pointers must lead backwards: so it ends. */
function readName(message: Buffer, start: number): string {
  const labels: string[] = [];
  let bytes = 0;
  let before = start;
  for (let at = start; ; ) {
    const length = message.readUInt8(at);
    if (length === 0) return labels.join(".");
    if (length >= POINTER) {
      at = message.readUInt16BE(at) & 0x3fff;
      if (at >= before) throw new RangeError("a pointer leads forwards");
      before = at;
      continue;
    }
    bytes += 1 + length;
    if (length > LABEL_BYTES_MAX || bytes > NAME_BYTES_MAX || at + 1 + length > message.length)
      throw new RangeError("the name is too long");
    labels.push(labelText(message.subarray(at + 1, at + 1 + length)));
    at += 1 + length;
  }
}

/** As zone files write it (RFC 1035, section 5.1): a dot within a label, and what is not printable, is escaped. */
function labelText(label: Buffer): string {
  return label
    .toString("latin1")
    .replace(/[.\\]/g, "\\$&")
    .replace(/[^\x21-\x7e]/g, (character) => `\\${String(character.charCodeAt(0)).padStart(3, "0")}`);
}
