import type { Caller } from "../../kernel/callers/caller.ts";
import { isAtLeast, type Role } from "../../kernel/callers/role.ts";
import { ApiError } from "../../kernel/errors.ts";

/** Roles that a person can have in single projects. */
export const PROJECT_ROLES = ["viewer", "responder", "editor", "admin"] as const;

/** The role of a caller for the account: keys that reach people act as owners. */
export function accountRoleOf({ person }: Caller): Role {
  return person?.role ?? "owner";
}

/**
 * Nobody changes, deletes, disables, logs out or makes a link for somebody above them.
 * @throws ApiError `forbidden`
 */
export function assertNotAbove(caller: Caller, role: Role | null): void {
  if (role === null || isAtLeast(accountRoleOf(caller), role)) return;
  throw new ApiError("forbidden", `This person is ${role}, which is above your role.`);
}

/** Nobody grants a role above their own. @throws ApiError `forbidden` */
export function assertMayGrantRole(caller: Caller, role: Role | null): void {
  if (role === null || isAtLeast(accountRoleOf(caller), role)) return;
  throw new ApiError("forbidden", `Your role is ${accountRoleOf(caller)}: you cannot grant ${role}.`);
}

/** What each role is for, as the API and the console show it. */
export const ROLE_DESCRIPTIONS: Readonly<Record<Role, string>> = {
  viewer: "Reads. Sees no secret, and no URL that is one.",
  responder:
    "Reads; acknowledges and updates incidents, plans maintenance, runs checks, and resends and replays deliveries.",
  editor: "Reads and changes everything in every area, but no keys, no people and no secrets.",
  admin: "Everything, except owners, the deletion of the account and the operator's API.",
  owner: "Everything.",
};
