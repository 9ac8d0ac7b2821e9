import { expect } from "bun:test";
import type { Answer, Client, RequestOptions } from "../../support/client.ts";
import { makeKey } from "../keys/support.ts";

/** A parsed result of a check. */
export type Checked = Record<string, unknown> & { readonly meter: Record<string, unknown> | null };

/** Runs a check and expects 200. */
export async function check(client: Client, body: object, options?: RequestOptions): Promise<Checked> {
  const response = await client.post("/v1/check", body, options);
  expect(response.status, response.text).toBe(200);
  return response.body as Checked;
}

/** Sends a check and returns the response. */
export function postCheck(client: Client, body: object, options?: RequestOptions): Promise<Answer> {
  return client.post("/v1/check", body, options);
}

/** Creates a key of a customer with a filled meter. Returns its secret. */
export async function customer(client: Client, balance: number, terms: object = {}, owner = "acme") {
  if (balance > 0) await refill(client, owner, balance);
  return makeKey(client, { owner_id: owner, ...terms });
}

export async function refill(client: Client, meter: string, amount: number): Promise<void> {
  const { status, text } = await client.post(`/v1/meter/${meter}/refill`, { amount });
  expect(status, text).toBe(200);
}

/** Returns balance and available credits of a meter. */
export async function meterFigures(client: Client, meter = "acme"): Promise<[unknown, unknown]> {
  const { body } = await client.get(`/v1/meter/${meter}/balance`);
  return [body.balance, body.available];
}

/** Returns the remaining uses and limits of a key. The evaluation requires a missing scope, so that it takes nothing. */
export async function remainingOf(client: Client, secret: string): Promise<unknown[]> {
  const { body } = await client.post("/v1/keys/verify", { secret, require: ["lacking"] });
  const states = body.ratelimits as { remaining: number }[];
  return [body.uses_remaining, ...states.map(({ remaining }) => remaining)];
}

/** Fields of a result for an unknown key. */
export const UNKNOWN_KEY = {
  allowed: false,
  code: "invalid_key",
  status: 401,
  retry_after_seconds: null,
  key_id: null,
  owner_id: null,
  project_id: null,
  name: null,
  environment: null,
  scopes: null,
  metadata: null,
  uses_remaining: null,
  ratelimits: null,
  meter: null,
  flags: null,
};
