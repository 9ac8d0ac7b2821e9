// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** The body of `POST /v1/admin/accounts`. */
export interface AccountCreateBody {
  email: string;
  tier: Tier;
  balance?: number | undefined;
}

/** The body of `POST /v1/admin/accounts`, `tier`. */
export type Tier = "free" | "starter" | "pro" | "scale" | "unlimited";

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
  cursor?: string;
}

/** What `GET /v1/admin/accounts` answers, `accounts`, `[]`. */
export interface Account {
  user_id: string;
  email: string;
  tier: Tier;
  balance: number;
  suspended: boolean;
  created_at: string;
}

/** The body of `PATCH /v1/admin/accounts/{user_id}`. */
export interface AccountUpdateBody {
  tier?: Tier | undefined;
  balance?: number | undefined;
  suspended?: boolean | undefined;
}

/** The body of `POST /v1/admin/clock`. */
export interface ClockBody {
  advance_ms: number;
}

/** What `POST /v1/admin/clock` answers. */
export interface ClockAdvanced {
  /** Epoch milliseconds. */
  now: number;
}

/** What `POST /v1/admin/accounts/{user_id}/reset-key` answers. */
export interface ResetPlatformKey {
  user_id: string;
  /** The new key. Shown here and never again. */
  api_key: string;
  /** When all earlier platform keys stopped working. */
  reset_at: string;
}
