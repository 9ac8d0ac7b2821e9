import { expect } from "bun:test";
import type { Client } from "../../support/client.ts";

/** A key as its creation told it. */
export interface MadeKey {
  readonly id: string;
  readonly secret: string;
  readonly createdAt: string;
}

/** Terms of a key for verify alone; whatever differs is given. */
export function termsOf(more: object = {}): Record<string, unknown> {
  return { prefix: "acme", name: "k", scopes: ["orders:read"], ...more };
}

/** Makes a key, of the account unless a project is given. */
export async function makeKey(client: Client, more: object = {}, project?: string): Promise<MadeKey> {
  const path = project === undefined ? "/v1/keys" : `/v1/projects/${project}/keys`;
  const { status, body, text } = await client.post(path, termsOf(more));
  expect(status, text).toBe(201);
  return { id: String(body.key_id), secret: String(body.secret), createdAt: String(body.created_at) };
}

/** Makes a key that is a Bearer credential. */
export function makeBearer(client: Client, scopes: readonly string[], project?: string): Promise<MadeKey> {
  return makeKey(client, { prefix: "sm", scopes }, project);
}

/** What verify says of a secret. */
export async function verdictOf(client: Client, secret: string): Promise<Record<string, unknown>> {
  const { status, body, text } = await client.post("/v1/keys/verify", { secret });
  expect(status, text).toBe(200);
  return body;
}

/** The verdict on whatever is no key of the caller's. */
export const INVALID = {
  valid: false,
  key_id: null,
  project_id: null,
  scopes: null,
  error: "invalid_key",
  owner_id: null,
  meter_id: null,
  name: null,
  environment: null,
  metadata: null,
  expires_at: null,
  enabled: null,
  uses_remaining: null,
  ratelimits: null,
  retry_after_seconds: null,
};

/** What a key says of itself beyond its terms where nothing else has been said. */
export const UNBOUND = {
  owner_id: null,
  meter_id: null,
  enabled: true,
  ratelimits: [],
  uses: null,
  allowed_ips: [],
};
