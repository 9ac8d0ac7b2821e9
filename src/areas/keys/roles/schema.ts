import { type Static, Type } from "@sinclair/typebox";
import { dateTime, listOf, NextCursor, named, orNull, text } from "../../../kernel/data/schema.ts";
import { pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { MANAGED } from "../../../kernel/resources/managed.ts";
import { ROLE_NAME_LENGTH_MAX, ROLE_PERMISSIONS_MAX, SCOPE_LENGTH_MAX } from "../domain.ts";

/** Longest `description`. */
const DESCRIPTION_LENGTH_MAX = 500;
/** Default number of roles per page: all of a project. */
export const ROLES_LIMIT = 100;

/** Name of a role. */
export const RoleName = Type.String({
  pattern: `^[A-Za-z0-9_.:-]{1,${ROLE_NAME_LENGTH_MAX}}$`,
  errorMessage: `must be 1 to ${ROLE_NAME_LENGTH_MAX} letters, digits or characters of _.:-`,
  description: "Name of the role.",
  examples: ["editor"],
});

const SETTINGS = {
  description: orNull(text({ min: 0, max: DESCRIPTION_LENGTH_MAX, examples: ["Writes documents."] }), {
    description: "Description of the role; null for none.",
  }),
  permissions: listOf(text({ min: 1, max: SCOPE_LENGTH_MAX }), {
    max: ROLE_PERMISSIONS_MAX,
    of: "texts",
    description: "Permissions of the keys that have the role: any texts, with `*` as in scopes.",
    examples: [["documents.read", "documents.write"]],
  }),
};

/** Body of a save. */
export const KeyRoleBody = named("KeyRoleBody", {
  description: Type.Optional(SETTINGS.description),
  permissions: SETTINGS.permissions,
  ...MANAGED,
});
export type KeyRoleBody = Static<typeof KeyRoleBody>;

export const KeyRole = named("KeyRole", {
  name: RoleName,
  ...SETTINGS,
  created_at: dateTime({ description: "Time of creation." }),
  updated_at: dateTime({ description: "Time of the last save." }),
  ...MANAGED,
});
export type KeyRole = Static<typeof KeyRole>;

/** Path of a role. */
export const KeyRoleParams = Type.Object({ name: RoleName });

/** Query of a list of roles. */
export const KeyRoleQuery = named("KeyRoleQuery", pageQuery(ROLES_LIMIT).properties);
export type KeyRoleQuery = Static<typeof KeyRoleQuery>;

/** A page of roles, newest first. */
export const KeyRolePage = named("KeyRolePage", { roles: Type.Array(KeyRole), cursor: NextCursor });
export type KeyRolePage = Static<typeof KeyRolePage>;
