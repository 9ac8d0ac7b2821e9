// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
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
export interface Key {
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

/** What `DELETE /v1/keys/{id}` answers. */
export interface KeyRevoked {
  key_id: string;
  revoked_at: string;
  status: "revoked";
}

/** The body of `POST /v1/keys/{id}/rotate`. */
export interface KeyRotateBody {
  /** How long the old key still works. */
  grace_hours?: number | undefined;
}

/** What `POST /v1/keys/{id}/rotate` answers. */
export interface KeyRotated {
  new_key_id: string;
  /** Shown here and never again. */
  new_secret: string;
  old_key_id: string;
  old_expires_at: string;
  grace_hours: number;
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

/** What `POST /v1/keys/verify` answers. */
export interface KeyVerdict {
  valid: boolean;
  key_id: string | null;
  project_id: string | null;
  scopes: string[] | null;
  error: "invalid_key" | "expired" | "revoked" | "deleted" | null;
}
