/** The roles of people, each with everything that the ones before it may do. */
export const ROLES = ["viewer", "responder", "editor", "admin", "owner"] as const;

/** One of {@link ROLES}. */
export type Role = (typeof ROLES)[number];

/** Whether a value is the name of a role. */
export function isRole(value: unknown): value is Role {
  return ROLES.some((role) => role === value);
}

/** Whether a role may do what another one may. */
export function isAtLeast(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least);
}

/** The highest of some roles; null for none. */
export function highestRole(roles: Iterable<Role>): Role | null {
  let highest: Role | null = null;
  for (const role of roles) if (highest === null || isAtLeast(role, highest)) highest = role;
  return highest;
}

/** The role of everyone whose groups have none. */
const EVERYONE = "*";

/** The highest role of some groups, by a table of roles; null if they have none. */
export function roleOfGroups(roles: ReadonlyMap<string, Role>, groups: Iterable<string>): Role | null {
  const named = [...groups].flatMap((group) => (group === EVERYONE ? [] : (roles.get(group) ?? [])));
  return highestRole(named) ?? roles.get(EVERYONE) ?? null;
}
