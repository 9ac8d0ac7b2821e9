// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
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
export interface MonitorDeleted {
  deleted: true;
}

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
  cursor?: string;
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

/** What `GET /v1/pulse` answers. */
export interface MonitorPage {
  monitors: MonitorStatus[];
  cursor?: string;
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
