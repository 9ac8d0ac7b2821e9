import { type Static, Type } from "@sinclair/typebox";
import { dateTime, duration, NextCursor, named, oneOf, orNull } from "../../kernel/data/schema.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { SECRET_DIGEST } from "../../kernel/resources/managed.ts";
import { INDEX_FIELDS_MAX, POINTER_LENGTH_MAX, PREFIX_LENGTH_MAX, VALUE_LENGTH_MAX } from "./domain.ts";

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
  log: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        description: "Absent if only its hash was sent, or if it was deleted.",
      },
    ),
  ),
  note: Type.Optional(
    Type.String({
      description: "Note that was sent with the hash. No hash covers it.",
      examples: ["contract-7.pdf"],
    }),
  ),
  redacted_at: Type.Optional(
    dateTime({
      description: "Time when the text of the log was deleted.",
    }),
  ),
  storage_status: Type.Optional(oneOf(["delivered", "buffered"], {})),
  storage_location: Type.Optional(
    Type.String({
      examples: ["https://s3.eu-central-1.amazonaws.com/receipts/witness/receipts/1.json"],
    }),
  ),
});
export type Receipt = Static<typeof Receipt>;

/** Default number of receipts on a page. */
export const RECEIPTS_LIMIT = 50;

/** Characters of a note: a name or an address, not a log. */
export const NOTE_LENGTH_MAX = 200;

/** A century; more days are a mistake. */
export const RETAIN_DAYS_MAX = 36_500;

/** Longest origin: the first line of a checkpoint and the name of its key. */
export const ORIGIN_LENGTH_MAX = 255;

export const InitBody = named("ChainInitBody", {
  origin: Type.Optional(
    Type.String({
      pattern: `^[\\x21-\\x2a\\x2c-\\x7e]{1,${ORIGIN_LENGTH_MAX}}$`,
      errorMessage: `must be 1 to ${ORIGIN_LENGTH_MAX} printable ASCII characters without spaces and +`,
      description:
        "Name of the chain in its checkpoints, such as `example.com/audit`: a URL without scheme. `ninefold/<chain_id>` by default. It cannot be changed.",
      examples: ["example.com/audit"],
    }),
  ),
});

export const ChainCreated = named("ChainCreated", {
  success: Type.Literal(true),
  publicKey: PublicKey,
  createdAt: dateTime(),
  chain_id: ChainId,
});
export type ChainCreated = Static<typeof ChainCreated>;

export const ChainExists = named("ChainExists", { success: Type.Literal(false), chain_id: ChainId });
export type ChainExists = Static<typeof ChainExists>;

export const LogBody = named("LogBody", {
  log: Type.Optional(
    Type.Object(
      {},
      {
        minProperties: 1,
        additionalProperties: true,
        errorMessage: "must be a JSON object with at least one member",
        description:
          "Entry to log. Send numbers that JSON parsers cannot represent exactly as strings. Required without `content_hash`.",
      },
    ),
  ),
  content_hash: Type.Optional(
    Type.String({
      pattern: "^[0-9a-f]{64}$",
      errorMessage: "must be 64 lower-case hex digits",
      description:
        "SHA-256 of what the receipt is for, instead of `log`. For a JSON log, hash the UTF-8 of `JSON.stringify(log)`.",
      examples: [HASH],
    }),
  ),
  note: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: NOTE_LENGTH_MAX,
      errorMessage: `must be 1 to ${NOTE_LENGTH_MAX} characters`,
      description: "Note on the `content_hash`, such as the name of a file. No hash covers it.",
      examples: ["contract-7.pdf"],
    }),
  ),
  salt: Type.Optional(
    Type.Boolean({
      description:
        "Adds the member `$salt` with 22 random characters to the log, so that a deleted log cannot be guessed from its hash.",
    }),
  ),
});

/** Characters of the reason for a redaction. */
export const REASON_LENGTH_MAX = 200;

