// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
import type { Tier } from "./parts.ts";
/** The body of `POST /v1/admin/accounts`. */
export type AccountCreateBody = { email: string; tier: Tier; balance?: number | undefined };

/** The body of `PATCH /v1/admin/accounts/{user_id}`. */
export interface AccountUpdateBody {
  tier?: Tier | undefined;
  balance?: number | undefined;
  suspended?: boolean | undefined;
}

/** The body of `POST /v1/admin/clock`. */
export type ClockBody = { advance_ms: number };

/** The body of `POST /v1/catch/buckets`. */
export interface BucketCreateBody {
  /** Where events are sent on to: an https URL. */
  target_url: string;
  /** One of stripe, github, shopify, svix. */
  provider?: string | null | undefined;
  /** The provider's signing secret. It is never shown again. */
  signing_secret?: string | null | undefined;
}

/** The body of `PATCH /v1/catch/buckets/{bucket_id}`. */
export interface BucketUpdateBody {
  state?: "paused" | "live" | undefined;
  /** Where events are sent on to: an https URL. */
  target_url?: string | undefined;
  /** The provider's signing secret. It is never shown again. */
  signing_secret?: string | null | undefined;
}

/** The body of `POST /v1/gate`. */
export interface FlagBody {
  flag_key: string;
  enabled: boolean;
  /** Left out, an existing one stays; null clears it. */
  description?: string | null | undefined;
}

/** The body of `POST /v1/keys`. */
export interface KeyCreateBody {
  /** What the secret begins with. With `sm` the key works as a Bearer credential of this API. */
  prefix: string;
  name: string;
  scopes: readonly string[];
  environment?: string | null | undefined;
  /** At most 16384 characters as JSON. */
  metadata?: Record<string, string> | null | undefined;
  expires_at?: string | null | undefined;
}

/** The body of `POST /v1/keys/rotate`. */
export interface PlatformKeyRotateBody {
  /** How long older keys still work; 0 ends them at once. As the server is configured (7 days) unless given. */
  grace_hours?: number | undefined;
}

/** The body of `POST /v1/keys/{id}/rotate`. */
export interface KeyRotateBody {
  /** How long the old key still works. */
  grace_hours?: number | undefined;
}

/** The body of `POST /v1/keys/verify`. */
export interface KeyVerifyBody {
  secret: string;
  /** The client that showed the key: kept as `last_used_ip` and `last_used_ua`. */
  meta?:
    | {
        ip?: string | null | undefined;
        /** What is beyond 1024 characters is cut off. */
        user_agent?: string | null | undefined;
      }
    | null
    | undefined;
}

/** The body of `POST /v1/latch/{key}/acquire`. */
export interface AcquireBody {
  /** How long the lock is held unless it is released before, in milliseconds. */
  ttl?: number | undefined;
  /** How long to wait for it, in milliseconds. */
  timeout?: number | undefined;
  /** Becomes the lock's token. With the token of the holder the answer comes at once, and the TTL starts anew. */
  token?: string | undefined;
}

/** The body of `POST /v1/latch/{key}/release`. */
export type ReleaseBody = { token: string };

/** The body of `POST /v1/meter/{meterId}/deduct`. */
export interface AmountBody {
  /** Credits; 1 or more. */
  amount: number;
}

/** The body of `POST /v1/meter/{meterId}/reset`. */
export type ResetBody = { balance: number };

/** The body of `POST /v1/pulse`. */
export interface MonitorCreateBody {
  /** What is checked. */
  url: string;
  /** Milliseconds between checks; raised to the tier's minimum, with a `warning`. */
  interval: number;
  /** `GET` unless given. */
  method?: "GET" | "HEAD" | "POST" | undefined;
  /** Milliseconds; 10000 unless given. */
  timeout?: number | undefined;
  /** Failures in a row that make it down; 1 unless given. */
  consecutive_threshold?: number | undefined;
  /** Milliseconds before a target that stays down is told of again; 300000 unless given. */
  cooldown_ms?: number | undefined;
  /** Whether to write to the account's e-mail address. Tiers pro and scale. */
  email_alert?: boolean | undefined;
  /** Whether to tell of recovery as well. */
  notify_recovery?: boolean | undefined;
  /** Sent with each check. Tiers pro and scale. */
  headers?: Record<string, string> | undefined;
  /** Sent with `POST`. */
  body?: string | undefined;
  /** Where notifications go. Tier starter and higher. */
  webhook_url?: string | undefined;
}

/** The body of `PUT /v1/pulse/{monitorId}`. */
export interface MonitorUpdateBody {
  /** What is checked. */
  url?: string | undefined;
  /** Milliseconds between checks; raised to the tier's minimum, with a `warning`. */
  interval?: number | undefined;
  /** `GET` unless given. */
  method?: "GET" | "HEAD" | "POST" | undefined;
  /** Milliseconds; 10000 unless given. */
  timeout?: number | undefined;
  /** Failures in a row that make it down; 1 unless given. */
  consecutive_threshold?: number | undefined;
  /** Milliseconds before a target that stays down is told of again; 300000 unless given. */
  cooldown_ms?: number | undefined;
  /** Whether to write to the account's e-mail address. Tiers pro and scale. */
  email_alert?: boolean | undefined;
  /** Whether to tell of recovery as well. */
  notify_recovery?: boolean | undefined;
  headers?: Record<string, string> | null | undefined;
  /** Sent with `POST`. */
  body?: string | null | undefined;
  /** Where notifications go. Tier starter and higher. */
  webhook_url?: string | null | undefined;
  /** Whether it is checked. */
  active?: boolean | undefined;
}

/** The body of `POST /v1/projects`. */
export type ProjectCreateBody = { name: string; description?: string | null | undefined };

/** The body of `PATCH /v1/projects/{id}`. */
export type ProjectUpdateBody = { name?: string | undefined; description?: string | null | undefined };

/** The body of `POST /v1/relay`. */
export interface RelayBody {
  target_url: string;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From 1s to 30d. */
  delay: string;
  /** Sent as the body, except with GET. */
  payload: object;
  /** `X-Svc-*`, `Host`, `Content-Length`, `Connection` and `Transfer-Encoding` are ignored: the delivery has its own. */
  headers: Record<string, string>;
}

/** The body of `POST /v1/signup`. */
export type SignupBody = { email: string; tier: "free" | "pro" };

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

/** The body of `POST /v1/witness/log`. */
export interface LogBody {
  /** What is to be witnessed. Numbers must be such that JSON readers carry them exactly. */
  log: object;
}

/** The body of `POST /v1/witness/verify`. */
export interface ReceiptVerifyBody {
  /** A receipt as it was given. */
  receipt: unknown;
}
