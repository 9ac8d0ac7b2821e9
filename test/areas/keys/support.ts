import { expect } from "bun:test";
import type { Client } from "../../support/client.ts";

/** A new key. */
export interface MadeKey {
  readonly id: string;
  readonly secret: string;
  readonly createdAt: string;
}

/** The body of a creation, with a prefix other than `sm`; `more` replaces fields. */
export function termsOf(more: object = {}): Record<string, unknown> {
  return { prefix: "acme", name: "k", scopes: ["orders:read"], ...more };
}

/** Creates a key of the account, or of a project. */
export async function makeKey(client: Client, more: object = {}, project?: string): Promise<MadeKey> {
  const path = project === undefined ? "/v1/keys" : `/v1/projects/${project}/keys`;
  const { status, body, text } = await client.post(path, termsOf(more));
  expect(status, text).toBe(201);
  return { id: String(body.key_id), secret: String(body.secret), createdAt: String(body.created_at) };
}

/** Creates a key that is a Bearer credential. */
export function makeBearer(client: Client, scopes: readonly string[], project?: string): Promise<MadeKey> {
  return makeKey(client, { prefix: "sm", scopes }, project);
}

/** The verdict on a secret. */
export async function verdictOf(client: Client, secret: string): Promise<Record<string, unknown>> {
  const { status, body, text } = await client.post("/v1/keys/verify", { secret });
  expect(status, text).toBe(200);
  return body;
}

/** The verdict on a secret that is not a key of the caller. */
export const INVALID = {
  valid: false,
  key_id: null,
  project_id: null,
  scopes: null,
  roles: null,
  permissions: null,
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

/** The fields of a key that was created with the required ones only. */
export const UNBOUND = {
  created_by: null,
  owner_id: null,
  meter_id: null,
  enabled: true,
  ratelimits: [],
  uses: null,
  allowed_ips: [],
  permissions: [],
  roles: [],
};
