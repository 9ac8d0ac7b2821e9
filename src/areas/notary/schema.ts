import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull } from "../../kernel/data/schema.ts";
import { NextCursor } from "../../kernel/http/requests/pagination.ts";
import { PREFIX_LENGTH_MAX } from "./domain.ts";

const HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const Hash = Type.String({ pattern: "^[0-9a-f]{64}$", examples: [HASH] });
const ChainId = Type.String({ examples: ["wc_u7Qk1xR0aZ3mB9cV5nL2pS8tY4hW6dEf"] });

export const PublicKey = named(
  "PublicKey",
  {
    kty: Type.Literal("OKP"),
    crv: Type.Literal("Ed25519"),
    x: Type.String({ examples: ["11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"] }),
  },
  { description: "Ed25519 public key as a JSON Web Key (RFC 8037)." },
);

/** A receipt, version 1, with the location of its copy. */
export const Receipt = named("Receipt", {
  version: Type.Literal(1),
  sequence_id: Type.String({ description: "Position in the chain, from 1.", examples: ["1"] }),
  content_hash: Hash,
  prev_hash: Type.String({ ...Hash, examples: ["0".repeat(64)] }),
  chain_hash: Hash,
  signature: Type.String({ pattern: "^[0-9a-f]{128}$", examples: [HASH.repeat(2)] }),
  timestamp: Type.Integer({
    description: "Time when the receipt was created, in milliseconds since the epoch.",
  }),
  public_key: PublicKey,
  log: Type.Object({}, { additionalProperties: true }),
  storage_status: Type.Optional(oneOf(["delivered", "buffered"], {})),
  storage_location: Type.Optional(
    Type.String({
      examples: ["https://s3.eu-central-1.amazonaws.com/receipts/witness/receipts/1.json"],
    }),
  ),
});
export type Receipt = Static<typeof Receipt>;

export const ChainCreated = named("ChainCreated", {
  success: Type.Literal(true),
  publicKey: PublicKey,
  createdAt: Type.String({ format: "date-time" }),
  chain_id: ChainId,
});
export type ChainCreated = Static<typeof ChainCreated>;

export const ChainExists = named("ChainExists", { success: Type.Literal(false), chain_id: ChainId });
export type ChainExists = Static<typeof ChainExists>;

export const LogBody = named("LogBody", {
  log: Type.Object(
    {},
    {
      minProperties: 1,
      additionalProperties: true,
      errorMessage: "must be a JSON object with at least one member",
      description: "Entry to log. Send numbers that JSON parsers cannot represent exactly as strings.",
    },
  ),
});

export const ReceiptVerifyBody = named("ReceiptVerifyBody", {
  receipt: Type.Unknown({
    description: "Receipt as the server returned it.",
    errorMessage: "must be a receipt",
  }),
});

export const ReceiptVerdict = named("ReceiptVerdict", {
  valid: Type.Boolean(),
  checks: Type.Object({
    signature_valid: Type.Boolean(),
    content_hash_matches: Type.Boolean(),
    chain_link_valid: Type.Boolean(),
  }),
  metadata: Type.Object({
    sequence_id: orNull(Type.String({ examples: ["1"] })),
    timestamp: orNull(Type.Integer()),
    public_key: orNull(PublicKey),
  }),
  errors: Type.Optional(Type.Array(Type.String(), { examples: [] })),
});
export type ReceiptVerdict = Static<typeof ReceiptVerdict>;

export const ReceiptPage = named("ReceiptPage", { receipts: Type.Array(Receipt), cursor: NextCursor });
export type ReceiptPage = Static<typeof ReceiptPage>;

const characters = (pattern: string, errorMessage: string) => Type.String({ pattern, errorMessage });

export const StorageBody = named("StorageBody", {
  endpoint: Type.String({
    maxLength: 2_048,
    errorMessage: "must be a public https URL",
    description: "URL of the S3-compatible server. Objects are addressed path style.",
  }),
  bucket: characters(
    "^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$",
    "must be 3 to 63 letters, digits, dots, dashes or underscores",
  ),
  region: characters("^[A-Za-z0-9_-]{1,64}$", "must be 1 to 64 letters, digits, dashes or underscores"),
  accessKeyId: characters(
    "^[\\x21-\\x2b\\x2d\\x2e\\x30-\\x7e]{16,128}$",
    "must be 16 to 128 printable characters without spaces, commas and slashes",
  ),
  secretAccessKey: characters(
    "^[\\x21-\\x7e]{16,256}$",
    "must be 16 to 256 printable characters without spaces",
  ),
  prefix: Type.Optional(
    Type.String({
      maxLength: PREFIX_LENGTH_MAX,
      pattern: "^[A-Za-z0-9._/-]*$",
      errorMessage: `must be at most ${PREFIX_LENGTH_MAX} letters, digits, dots, dashes, underscores and slashes`,
      description:
        "Folders before `witness/receipts/` in object names. Chains that share a bucket need different prefixes.",
    }),
  ),
});
export type StorageBody = Static<typeof StorageBody>;

export const StorageConfigured = named("StorageConfigured", {
  success: Type.Literal(true),
  configured: Type.Literal(true),
});
export type StorageConfigured = Static<typeof StorageConfigured>;

export const ReceiptStorage = named("ReceiptStorage", {
  endpoint: Type.String({ examples: ["https://s3.eu-central-1.amazonaws.com"] }),
  bucket: Type.String({ examples: ["receipts"] }),
  region: Type.String({ examples: ["eu-central-1"] }),
  prefix: Type.String({ examples: [""] }),
  accessKeyId: Type.String({ description: "Access key id, masked.", examples: ["AKIA…MPLE"] }),
  buffered: Type.Integer({ description: "Number of receipts pending delivery.", examples: [0] }),
  last_error: orNull(Type.String(), {
    description: "Error of the last delivery; null when no receipt is buffered.",
    examples: [null],
  }),
});
export type ReceiptStorage = Static<typeof ReceiptStorage>;

export const ReceiptParams = Type.Object({
  sequence_id: Type.String({
    pattern: "^[1-9][0-9]{0,19}$",
    errorMessage: "must be a positive integer",
    examples: ["1"],
  }),
});

export const ChainParams = Type.Object({ chainId: ChainId });
