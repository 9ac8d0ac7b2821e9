import { expect } from "bun:test";
import type { Answer, Client, RequestOptions } from "../../support/client.ts";
import { makeKey } from "../keys/support.ts";

/** A check's answer, parsed. */
export type Checked = Record<string, unknown> & { readonly meter: Record<string, unknown> | null };

/** Asks, and expects an answer rather than an error. */
export async function check(client: Client, body: object, options?: RequestOptions): Promise<Checked> {
  const answer = await client.post("/v1/check", body, options);
  expect(answer.status, answer.text).toBe(200);
  return answer.body as Checked;
}

/** Asks as {@link check} does, and returns the whole answer. */
export function ask(client: Client, body: object, options?: RequestOptions): Promise<Answer> {
  return client.post("/v1/check", body, options);
}

/** A key of a customer who has a meter with a balance. Returns its secret. */
export async function customer(client: Client, balance: number, terms: object = {}, owner = "acme") {
  if (balance > 0) await refill(client, owner, balance);
  return makeKey(client, { owner_id: owner, ...terms });
}

/** Adds to a meter. */
export async function refill(client: Client, meter: string, amount: number): Promise<void> {
  const { status, text } = await client.post(`/v1/meter/${meter}/refill`, { amount });
  expect(status, text).toBe(200);
}

/** Balance and available of a meter. */
export async function figures(client: Client, meter = "acme"): Promise<[unknown, unknown]> {
  const { body } = await client.get(`/v1/meter/${meter}/balance`);
  return [body.balance, body.available];
}

/** What is left of a key: its uses, and of each limit. Asked for a scope that it lacks, so that nothing is taken. */
export async function left(client: Client, secret: string): Promise<unknown[]> {
  const { body } = await client.post("/v1/keys/verify", { secret, require: ["lacking"] });
  const states = body.ratelimits as { remaining: number }[];
  return [body.uses_remaining, ...states.map(({ remaining }) => remaining)];
}

/** What is told of a key that is unknown. */
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