export const RedactBody = named("RedactBody", {
  reason: Type.String({
    minLength: 1,
    maxLength: REASON_LENGTH_MAX,
    errorMessage: `must be 1 to ${REASON_LENGTH_MAX} characters`,
    description: "Why the text is deleted. It is logged in the chain, so do not name a person.",
    examples: ["erasure request 2026-117"],
  }),
});

export const Redacted = named("ReceiptRedacted", {
  receipt: Receipt,
  declared_by: orNull(Type.String({ examples: ["42"] }), {
    description:
      "Position of the receipt that logs the redaction; null if the chain's signing key was lost in a restore.",
  }),
});
export type Redacted = Static<typeof Redacted>;

const Fields = Type.Array(
  Type.String({
    maxLength: POINTER_LENGTH_MAX,
    pattern: "^/([^~]|~[01])*$",
    errorMessage: `must be a JSON Pointer of at most ${POINTER_LENGTH_MAX} characters`,
  }),
  {
    maxItems: INDEX_FIELDS_MAX,
    errorMessage: `must be at most ${INDEX_FIELDS_MAX} JSON Pointers`,
    description: "JSON Pointers (RFC 6901) to the values of logs that are indexed from now on.",
    examples: [["/invoice", "/customer/id"]],
  },
);
const RetainDays = duration({
  unit: "days",
  min: 0,
  max: RETAIN_DAYS_MAX,
  description: "Days after which the texts of logs are deleted; 0: never.",
  examples: [0],
});

export const IndexBody = named("ReceiptIndexBody", {
  fields: Type.Optional(Fields),
  retain_days: Type.Optional(RetainDays),
});
export type IndexBody = Static<typeof IndexBody>;

export const IndexSettings = named("ReceiptIndex", {
  fields: Fields,
  retain_days: RetainDays,
});
export type IndexSettings = Static<typeof IndexSettings>;

const EpochMs = (description: string) =>
  Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      errorMessage: "must be a time in epoch milliseconds",
      description,
    }),
  );

/** The query of the list of receipts. */
export const ReceiptsQuery = Type.Object({
  ...pageQuery(RECEIPTS_LIMIT).properties,
  field: Type.Optional(
    Type.String({
      maxLength: POINTER_LENGTH_MAX,
      description: "Returns only receipts whose log has `value` here: an indexed JSON Pointer.",
    }),
  ),
  value: Type.Optional(
    Type.String({
      maxLength: VALUE_LENGTH_MAX,
      description: "Text form of the value: `42` finds the number and the text.",
    }),
  ),
  since: EpochMs("Start of the time of the receipts, inclusive, in epoch milliseconds."),
  until: EpochMs("End of the time of the receipts, exclusive, in epoch milliseconds."),
});

export const AcceptForkBody = named("ForkAcceptBody", {
  chain_id: Type.String({
    maxLength: 64,
    description: "Id of the chain.",
    examples: ["wc_u7Qk1xR0aZ3mB9cV5nL2pS8tY4hW6dEf"],
  }),
});

export const ForkAccepted = named("ForkAccepted", {
  chain_id: ChainId,
  sequence_id: Type.String({
    description: "Position of the receipt that declares the fork.",
    examples: ["2"],
  }),
});

export const ReceiptVerifyBody = named("ReceiptVerifyBody", {
  receipt: Type.Unknown({
    description: "Receipt as the server returned it.",
    errorMessage: "must be a receipt",
  }),
  log: Type.Optional(
    Type.Unknown({
      description: "Log of a receipt without one, to compare it with the hash.",
    }),
  ),
});

