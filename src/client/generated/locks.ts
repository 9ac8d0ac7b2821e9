// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** The body of `POST /v1/latch/{key}/acquire`. */
export interface AcquireBody {
  /** How long the lock is held unless it is released before, in milliseconds. */
  ttl?: number | undefined;
  /** How long to wait for it, in milliseconds. */
  timeout?: number | undefined;
  /** Becomes the lock's token. With the token of the holder the answer comes at once, and the TTL starts anew. */
  token?: string | undefined;
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

/** The body of `POST /v1/latch/{key}/release`. */
export interface ReleaseBody {
  token: string;
}

/** What `POST /v1/latch/{key}/release` answers. */
export interface ReleasedLock {
  status: "released";
}

/** What `GET /v1/latch/{key}` answers. */
export interface LockStatus {
  locked: boolean;
  /** Requests that wait for it. */
  queue_depth: number;
  /** Milliseconds until it expires; null when it is free. */
  ttl_remaining: number | null;
}
