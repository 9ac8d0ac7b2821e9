// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
import type {
  Account,
  Bucket,
  EventItem,
  Flag,
  KeyItem,
  LedgerEntry,
  MonitorCheck,
  MonitorStatus,
  ProjectItem,
  PublicKey,
  Receipt,
  RelayAttempt,
  RelayItem,
  Tier,
} from "./parts.ts";
/** What `POST /v1/admin/accounts` answers. */
export interface AccountCreated {
  user_id: string;
  /** Shown here and never again. */
  api_key: string;
  email: string;
  tier: Tier;
  balance: number;
}

/** What `GET /v1/admin/accounts` answers. */
export interface AccountPage {
  accounts: Account[];
  /** Hand it in to get the next page. Absent on the last one. */
  cursor?: string;
}

/** What `POST /v1/admin/clock` answers. */
export interface ClockAdvanced {
  /** Epoch milliseconds. */
  now: number;
}

/** What `GET /v1/catch/buckets` answers. */
export type BucketList = { buckets: Bucket[] };

/** What `DELETE /v1/catch/{bucket_id}/events` answers. */
export type EventsDeleted = { deleted_count: number };

/** What `GET /v1/catch/{bucket_id}/events/{event_id}` answers. */
export interface CaughtEvent extends EventItem {
  headers: Record<string, string>;
  /** The body: parsed where it is JSON, otherwise as text. */
  payload: unknown;
  /** The exact bytes of the body. */
  payload_base64: string;
}

/** What `GET /v1/catch/{bucket_id}/events` answers. */
export interface EventPage {
  events: EventItem[];
  /** Null on the last page. */
  cursor: string | null;
}

/** What `POST /v1/catch/{bucket_id}/events/{event_id}/replay` answers. */
export interface EventReplayed {
  status: "replayed" | "failed";
  /** What the target answered. */
  response_status: number;
}

/** What `POST /v1/catch/{bucket_id}` answers. */
export interface Ingested {
  status: "accepted" | "rate_limited" | "panic_mode" | "insufficient_balance" | "too_large" | "ignored";
  verification: "none" | "valid" | "invalid";
  /** Of an accepted event. */
  event_id?: string;
}

/** What `GET /v1/gate/config` answers. */
export type FlagConfig = { flags: Flag[] };

/** What `DELETE /v1/gate/{flagKey}` answers. */
export type FlagDeleted = { success: true };

/** What `GET /v1/gate/{flagKey}` answers. */
export type FlagEvaluation = { enabled: boolean; flag_key: string };

/** What `GET /v1/gate` answers. */
export type FlagKeys = { flags: string[] };

/** What `POST /v1/gate` answers. */
export type FlagSaved = { success: true; flag_key: string };

/** What `POST /v1/keys` answers. */
export interface KeyCreated {
  key_id: string;
  /** Shown here and never again. */
  secret: string;
  prefix: string;
  name: string;
  scopes: string[];
  environment?: string;
  metadata?: Record<string, string>;
  /** The only project that the key works in; null for a key of the account. */
  project_id: string | null;
  created_at: string;
  expires_at: string | null;
}

/** What `GET /v1/keys/{id}` answers. */
export interface Key extends KeyItem {
  /** As given to verify. */
  last_used_ip?: string;
  /** As given to verify. */
  last_used_ua?: string;
}

/** What `GET /v1/keys` answers. */
export interface KeyPage {
  keys: KeyItem[];
  has_more: boolean;
  /** The `created_at` of the last item. Null on the last page. */
  next_cursor: string | null;
}

/** What `POST /v1/admin/accounts/{user_id}/reset-key` answers. */
export interface ResetPlatformKey {
  user_id: string;
  /** The new key. Shown here and never again. */
  api_key: string;
  /** When all earlier platform keys stopped working. */
  reset_at: string;
}

/** What `POST /v1/keys/rotate` answers. */
export interface RotatedPlatformKey {
  /** The new key. Shown here and never again. */
  key: string;
  rotated_at: string;
  /** When the old key stops working, and every older one at the latest. */
  expires_at: string;
}

/** What `DELETE /v1/keys/{id}` answers. */
export type KeyRevoked = { key_id: string; revoked_at: string; status: "revoked" };

/** What `POST /v1/keys/{id}/rotate` answers. */
export interface KeyRotated {
  new_key_id: string;
  /** Shown here and never again. */
  new_secret: string;
  old_key_id: string;
  old_expires_at: string;
  grace_hours: number;
}

/** What `POST /v1/keys/verify` answers. */
export interface KeyVerdict {
  valid: boolean;
  key_id: string | null;
  project_id: string | null;
  scopes: string[] | null;
  error: "invalid_key" | "expired" | "revoked" | "deleted" | null;
}

/** What `POST /v1/latch/{key}/acquire` answers. */
export interface AcquiredLock {
  status: "acquired";
  key: string;
  token: string;
  /** Rises with every grant of the lock, for ever. */
  fencing_token: number;
  /** Epoch milliseconds. */
  expires_at: number;
  /** Whether the token held the lock already. */
  reentrant: boolean;
}

/** What `POST /v1/latch/{key}/release` answers. */
export type ReleasedLock = { status: "released" };

