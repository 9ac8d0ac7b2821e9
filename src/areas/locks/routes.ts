import type { Static } from "@sinclair/typebox";
import { assertStillValid } from "../../kernel/http/caller.ts";
import type { Http } from "../../kernel/http/http.ts";
import type { Call } from "../../kernel/http/route.ts";
import { DURATION_MS_DEFAULT } from "./domain.ts";
import type { Granted } from "./lock.ts";
import {
  AcquireBody,
  AcquiredLock,
  EXAMPLE_TOKEN,
  LockParams,
  LockStatus,
  ReleaseBody,
  ReleasedLock,
} from "./schema.ts";
import type { LockService } from "./service.ts";
import { Waiter } from "./waiter.ts";

/** Declares the locks. */
export function lockRoutes(http: Http, locks: LockService): void {
  http.route(
    "POST",
    "/v1/latch/:key/acquire",
    {
      operation: "latch.acquire",
      summary: "Acquire a lock, waiting for it if need be",
      description:
        "Waiters get the lock in the order of their requests; one whose connection closes leaves the queue at once. " +
        "A request that was sent with a `token` can be sent again: the holder's token gets the same lock, `reentrant`.",
      params: LockParams,
      body: AcquireBody,
      answers: { 200: AcquiredLock },
      errors: ["timeout", "service_unavailable"],
      example: { ttl: 30_000, timeout: 5_000, token: EXAMPLE_TOKEN },
    },
    (call) => acquire(locks, call),
  );
  http.route(
    "POST",
    "/v1/latch/:key/release",
    {
      operation: "latch.release",
      summary: "Release a lock",
      description: "The next waiter gets it. 404 when the lock is free, 403 when another token holds it.",
      params: LockParams,
      body: ReleaseBody,
      answers: { 200: ReleasedLock },
      errors: ["not_found"],
      example: { token: EXAMPLE_TOKEN },
    },
    (call) =>
      call.perform((tx) => {
        locks.release(tx, call.caller.project.ref, call.params.key, call.body.token);
        return { status: "released" };
      }),
  );
  http.route(
    "GET",
    "/v1/latch/:key",
    {
      operation: "latch.status",
      summary: "Read a lock's state",
      params: LockParams,
      answers: { 200: LockStatus },
    },
    (call) => locks.status(call.caller.project.ref, call.params.key),
  );
}

type AcquireCall = Call<Static<typeof LockParams>, unknown, Static<typeof AcquireBody>>;

async function acquire(locks: LockService, call: AcquireCall): Promise<object> {
  const { ttl = DURATION_MS_DEFAULT, timeout = DURATION_MS_DEFAULT, token = null } = call.body;
  const terms = {
    key: call.params.key,
    ttlMs: ttl,
    timeoutMs: timeout,
    token,
    signal: call.signal,
  };
  // Asked within the unit of work: one queued before it may make another project the default one.
  const outcome = await call.perform((tx) =>
    locks.acquire(tx, { ...terms, projectRef: call.caller.project.ref }),
  );
  if (!(outcome instanceof Waiter)) return acquired(outcome);
  call.liftIdleTimeout();
  // A wait can last long: the key may have been revoked meanwhile, or its account suspended.
  return acquired(await locks.wait(outcome, () => assertStillValid(call.caller)));
}

function acquired({ lock, lease, reentrant }: Granted): Static<typeof AcquiredLock> {
  return {
    status: "acquired",
    key: lock.key,
    token: lease.token,
    fencing_token: lease.fencingToken,
    expires_at: lease.expiresAt,
    reentrant,
  };
}
