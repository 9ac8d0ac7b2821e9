// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** The body of `POST /v1/catch/buckets`. */
export interface BucketCreateBody {
  /** Where events are sent on to: an https URL. */
  target_url: string;
  /** One of stripe, github, shopify, svix. */
  provider?: string | null | undefined;
  /** The provider's signing secret. It is never shown again. */
  signing_secret?: string | null | undefined;
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
  events: {
    pending: number;
    delivered: number;
    failed: number;
  };
}

/** What `GET /v1/catch/buckets` answers. */
export interface BucketList {
  buckets: Bucket[];
}

/** The body of `PATCH /v1/catch/buckets/{bucket_id}`. */
export interface BucketUpdateBody {
  state?: "paused" | "live" | undefined;
  /** Where events are sent on to: an https URL. */
  target_url?: string | undefined;
  /** The provider's signing secret. It is never shown again. */
  signing_secret?: string | null | undefined;
}

/** What `DELETE /v1/catch/{bucket_id}/events` answers. */
export interface EventsDeleted {
  deleted_count: number;
}

/** What `GET /v1/catch/{bucket_id}/events/{event_id}` answers. */
export interface CaughtEvent {
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
