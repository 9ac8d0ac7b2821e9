// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
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
