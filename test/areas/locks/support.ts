import { expect } from "bun:test";
import type { Cancel } from "../../../src/kernel/time/clock.ts";
import type { Answer, Client } from "../../support/client.ts";
import { eventually } from "../../support/eventually.ts";

/** A lock acquired by a test. */
export interface AcquiredLock {
  readonly key: string;
  readonly token: string;
  readonly fencingToken: number;
  readonly expiresAt: number;
  readonly reentrant: boolean;
}

export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Reads the response of an acquire; fails if it was rejected. */
export function lockFrom(response: Answer): AcquiredLock {
  expect({ status: response.status, text: response.text }).toMatchObject({ status: 200 });
  const { key, token, fencing_token, expires_at, reentrant } = response.body;
  return {
    key: String(key),
    token: String(token),
    fencingToken: Number(fencing_token),
    expiresAt: Number(expires_at),
    reentrant: reentrant === true,
  };
}

/** Acquires a lock; fails if it is rejected. */
export async function acquire(client: Client, key: string, body?: object): Promise<AcquiredLock> {
  return lockFrom(await client.post(`/v1/latch/${key}/acquire`, body));
}

export function release(client: Client, key: string, token: string): Promise<Answer> {
  return client.post(`/v1/latch/${key}/release`, { token });
}

/** An acquire in flight. */
export interface PendingAcquire {
  readonly response: Promise<Answer>;
  /** Closes its connection. */
  readonly disconnect: Cancel;
  /** Returns the response, or null while it is pending. */
  readonly settled: () => Answer | null;
}

/** Sends an acquire without waiting for its response. */
export function startAcquire(client: Client, key: string, body: object = {}): PendingAcquire {
  const controller = new AbortController();
  let settled: Answer | null = null;
  const response = client.post(`/v1/latch/${key}/acquire`, body, { signal: controller.signal });
  response.then(
    (value) => {
      settled = value;
    },
    () => {},
  );
  return { response, disconnect: () => controller.abort(), settled: () => settled };
}

/** Sends an acquire of a held lock and resolves when it is in the queue. */
export async function queue(client: Client, key: string, body: object = {}): Promise<PendingAcquire> {
  const before = await depth(client, key);
  const pending = startAcquire(client, key, body);
  await waitForDepth(client, key, before + 1);
  return pending;
}

/** Returns the number of requests waiting for a lock. */
export async function depth(client: Client, key: string): Promise<number> {
  return Number((await client.get(`/v1/latch/${key}`)).body["queue_depth"]);
}

/** Resolves when this number of requests wait for a lock; fails after a timeout. */
export async function waitForDepth(client: Client, key: string, expected: number): Promise<void> {
  await eventually(async () => expect(await depth(client, key), `waiters of ${key}`).toBe(expected));
}