export const ReceiptVerdict = named("ReceiptVerdict", {
  valid: Type.Boolean(),
  checks: Type.Object({
    signature_valid: Type.Boolean(),
    content_hash_matches: orNull(Type.Boolean(), {
      description: "Null if there is no log to compare with: neither in the receipt nor next to it.",
    }),
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
  accessKeyId: {
    ...characters(
      "^[\\x21-\\x2b\\x2d\\x2e\\x30-\\x7e]{16,128}$",
      "must be 16 to 128 printable characters without spaces, commas and slashes",
    ),
    writeOnly: true,
  },
  secretAccessKey: {
    ...characters("^[\\x21-\\x7e]{16,256}$", "must be 16 to 256 printable characters without spaces"),
    writeOnly: true,
  },
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
  ...SECRET_DIGEST,
});
export type ReceiptStorage = Static<typeof ReceiptStorage>;

const Position = Type.String({
  pattern: "^[1-9][0-9]{0,19}$",
  errorMessage: "must be a positive integer",
  examples: ["1"],
});

/** Receipts of a page of an export: small ones take a fraction of a second. */
export const EXPORT_RECEIPTS_MAX = 10_000;

export const ExportQuery = Type.Object({
  from: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: "Position of the first receipt; 1 by default.",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: EXPORT_RECEIPTS_MAX,
      description: `Maximum number of receipts; ${EXPORT_RECEIPTS_MAX} by default.`,
    }),
  ),
});

export const ReceiptParams = Type.Object({ sequence_id: Position });

const NOTE =
  "ninefold/wc_guAzGTNSfV3ibRopzIp5tgMNJfCyUnjN\n3\nz2NM3/CSLJZKdZJisNIoKeFrZL4+HyZhtCoDBpTYpJs=\n\n— ninefold/wc_guAzGTNSfV3ibRopzIp5tgMNJfCyUnjN eIjXHXMr9d3Xn0Ec65YLnHQ0X7rXD99eduz/v95CCNgiazrE4BcwJn+k/pwSG4j8rfO99unMsp4wt3eSLq5NaQXn3gE=\n";
const Note = Type.String({
  description: "Signed note with the checkpoint (c2sp.org/tlog-checkpoint).",
  examples: [NOTE],
});
const Size = (description: string) => Type.Integer({ minimum: 0, description, examples: [3] });
const Hashes = Type.Array(Type.String({ examples: ["PsMuJrp2xTwEIK5ktxGqDFj+79ykOyPERXWPIHT5Rz8="] }), {
  description: "Hashes of the proof (RFC 6962), base64.",
});

/** How a checkpoint is returned. */
export const CheckpointQuery = Type.Object({
  format: Type.Optional(
    oneOf(["note", "json"], { description: "`note` (default): the signed note, as `text/plain`." }),
  ),
});

export const SignedCheckpoint = named("Checkpoint", {
  origin: Type.String({ examples: ["ninefold/wc_guAzGTNSfV3ibRopzIp5tgMNJfCyUnjN"] }),
  size: Size("Number of receipts that it covers."),
  root_hash: Type.String({ ...Hash, description: "Root of the Merkle tree over these receipts." }),
  signed_at: dateTime(),
  vkey: Type.String({
    description: "Public key in the form that tools for signed notes read: `<origin>+<key id>+<key>`.",
    examples: [
      "ninefold/wc_guAzGTNSfV3ibRopzIp5tgMNJfCyUnjN+7888d71d+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs",
    ],
  }),
  cosignatures: Type.Array(
    Type.Object({
      name: Type.String({ description: "Name of the witness.", examples: ["witness.example"] }),
      signed_at: dateTime(),
    }),
    { description: "Witnesses that have confirmed that the chain only grew." },
  ),
  note: Note,
});
export type SignedCheckpoint = Static<typeof SignedCheckpoint>;

export const InclusionQuery = Type.Object({
  sequence_id: Position,
  size: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: "Size of the tree; by default that of the newest checkpoint.",
    }),
  ),
});

const INCLUSION = {
  leaf_index: Type.Integer({ minimum: 0, description: "Position in the tree, from 0.", examples: [0] }),
  tree_size: Size("Number of receipts in the tree."),
  leaf_hash: Hash,
  hashes: Hashes,
};

export const InclusionProof = named("InclusionProof", { ...INCLUSION, checkpoint: Note });
export type InclusionProof = Static<typeof InclusionProof>;

const TreeSize = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

export const ConsistencyQuery = Type.Object({
  from: Type.Integer({ ...TreeSize, description: "Size of the older tree.", examples: [2] }),
  to: Type.Optional(
    Type.Integer({
      ...TreeSize,
      description: "Size of the newer tree; by default that of the newest checkpoint.",
    }),
  ),
});

