// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.

/** The body of `POST /v1/admin/accounts`, `tier`. */
export type Tier = "free" | "starter" | "pro" | "scale" | "unlimited";

/** The body of `POST /v1/signup`. */
export interface SignupBody {
  email: string;
  tier: "free" | "pro";
}

/** What `POST /v1/signup` answers. */
export interface SignedUp {
  user_id: string;
  /** Tier free only; for pro it goes out by e-mail. */
  api_key?: string;
}

/** The body of `POST /v1/admin/accounts`. */
export interface AccountCreateBody {
  email: string;
  tier: Tier;
  balance?: number | undefined;
}

/** What `POST /v1/admin/accounts` answers. */
export interface AccountCreated {
  user_id: string;
  /** Shown here and never again. */
  api_key: string;
  email: string;
  tier: Tier;
  balance: number;
}

/** The body of `PATCH /v1/admin/accounts/{user_id}`. */
export interface AccountUpdateBody {
  tier?: Tier | undefined;
  balance?: number | undefined;
  suspended?: boolean | undefined;
}

/** What `PATCH /v1/admin/accounts/{user_id}` answers. */
export interface Account {
  user_id: string;
  email: string;
  tier: Tier;
  balance: number;
  suspended: boolean;
  created_at: string;
}

/** What `GET /v1/admin/accounts` answers. */
export interface AccountPage {
  accounts: Account[];
  cursor?: string;
}

/** The body of `POST /v1/keys/rotate`. */
export interface PlatformKeyRotateBody {
  /** How long older keys still work; 0 ends them at once. As the server is configured (7 days) unless given. */
  grace_hours?: number | undefined;
}

/** What `POST /v1/keys/rotate` answers. */
export interface RotatedPlatformKey {
  /** The new key. Shown here and never again. */
  key: string;
  rotated_at: string;
  /** When the old key stops working, and every older one at the latest. */
  expires_at: string;
}

/** What `POST /v1/admin/accounts/{user_id}/reset-key` answers. */
export interface ResetPlatformKey {
  user_id: string;
  /** The new key. Shown here and never again. */
  api_key: string;
  /** When all earlier platform keys stopped working. */
  reset_at: string;
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
