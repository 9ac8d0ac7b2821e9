import type { ManagedBy } from "../../../kernel/resources/managed.ts";
import type { Database } from "../../../kernel/storage/database.ts";

/** A stored role. `permissions`: JSON. */
export type RoleRow = {
  readonly ref: number;
  readonly name: string;
  readonly description: string | null;
  readonly permissions: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly managed_by: ManagedBy;
};
type NewRole = Omit<RoleRow, "ref"> & { readonly projectRef: number };

/** Keys with a role: of a project, or of the account where `projectRef` is 0. */
type WithRole = {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly name: string;
  readonly now: number;
};

const COLUMNS = "ref, name, description, permissions, created_at, updated_at, managed_by";

export type RoleStore = ReturnType<typeof roleStore>;

/** All SQL of roles. */
export function roleStore(db: Database) {
  return {
    find: db.one<RoleRow, [projectRef: number, name: string]>(
      `SELECT ${COLUMNS} FROM key_roles WHERE project_ref = ? AND name = ?`,
    ),
    exists: db.number<[projectRef: number, name: string]>(
      "SELECT EXISTS (SELECT 1 FROM key_roles WHERE project_ref = ? AND name = ?) AS n",
    ),
    permissions: db.one<Pick<RoleRow, "permissions">, [projectRef: number, name: string]>(
      "SELECT permissions FROM key_roles WHERE project_ref = ? AND name = ?",
    ),
    /** The roles of a project, newest first. */
    page: db.all<RoleRow, [projectRef: number, before: number, limit: number]>(
      `SELECT ${COLUMNS} FROM key_roles WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
    ),
    count: db.number<[projectRef: number]>("SELECT count(*) AS n FROM key_roles WHERE project_ref = ?"),
    save: db.change<[row: NewRole]>(
      `INSERT INTO key_roles (project_ref, name, description, permissions, created_at, updated_at, managed_by)
       VALUES ($projectRef, $name, $description, $permissions, $created_at, $updated_at, $managed_by)
       ON CONFLICT (project_ref, name) DO UPDATE SET description = $description, permissions = $permissions,
       updated_at = $updated_at, managed_by = $managed_by`,
    ),
    remove: db.change<[ref: number]>("DELETE FROM key_roles WHERE ref = ?"),
    /** 1 if a key has the role that is neither revoked nor expired. */
    isInUse: db.number<[query: WithRole]>(
      `SELECT EXISTS (SELECT 1 FROM keys_with_roles WHERE account_ref = $accountRef AND project_ref = $projectRef
       AND role = $name AND ends_at > $now) AS n`,
    ),
    removeOfProject: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM key_roles WHERE ref IN (SELECT ref FROM key_roles WHERE project_ref = ? LIMIT ?)",
    ),
  };
}
