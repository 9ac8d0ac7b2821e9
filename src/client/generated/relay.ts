// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** What `DELETE /v1/relay/{relay_id}` answers. */
export interface RelayCancelled {
  relay_id: string;
  status: "cancelled";
}

/** What `GET /v1/relay` answers. */
export interface RelayPage {
  deliveries: RelayItem[];
  cursor?: string;
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

/** What `GET /v1/relay/{relay_id}` answers. */
export interface Relay {
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
  attempt_log: RelayAttempt[];
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

/** What `POST /v1/relay` answers. */
export interface RelayScheduled {
  relay_id: string;
  /** Epoch milliseconds. */
  scheduled_for: number;
  status: "scheduled";
}
