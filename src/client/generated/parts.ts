// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** The body of `POST /v1/admin/accounts`, `tier`. */
export type Tier = "free" | "starter" | "pro" | "scale" | "unlimited";

/** What `GET /v1/admin/accounts` answers, `accounts`, `[]`. */
export interface Account {
  user_id: string;
  email: string;
  tier: Tier;
  balance: number;
  suspended: boolean;
  created_at: string;
}

/** What `POST /v1/catch/buckets` answers. */
export interface Bucket {
  id: string;
  target_url: string;
  provider: "stripe" | "github" | "shopify" | "svix" | null;
  has_signing_secret: boolean;
  state: "paused" | "live";
  /** RFC 3339, UTC. */
  created_at: string;
  /** RFC 3339, UTC. */
  updated_at: string;
  /** How many events the bucket holds, by status. */
  events: { pending: number; delivered: number; failed: number };
}

/** What `GET /v1/catch/{bucket_id}/events` answers, `events`, `[]`. */
export interface EventItem {
  /** Sorts by time of receipt. */
  id: string;
  bucket_id: string;
  provider: "stripe" | "github" | "shopify" | "svix" | null;
  status: "pending" | "delivered" | "failed";
  verification: "none" | "valid" | "invalid";
  /** RFC 3339, UTC. */
  received_at: string;
  /** Tries to deliver it so far. */
  attempts: number;
  /** What the target answered last. */
  response_status: number | null;
  /** Why it is not delivered. */
  error: string | null;
  /** RFC 3339, UTC. */
  delivered_at: string | null;
}

/** What `GET /v1/gate/config` answers, `flags`, `[]`. */
export type Flag = { flag_key: string; enabled: boolean; description?: string };

/** What `GET /v1/keys` answers, `keys`, `[]`. */
export interface KeyItem {
  id: string;
  masked_secret: string;
  /** The secret's last four characters. */
  last4: string;
  prefix: string;
  name: string;
  scopes: string[];
  environment?: string;
  metadata?: Record<string, string>;
  /** The only project that the key works in; null for a key of the account. */
  project_id: string | null;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
}

/** What `GET /v1/meter/{meterId}/history` answers, `entries`, `[]`. */
export interface LedgerEntry {
  /** Rises with every entry. */
  sequence: number;
  kind: "deduct" | "refill" | "reset" | "grant" | "charge";
  /** What the balance changed by, signed. */
  amount: number;
  /** The balance after this change. */
  balance_after: number;
  /** RFC 3339, UTC. Of a charge: the hour it belongs to. */
  at: string;
  /** The request that caused it. */
  request_id: string | null;
  /** Of a charge: what was paid for. */
  operation?: string;
  /** Of a charge: how many requests it sums up. */
  count?: number;
}

/** What `POST /v1/pulse/{monitorId}/check` answers. */
export interface MonitorStatus {
  monitor_id: string;
  url: string;
  status: "up" | "down" | "unknown";
  /** Milliseconds of the last check; the time-out on a time-out. */
  latency_ms: number | null;
  /** Unix seconds. */
  last_checked_at: number | null;
  consecutive_failures: number;
}

/** What `GET /v1/pulse/{monitorId}/history` answers, `checks`, `[]`. */
export interface MonitorCheck {
  /** Unix seconds. */
  checked_at: number;
  status: "up" | "down";
  latency_ms: number;
  response_status: number | null;
  error: string | null;
  manual: boolean;
}

/** What `GET /v1/projects` answers, `projects`, `[]`. */
export interface ProjectItem {
  /** `proj_` and 20 letters and digits. */
  id: string;
  name: string;
  /** URL-safe, derived from the name; it never changes. */
  slug: string;
  description: string | null;
  created_at: string;
}

/** What `GET /v1/relay` answers, `deliveries`, `[]`. */
export interface RelayItem {
  /** Also sent as `X-Svc-Delivery-Id`. */
  relay_id: string;
  kind: "scheduled" | "pulse";
  /** Of a monitor's notification. */
  event: string | null;
  monitor_id: string | null;
  target_url: string;
  method: string;
  status: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled";
  /** Attempts that have ended. */
  attempts: number;
  /** Of the last attempt. */
  response_status: number | null;
  /** What went wrong in the last attempt. */
  error: string | null;
  /** Epoch milliseconds. */
  scheduled_for: number;
  /** Epoch milliseconds. */
  finished_at: number | null;
  /** Epoch milliseconds. */
  created_at: number;
}

/** What `GET /v1/relay/{relay_id}` answers, `attempt_log`, `[]`. */
export interface RelayAttempt {
  /** From 1. */
  attempt: number;
  /** Epoch milliseconds. */
  started_at: number;
  duration_ms: number;
  response_status: number | null;
  error: string | null;
}

/** An Ed25519 public key as a JSON Web Key. */
export type PublicKey = { kty: "OKP"; crv: "Ed25519"; x: string };

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

/** Every code of the API's errors. */
export type ErrorCode =
  | "validation_error"
  | "invalid_request"
  | "unauthorized"
  | "insufficient_balance"
  | "forbidden"
  | "not_found"
  | "timeout"
  | "conflict"
  | "request_too_large"
  | "rate_limit_exceeded"
  | "internal_error"
  | "service_unavailable"
  | "catch.bucket_not_found"
  | "catch.event_not_found"
  | "catch.provider_unsupported"
  | "catch.signature_invalid"
  | "catch.replay_failed"
  | "bucket_limit_exceeded"
  | "bucket_paused"
  | "gate.rule_invalid"
  | "gate.feature_not_found"
  | "flag_not_found"
  | "gate.evaluation_failed"
  | "key_limit_exceeded"
  | "monitor_limit_exceeded"
  | "project_limit_exceeded";
