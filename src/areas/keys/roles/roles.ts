import { changed } from "../../../kernel/audit/change.ts";
import type { Caller } from "../../../kernel/callers/caller.ts";
import { ApiError, echoed, invalidField } from "../../../kernel/errors.ts";
import { encodeCursor, pageStart } from "../../../kernel/http/requests/pagination.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import { managedView } from "../../../kernel/resources/managed.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import { PROJECT_ROLES_MAX } from "../domain.ts";
import { HeldTexts } from "../held-texts.ts";
import {
  type KeyRole,
  type KeyRoleBody,
  type KeyRolePage,
  type KeyRoleQuery,
  ROLES_LIMIT,
} from "./schema.ts";
import type { RoleRow, RoleStore } from "./store.ts";

/** Roles in memory whose permissions have at most {@link SMALL_LENGTH_MAX} characters: some kilobytes each. */
const SMALL_REMEMBERED_MAX = 8_192;
const SMALL_LENGTH_MAX = 2_048;
/** Larger roles in memory, 150 KB each at most: all those of a project, so that one request reads none twice. */
const LARGE_REMEMBERED_MAX = 2 * PROJECT_ROLES_MAX;
/** Permissions of a page, in characters. A longer page ends early. */
const PAGE_LENGTH_MAX = 512 * 1024;

/** What a role that does not exist permits. */
const NOTHING = new HeldTexts([]);

/** The roles of projects: named sets of permissions, which keys have. */
export class KeyRoles {
  /** By project and name. */
  private readonly small = new LruMap<string, HeldTexts>(SMALL_REMEMBERED_MAX);
  private readonly large = new LruMap<string, HeldTexts>(LARGE_REMEMBERED_MAX);

  constructor(private readonly store: RoleStore) {}

  /** Creates or replaces a role; its keys have the permissions from the next request. @throws ApiError `role_limit_exceeded` */
  save(
    tx: Tx,
    { project }: Caller,
    name: string,
    { description = null, permissions, managed_by }: KeyRoleBody,
  ): Reply<201, KeyRole> | Reply<200, KeyRole> {
    const { store } = this;
    const before = store.find(project.ref, name);
    if (before === null && store.count(project.ref) >= PROJECT_ROLES_MAX)
      throw new ApiError(
        "role_limit_exceeded",
        `A project has at most ${PROJECT_ROLES_MAX} roles. Delete one that no key has.`,
      );
    store.save(tx, {
      name,
      description,
      permissions: JSON.stringify([...new Set(permissions)]),
      managed_by: before === null ? (managed_by ?? null) : before.managed_by,
      created_at: before?.created_at ?? tx.now,
      updated_at: tx.now,
      projectRef: project.ref,
    });
    this.forget(tx, project.ref, name);
    const shown = this.read(project.ref, name);
    const target = { type: "key_role", id: name };
    if (before === null) {
      tx.audit({ target, summary: `Role ${name} created`, before: null, after: shown });
      return reply(201, shown);
    }
    const { updated_at: _, ...after } = shown;
    const { updated_at: __, ...shownBefore } = viewOf(before);
    tx.audit(changed({ target, summary: `Role ${name} changed`, before: shownBefore, after }));
    return reply(200, shown);
  }

  /** A page of a project's roles, newest first. @throws ApiError `validation_error` for a foreign cursor */
  list(projectRef: number, { limit = ROLES_LIMIT, cursor }: KeyRoleQuery): KeyRolePage {
    const found = this.store.page(projectRef, pageStart(cursor), limit + 1);
    let length = 0;
    let taken = 0;
    for (const { permissions } of found.slice(0, limit)) {
      length += permissions.length;
      if (length > PAGE_LENGTH_MAX && taken > 0) break;
      taken += 1;
    }
    const rows = found.slice(0, taken);
    const last = taken < found.length ? rows.at(-1) : undefined;
    return { roles: rows.map(viewOf), ...(last === undefined ? {} : { cursor: encodeCursor([last.ref]) }) };
  }

  /** @throws ApiError `not_found` */
  read(projectRef: number, name: string): KeyRole {
    return viewOf(this.find(projectRef, name));
  }

  /** Deletes a role that no key has. @throws ApiError `not_found`, `role_in_use` */
  remove(tx: Tx, { account, project }: Caller, name: string): void {
    const role = this.find(project.ref, name);
    const query = { accountRef: account.ref, name, now: tx.now };
    const scopes = account.defaultProject.ref === project.ref ? [project.ref, 0] : [project.ref];
    if (scopes.some((projectRef) => this.store.isInUse({ ...query, projectRef }) === 1))
      throw new ApiError(
        "role_in_use",
        `The role ${name} is in use. Remove it from the keys that have it, or revoke them.`,
      );
    this.store.remove(tx, role.ref);
    this.forget(tx, project.ref, name);
    tx.audit({
      target: { type: "key_role", id: name },
      summary: `Role ${name} deleted`,
      before: viewOf(role),
      after: null,
    });
  }

  /** Checks the roles that a key gets. @throws ApiError `validation_error` about the first that the project does not have. */
  assertExist(projectRef: number, names: readonly string[]): void {
    const index = names.findIndex((name) => this.store.exists(projectRef, name) === 0);
    if (index === -1) return;
    throw invalidField(
      `roles.${index}`,
      `must be a role of the project; ${echoed(names[index] ?? "")} is not. Create it with PUT /v1/keys/roles/{name}`,
    );
  }

  /** What roles permit: nothing for one that does not exist. */
  permissionsOf(projectRef: number, names: readonly string[]): HeldTexts[] {
    return names.map((name) => this.held(projectRef, name));
  }

  /** Removes rows of a deleted project. Returns their number. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    return this.store.removeOfProject(tx, projectRef, rowsMax);
  }

  private held(projectRef: number, name: string): HeldTexts {
    const key = keyOf(projectRef, name);
    const known = this.small.get(key) ?? this.large.get(key);
    if (known !== undefined) return known;
    const row = this.store.permissions(projectRef, name);
    const held = row === null ? NOTHING : new HeldTexts(JSON.parse(row.permissions) as string[]);
    const isSmall = (row?.permissions.length ?? 0) <= SMALL_LENGTH_MAX;
    (isSmall ? this.small : this.large).set(key, held);
    return held;
  }

  private find(projectRef: number, name: string): RoleRow {
    const row = this.store.find(projectRef, name);
    if (row !== null) return row;
    throw new ApiError("not_found", "There is no role with this name in this project.");
  }

  private forget(tx: Tx, projectRef: number, name: string): void {
    const key = keyOf(projectRef, name);
    const forget = (): void => {
      this.small.delete(key);
      this.large.delete(key);
    };
    forget();
    tx.onRollback(forget);
  }
}

function keyOf(projectRef: number, name: string): string {
  return `${projectRef} ${name}`;
}

function viewOf({ name, description, permissions, created_at, updated_at, managed_by }: RoleRow): KeyRole {
  return {
    name,
    description,
    permissions: JSON.parse(permissions) as string[],
    created_at: isoTime(created_at),
    updated_at: isoTime(updated_at),
    ...managedView(managed_by),
  };
}
