import type { Caller } from "../callers/caller.ts";
import { ApiError, type ErrorCode } from "../errors.ts";
import type { ResourceFacts } from "../http/resource-facts.ts";
import { TierLimit } from "../limits/tier-limits.ts";
import { NO_LIMIT, type TierLimits, type Tiers } from "../limits/tiers.ts";
import type { Database } from "../storage/database.ts";

/** The most rows of a resource that can exist. */
export interface ResourceLimit extends NonNullable<ResourceFacts["limit"]> {
  /** @throws ApiError with the code, when the limit is reached. */
  assertCapacity(caller: Caller): void;
}

/** Counts the rows of a project, up to a number: more are not read. */
type CountTo = (projectRef: number, countedMax: number) => number;

/** A fixed limit for each project. `message`: what is limited, and what to do. */
export function limitPerProject(
  code: ErrorCode,
  most: number,
  count: CountTo,
  message: string,
): ResourceLimit {
  return {
    code,
    most,
    assertCapacity({ project }) {
      if (count(project.ref, most) >= most) throw new ApiError(code, message);
    },
  };
}

/** A limit of the tier for each project. `kind`: names the limit, and the resources in the error's message. */
export function tierLimitPerProject(
  tiers: Tiers,
  kind: keyof TierLimits,
  code: ErrorCode,
  count: CountTo,
): ResourceLimit {
  return {
    code,
    most: kind,
    assertCapacity({ account, project }) {
      const most = tiers[account.tier][kind];
      // Without a limit nothing has to be counted.
      if (most === NO_LIMIT || count(project.ref, most) < most) return;
      const message = `Your tier allows ${most} ${kind} in a project. Delete one, or move to a larger tier.`;
      throw new ApiError(code, message);
    },
  };
}

/** A limit of the tier for each account, over all its projects: see {@link TierLimit}. */
export function limitPerAccount(
  { db, tiers }: { readonly db: Database; readonly tiers: Tiers },
  kind: keyof TierLimits,
  code: ErrorCode,
): ResourceLimit {
  const limit = new TierLimit(db, tiers, kind, code);
  return { code, most: kind, assertCapacity: ({ account }) => limit.assertCapacity(account) };
}
