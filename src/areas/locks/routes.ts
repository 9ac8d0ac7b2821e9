import { Elysia } from "elysia";
import { assertStillValid } from "../../kernel/callers/caller.ts";
import { invalidField } from "../../kernel/errors.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { DURATION_MS_DEFAULT, DURATION_MS_MIN, TIMEOUT_MS_TRY } from "./domain.ts";
import { type Grant, Waiter } from "./lock.ts";
import {
  AcquireBody,
  AcquiredLock,
  EXAMPLE_TOKEN,
  ExtendedLock,
  ForceReleaseBody,
  LockExtendBody,
  LockPage,
  LockParams,
  LockStatus,
  ReleaseBody,
  ReleasedLock,
  TIMEOUT_MESSAGE,
} from "./schema.ts";
import type { LockService } from "./service.ts";

/** Default number of locks on a page. */
const LOCKS_LIMIT = 50;

/** Declares the routes of locks. */
export function lockRoutes(api: Api, locks: LockService) {
  return [holderRoutes(api, locks), readRoutes(api, locks)];
}

function readRoutes(api: Api, locks: LockService) {
  return new Elysia({ tags: ["Locks"] })
    .get(
      "/v1/latch",
      api.endpoint(
        {
          name: "latch.list",
          access: "latch:read",
          summary: "List the held locks, by key",
          description:
            "Use it to find locks that hang. A shared lock has one row per holder. Free locks are not listed, and tokens are never returned.",
          query: pageQuery(LOCKS_LIMIT),
          response: LockPage,
        },
        ({ call, query: { limit = LOCKS_LIMIT, cursor } }) =>
          locks.list(call.caller.project.ref, limit, cursor),
      ),
    )
    .post(
      "/v1/latch/:key/force-release",
      api.endpoint(
        {
          name: "latch.force",
          access: "latch:write",
          audit: "yes",
          summary: "Release a lock by force",
          description:
            "Releases the lock of a holder that hangs, without notifying the holder. The lock passes to the next waiter. Resources that check fencing tokens stay protected from late writes of the old holder. 409 if the lock has another holder.",
          errors: ["not_found", "conflict"],
          example: { fencing_token: 7 },
          params: LockParams,
          body: ForceReleaseBody,
          response: ReleasedLock,
        },
        ({ call, params, body }) =>
          call.perform((tx) => {
            locks.forceRelease(tx, call.caller.project.ref, params.key, body.fencing_token);
            return { status: "released" as const };
          }),
      ),
    );
}

function holderRoutes(api: Api, locks: LockService) {
  return new Elysia({ tags: ["Locks"] })
    .post(
      "/v1/latch/:key/acquire",
      api.endpoint(
        {
          name: "latch.acquire",
          access: "latch:write",
          idempotent: false,
          summary: "Acquire a lock, waiting until it is free",
          description:
            "Waiters get the lock in the order of their requests. A request leaves the queue as soon as its connection closes. " +
            "A request with a `token` can be repeated: the holder's token gets the same lock again, with `reentrant: true`. " +
            "With `timeout: 0` it never waits: 408 if the lock is not free, or others wait for it. " +
            "In the mode `shared` several hold the lock together; 409 if the token holds it in the other mode.",
          errors: ["timeout", "conflict", "service_unavailable"],
          example: { ttl: 30_000, timeout: 5_000, token: EXAMPLE_TOKEN },
          params: LockParams,
          body: AcquireBody,
          response: AcquiredLock,
        },
        ({ call, params, body }) => acquire(locks, call, params.key, body),
      ),
    )
    .post(
      "/v1/latch/:key/release",
      api.endpoint(
        {
          name: "latch.release",
          access: "latch:write",
          summary: "Release a lock",
          description:
            "The lock passes to the next waiter. 404 if the lock is free, 403 if another token holds it.",
          errors: ["not_found"],
          example: { token: EXAMPLE_TOKEN },
          params: LockParams,
          body: ReleaseBody,
          response: ReleasedLock,
        },
        ({ call, params, body }) =>
          call.perform((tx) => {
            locks.release(tx, call.caller.project.ref, params.key, body.token);
            return { status: "released" as const };
          }),
      ),
    )
    .post(
      "/v1/latch/:key/extend",
      api.endpoint(
        {
          name: "latch.extend",
          access: "latch:write",
          summary: "Extend a lock",
          description:
            "The lock expires `ttl` from now, even when that is earlier than before. Unlike acquire, this never takes a free lock: 404 if the lock is free, 403 if another token holds it.",
          errors: ["not_found"],
          example: { token: EXAMPLE_TOKEN, ttl: 30_000 },
          params: LockParams,
          body: LockExtendBody,
          response: ExtendedLock,
        },
        ({ call, params, body }) =>
          call.perform((tx) => {
            const { fencing_token, expires_at } = locks.extend(tx, call.caller.project.ref, params.key, body);
            return { status: "extended" as const, fencing_token, expires_at };
          }),
      ),
    )
    .get(
      "/v1/latch/:key",
      api.endpoint(
        {
          name: "latch.status",
          access: "latch:read",
          summary: "Get a lock's state",
          description:
            "Use it to see whether a lock is held, how long it has left, and how many requests wait. The result may be outdated when you read it: only an acquire is reliable. A lock that nobody holds, or that never existed, is `locked: false`.",
          params: LockParams,
          response: LockStatus,
        },
        ({ call, params }) => locks.status(call.caller.project.ref, params.key),
      ),
    );
}

async function acquire(
  locks: LockService,
  call: Call,
  key: string,
  { ttl = DURATION_MS_DEFAULT, timeout = DURATION_MS_DEFAULT, mode = "exclusive", token }: AcquireBody,
): Promise<AcquiredLock> {
  if (timeout !== TIMEOUT_MS_TRY && timeout < DURATION_MS_MIN) {
    throw invalidField("timeout", TIMEOUT_MESSAGE);
  }
  const { signal } = call.request;
  const terms = { key, ttlMs: ttl, timeoutMs: timeout, mode, token: token ?? null, signal };
  // The project is read within the unit of work: one that is queued earlier may change the default project.
  const outcome = await call.perform((tx) =>
    locks.acquire(tx, {
      ...terms,
      accountRef: call.caller.account.ref,
      projectRef: call.caller.project.ref,
    }),
  );
  if (!(outcome instanceof Waiter)) return acquired(outcome);
  call.setIdleTimeout(0);
  // During the wait, the key may be revoked or its account suspended.
  return acquired(await locks.wait(outcome, () => assertStillValid(call.caller)));
}

function acquired({ holder, lease, reentrant }: Grant): AcquiredLock {
  const { key } = holder.lock;
  const { token, fencing_token, expires_at } = lease;
  return { status: "acquired", key, token, fencing_token, expires_at, reentrant };
}
