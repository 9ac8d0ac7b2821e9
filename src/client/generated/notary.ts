// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** What `GET /v1/witness/config` answers. */
export interface ReceiptStorage {
  endpoint: string;
  bucket: string;
  region: string;
  prefix: string;
  /** Masked. */
  accessKeyId: string;
  /** Receipts that wait for their delivery. */
  buffered: number;
  last_error: string | null;
}

/** The body of `POST /v1/witness/config`. */
export interface StorageBody {
  /** The S3-compatible server. Objects are addressed path style. */
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Folders before `witness/receipts/`, so that two chains can share a bucket. */
  prefix?: string | undefined;
}

/** What `POST /v1/witness/config` answers. */
export interface StorageConfigured {
  success: true;
  configured: true;
}

/** What `POST /v1/witness/sys/init` answers. */
export interface ChainExists {
  success: false;
  chain_id: string;
}

/** What `POST /v1/witness/sys/init` answers. */
export interface ChainCreated {
  success: true;
  publicKey: PublicKey;
  createdAt: string;
  chain_id: string;
}

/** An Ed25519 public key as a JSON Web Key. */
export interface PublicKey {
  kty: "OKP";
  crv: "Ed25519";
  x: string;
}

/** The body of `POST /v1/witness/log`. */
export interface LogBody {
  /** What is to be witnessed. Numbers must be such that JSON readers carry them exactly. */
  log: object;
}

/** What `POST /v1/witness/log` answers. */
export interface Receipt {
  version: 1;
  /** The position in the chain, from 1. */
  sequence_id: string;
  content_hash: string;
  prev_hash: string;
  chain_hash: string;
  signature: string;
  /** Milliseconds since the epoch. */
  timestamp: number;
  public_key: PublicKey;
  log: Record<string, unknown>;
  storage_status?: "delivered" | "buffered";
  storage_location?: string;
}

/** What `GET /v1/witness/receipts` answers. */
export interface ReceiptPage {
  receipts: Receipt[];
  cursor?: string;
}

/** The body of `POST /v1/witness/verify`. */
export interface ReceiptVerifyBody {
  /** A receipt as it was given. */
  receipt: unknown;
}

/** What `POST /v1/witness/verify` answers. */
export interface ReceiptVerdict {
  valid: boolean;
  checks: {
    signature_valid: boolean;
    content_hash_matches: boolean;
    chain_link_valid: boolean;
  };
  metadata: {
    sequence_id: string | null;
    timestamp: number | null;
    public_key: PublicKey | null;
  };
  errors?: string[];
}
