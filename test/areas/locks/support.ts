import { expect } from "bun:test";
import { type Cancel, realDelay } from "../../../src/kernel/time/clock.ts";
import type { Answer, Client } from "../../support/client.ts";

/** A lock that a test has got. */
export interface Held {
  readonly key: string;
  readonly token: string;
  readonly fencingToken: number;
  readonly expiresAt: number;
  readonly reentrant: boolean;
}

export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** What an acquire's answer holds; fails when it was refused. */
export function heldFrom(answer: Answer): Held {
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  const { key, token, fencing_token, expires_at, reentrant } = answer.body;
  return {
    key: String(key),
    token: String(token),
    fencingToken: Number(fencing_token),
    expiresAt: Number(expires_at),
    reentrant: reentrant === true,
  };
}

/** Acquires a lock and fails when it is refused. */
export async function acquire(client: Client, key: string, body?: object): Promise<Held> {
  return heldFrom(await client.post(`/v1/latch/${key}/acquire`, body));
}

/** Releases a lock. */
export function release(client: Client, key: string, token: string): Promise<Answer> {
  return client.post(`/v1/latch/${key}/release`, { token });
}

/** An acquire that is under way. */
export interface Pending {
  readonly answer: Promise<Answer>;
  /** Closes its connection. */
  readonly disconnect: Cancel;
  /** The answer, when it is there already. */
  readonly settled: () => Answer | null;
}

/** Sends an acquire without waiting for its answer. */
export function begin(client: Client, key: string, body: object = {}): Pending {
  const controller = new AbortController();
  let settled: Answer | null = null;
  const answer = client.post(`/v1/latch/${key}/acquire`, body, { signal: controller.signal });
  answer.then(
    (value) => {
      settled = value;
    },
    () => {},
  );
  return { answer, disconnect: () => controller.abort(), settled: () => settled };
}

/** Sends an acquire of a lock that is held, and returns once it stands in the queue. */
export async function queue(client: Client, key: string, body: object = {}): Promise<Pending> {
  const before = await depth(client, key);
  const pending = begin(client, key, body);
  await untilDepth(client, key, before + 1);
  return pending;
}

/** Requests that wait for a lock. */
export async function depth(client: Client, key: string): Promise<number> {
  return Number((await client.get(`/v1/latch/${key}`)).body["queue_depth"]);
}

const PATIENCE_MS = 5_000;

/** Returns when so many requests wait for a lock; fails when that does not come about. */
export async function untilDepth(client: Client, key: string, wanted: number): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  let seen = await depth(client, key);
  while (seen !== wanted && performance.now() < deadline) {
    await realDelay(1);
    seen = await depth(client, key);
  }
  expect(seen, `waiters of ${key}`).toBe(wanted);
}
