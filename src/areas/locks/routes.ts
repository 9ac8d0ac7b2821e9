import { Elysia } from "elysia";
import { assertStillValid } from "../../kernel/http/access/caller.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { DURATION_MS_DEFAULT } from "./domain.ts";
import { type Granted, Waiter } from "./lock.ts";
import {
  AcquireBody,
  AcquiredLock,
  EXAMPLE_TOKEN,
  ForceReleaseBody,
  LockPage,
  LockParams,
  LockStatus,
  ReleaseBody,
  ReleasedLock,
} from "./schema.ts";
import type { LockService } from "./service.ts";

/** Locks on a page unless asked otherwise. */
const LOCKS_LIMIT = 50;

/** Declares the locks. */
export function lockRoutes(api: Api, locks: LockService) {
  return [holderRoutes(api, locks), lookingRoutes(api, locks)];
}

function lookingRoutes(api: Api, locks: LockService) {
  return new Elysia({ tags: ["Locks"] })
    .use(api)
    .get(
      "/v1/latch",
      ({ call, query: { limit = LOCKS_LIMIT, cursor } }) =>
        locks.list(call.caller.project.ref, limit, cursor),
      {
        op: { name: "latch.list", access: "latch:read", summary: "List the locks that are held, by key" },
        query: pageQuery(LOCKS_LIMIT),
        response: LockPage,
      },
    )
    .post(
      "/v1/latch/:key/force-release",
      ({ call, params, body }) =>
        call.perform((tx) => {
          locks.forceRelease(tx, call.caller.project.ref, params.key, body.fencing_token);
          return { status: "released" as const };
        }),
      {
        op: {
          name: "latch.force",
          access: "latch:write",
          audit: "yes",
          summary: "Take a lock away from its holder",
          description:
            "For a holder that hangs. It is not told: what it guards with the fencing token is safe. The next waiter gets the lock. 409 when another holds it by now.",
          errors: ["not_found", "conflict"],
          example: { fencing_token: 7 },
        },
        params: LockParams,
        body: ForceReleaseBody,
        response: ReleasedLock,
      },
    );
}

function holderRoutes(api: Api, locks: LockService) {
  return new Elysia({ tags: ["Locks"] })
    .use(api)
    .post("/v1/latch/:key/acquire", ({ call, params, body }) => acquire(locks, call, params.key, body), {
      op: {
        name: "latch.acquire",
        access: "latch:write",
        idempotent: false,
        summary: "Acquire a lock, waiting for it if need be",
        description:
          "Waiters get the lock in the order of their requests; one whose connection closes leaves the queue at once. " +
          "A request that was sent with a `token` can be sent again: the holder's token gets the same lock, `reentrant`.",
        errors: ["timeout", "service_unavailable"],
        example: { ttl: 30_000, timeout: 5_000, token: EXAMPLE_TOKEN },
      },
      params: LockParams,
      body: AcquireBody,
      response: AcquiredLock,
    })
    .post(
      "/v1/latch/:key/release",
      ({ call, params, body }) =>
        call.perform((tx) => {
          locks.release(tx, call.caller.project.ref, params.key, body.token);
          return { status: "released" as const };
        }),
      {
        op: {
          name: "latch.release",
          access: "latch:write",
          summary: "Release a lock",
          description: "The next waiter gets it. 404 when the lock is free, 403 when another token holds it.",
          errors: ["not_found"],
          example: { token: EXAMPLE_TOKEN },
        },
        params: LockParams,
        body: ReleaseBody,
        response: ReleasedLock,
      },
    )
    .get("/v1/latch/:key", ({ call, params }) => locks.status(call.caller.project.ref, params.key), {
      op: { name: "latch.status", access: "latch:read", summary: "Read a lock's state" },
      params: LockParams,
      response: LockStatus,
    });
}

async function acquire(
  locks: LockService,
  call: Call,
  key: string,
  { ttl = DURATION_MS_DEFAULT, timeout = DURATION_MS_DEFAULT, token }: AcquireBody,
): Promise<AcquiredLock> {
  const terms = { key, ttlMs: ttl, timeoutMs: timeout, token: token ?? null, signal: call.request.signal };
  // The project is read in the unit of work: one queued before it may make another project the default one.
  const outcome = await call.perform((tx) =>
    locks.acquire(tx, {
      ...terms,
      accountRef: call.caller.account.ref,
      projectRef: call.caller.project.ref,
    }),
  );
  if (!(outcome instanceof Waiter)) return acquired(outcome);
  call.setIdleTimeout(0);
  // The wait can be long: the key may be revoked meanwhile, or its account suspended.
  return acquired(await locks.wait(outcome, () => assertStillValid(call.caller)));
}

function acquired({ lock: { key }, lease, reentrant }: Granted): AcquiredLock {
  const { token, fencing_token, expires_at } = lease;
  return { status: "acquired", key, token, fencing_token, expires_at, reentrant };
}
