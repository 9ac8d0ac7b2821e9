// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** What `GET /v1/gate/config` answers. */
export interface FlagConfig {
  flags: Flag[];
}

/** What `GET /v1/gate/config` answers, `flags`, `[]`. */
export interface Flag {
  flag_key: string;
  enabled: boolean;
  description?: string;
}

/** What `DELETE /v1/gate/{flagKey}` answers. */
export interface FlagDeleted {
  success: true;
}

/** What `GET /v1/gate/{flagKey}` answers. */
export interface FlagEvaluation {
  enabled: boolean;
  flag_key: string;
}

/** What `GET /v1/gate` answers. */
export interface FlagKeys {
  flags: string[];
}

/** The body of `POST /v1/gate`. */
export interface FlagBody {
  flag_key: string;
  enabled: boolean;
  /** Left out, an existing one stays; null clears it. */
  description?: string | null | undefined;
}

/** What `POST /v1/gate` answers. */
export interface FlagSaved {
  success: true;
  flag_key: string;
}