export const ConsistencyProof = named("ConsistencyProof", {
  from: Size("Size of the older tree."),
  to: Size("Size of the newer tree."),
  hashes: Hashes,
  checkpoint: Note,
});
export type ConsistencyProof = Static<typeof ConsistencyProof>;

export const BundleQuery = Type.Object({
  format: Type.Optional(
    oneOf(["json", "tlog-proof"], {
      description: "`json` (default), or `tlog-proof`: a text (c2sp.org/tlog-proof).",
    }),
  ),
});

export const Bundle = named("ReceiptBundle", {
  type: Type.Literal("ninefold-bundle/v1"),
  receipt: Receipt,
  inclusion: Type.Object(INCLUSION),
  checkpoint: Note,
  public_key: PublicKey,
});
export type Bundle = Static<typeof Bundle>;

/** Witnesses of a chain: several for a quorum, and few requests for each checkpoint. */
export const WITNESSES_MAX = 8;

const WITNESS_VKEY = Type.String({
  maxLength: 512,
  description: "Verifier key of the witness: `<name>+<key id>+<key>`.",
  examples: ["ninefold/witness-1+84c42f62+BBOY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK"],
});
const WITNESS_URL = Type.String({
  maxLength: 2_048,
  errorMessage: "must be a public https URL",
  description: "URL that `/add-checkpoint` is added to: the submission prefix of the witness.",
  examples: ["https://witness.example/v1/witness/peer"],
});

export const WitnessesBody = named("WitnessesBody", {
  witnesses: Type.Array(
    Type.Object({
      name: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 100,
          description: "Name in lists and messages. Default: the name in the key.",
          examples: ["witness.example"],
        }),
      ),
      url: WITNESS_URL,
      vkey: WITNESS_VKEY,
    }),
    { maxItems: WITNESSES_MAX, description: `At most ${WITNESSES_MAX}; an empty list removes all.` },
  ),
});
export type WitnessesBody = Static<typeof WitnessesBody>;

export const Witness = named("Witness", {
  name: Type.String({ examples: ["witness.example"] }),
  url: WITNESS_URL,
  vkey: WITNESS_VKEY,
  cosigned_size: Size("Size of the last checkpoint of the present origin that it has cosigned; 0 if none."),
  cosigned_at: orNull(dateTime(), { description: "Time of its last cosignature." }),
  last_error: orNull(Type.String(), {
    description: "Error of the last submission; null after a cosignature.",
    examples: [null],
  }),
});
export type Witness = Static<typeof Witness>;

export const WitnessList = named("WitnessList", { witnesses: Type.Array(Witness) });

export const PeerIdentity = named("PeerIdentity", {
  name: Type.String({ description: "Name of this server as a witness.", examples: ["ninefold/witness-1"] }),
  vkey: WITNESS_VKEY,
});

export const PeerParams = Type.Object({
  origin: Type.String({
    pattern: "^[0-9a-f]{64}$",
    errorMessage: "must be a SHA-256 in hex",
    description: "SHA-256 of the origin, in hex.",
    examples: [HASH],
  }),
});

export const TlogBody = named("TlogBody", {
  public: Type.Boolean({ description: "Whether checkpoint, tiles and entries can be read without a key." }),
});

export const Tlog = named("Tlog", {
  public: Type.Boolean(),
  path: Type.String({
    description: "Path of the log: `<path>/checkpoint` and `<path>/tile/…` (c2sp.org/tlog-tiles).",
    examples: ["/v1/witness/tlog/wc_u7Qk1xR0aZ3mB9cV5nL2pS8tY4hW6dEf"],
  }),
});
export type Tlog = Static<typeof Tlog>;

export const TileParams = Type.Object({
  chainId: ChainId,
  tile: Type.String({
    description:
      "Level of the tile, or `entries`. The index follows in groups of three digits: `0/x001/067`.",
    examples: ["0"],
  }),
});

export const ChainParams = Type.Object({ chainId: ChainId });