/** What `GET /v1/latch/{key}` answers. */
export interface LockStatus {
  locked: boolean;
  /** Requests that wait for it. */
  queue_depth: number;
  /** Milliseconds until it expires; null when it is free. */
  ttl_remaining: number | null;
}

/** What `GET /v1/meter/{meterId}/balance` answers. */
export type MeterBalance = { balance: number; meter_id: string };

/** What `GET /v1/meter/{meterId}/history` answers. */
export interface LedgerPage {
  entries: LedgerEntry[];
  /** Hand it in to get the next page. Absent on the last one. */
  cursor?: string;
}

/** What `GET /v1/meter/balance` answers. */
export type OwnBalance = { balance: number; user_id: string };

/** What `POST /v1/pulse` answers. */
export interface Monitor {
  id: string;
  url: string;
  method: string;
  headers: Record<string, string> | null;
  body: string | null;
  timeout: number;
  interval: number;
  consecutive_threshold: number;
  cooldown_ms: number;
  webhook_url: string | null;
  email_alert: boolean;
  notify_recovery: boolean;
  active: boolean;
  status: "up" | "down" | "unknown";
  /** Milliseconds of the last check; the time-out on a time-out. */
  latency_ms: number | null;
  /** Unix seconds. */
  last_checked_at: number | null;
  /** Unix seconds. */
  created_at: number;
  /** Unix seconds. */
  updated_at: number;
  /** The interval was raised to the tier's minimum. */
  warning?: string;
}

/** What `DELETE /v1/pulse/{monitorId}` answers. */
export type MonitorDeleted = { deleted: true };

/** What `GET /v1/pulse/{monitorId}/history` answers. */
export interface MonitorHistory {
  checks: MonitorCheck[];
  uptime: {
    /** Percent; null without checks. */
    "24h": number | null;
    /** Percent; null without checks. */
    "7d": number | null;
    /** Percent; null without checks. */
    "30d": number | null;
  };
  /** Hand it in to get the next page. Absent on the last one. */
  cursor?: string;
}

/** What `GET /v1/pulse` answers. */
export interface MonitorPage {
  monitors: MonitorStatus[];
  /** Hand it in to get the next page. Absent on the last one. */
  cursor?: string;
}

/** What `GET /openapi.json` answers. */
export type OpenApiDocument = { openapi: string; [name: string]: unknown };

/** What `GET /v1/ping` answers. */
export type Pong = { pong: true };

/** What `POST /v1/projects` answers. */
export interface Project extends ProjectItem {
  updated_at: string;
}

/** What `DELETE /v1/projects/{id}` answers. */
export type ProjectDeleted = { success: true; deleted_at: string };

/** What `GET /v1/projects` answers. */
export interface ProjectPage {
  projects: ProjectItem[];
  /** Hand it in to get the next page. Absent on the last one. */
  cursor?: string;
}

/** What `GET /v1/projects/{id}/overview` answers. */
export interface ProjectOverview {
  project_id: string;
  project_name: string;
  /** Keys that are not revoked, relays still to be delivered, locks held, and all of the others. */
  resources: {
    flags: number;
    monitors: number;
    relays: number;
    buckets: number;
    keys: number;
    locks: number;
    chains: number;
    meters: number;
  };
  usage: {
    /** The account's credit balance. */
    meter_balance: number;
    /** The last change in the project. */
    last_activity: string | null;
  };
}

/** What `DELETE /v1/relay/{relay_id}` answers. */
export type RelayCancelled = { relay_id: string; status: "cancelled" };

/** What `GET /v1/relay` answers. */
export interface RelayPage {
  deliveries: RelayItem[];
  /** Hand it in to get the next page. Absent on the last one. */
  cursor?: string;
}

/** What `GET /v1/relay/{relay_id}` answers. */
export interface Relay extends RelayItem {
  attempt_log: RelayAttempt[];
}

/** What `POST /v1/relay` answers. */
export interface RelayScheduled {
  relay_id: string;
  /** Epoch milliseconds. */
  scheduled_for: number;
  status: "scheduled";
}

/** What `POST /v1/signup` answers. */
export interface SignedUp {
  user_id: string;
  /** Tier free only; for pro it goes out by e-mail. */
  api_key?: string;
}

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

/** What `POST /v1/witness/config` answers. */
export type StorageConfigured = { success: true; configured: true };

/** What `POST /v1/witness/sys/init` answers. */
export type ChainExists = { success: false; chain_id: string };

/** What `POST /v1/witness/sys/init` answers. */
export type ChainCreated = { success: true; publicKey: PublicKey; createdAt: string; chain_id: string };

/** What `GET /v1/witness/receipts` answers. */
export interface ReceiptPage {
  receipts: Receipt[];
  /** Hand it in to get the next page. Absent on the last one. */
  cursor?: string;
}

/** What `POST /v1/witness/verify` answers. */
export interface ReceiptVerdict {
  valid: boolean;
  checks: { signature_valid: boolean; content_hash_matches: boolean; chain_link_valid: boolean };
  metadata: { sequence_id: string | null; timestamp: number | null; public_key: PublicKey | null };
  errors?: string[];
}
