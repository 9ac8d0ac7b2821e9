import type { AuditTrail } from "../../kernel/audit/trail.ts";
import type { Role } from "../../kernel/callers/role.ts";
import { ApiError, errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { PeopleDirectory } from "./directory.ts";
import { foldEmail } from "./domain.ts";
import type { PeopleAccounts, PeopleProjects } from "./ports.ts";
import { aboutPerson, type Grant, type PeopleService } from "./service.ts";
import type { PersonRow } from "./store.ts";

/** A person of the configuration file. */
export interface FilePerson {
  readonly email: string;
  readonly name: string | null;
  /** Null: roles in single projects. */
  readonly role: Role | null;
  readonly projects: readonly { readonly projectId: string; readonly role: Role }[];
  /** Account by id or address; null: the operator's. */
  readonly account: string | null;
}

/** What the people of the configuration file are built on. */
interface FilePeopleDeps extends Pick<Kernel, "writer" | "log"> {
  readonly directory: PeopleDirectory;
  readonly service: PeopleService;
  readonly accounts: PeopleAccounts;
  readonly projects: PeopleProjects;
  readonly trail: AuditTrail;
}

/** Applies the people of the configuration file, which win over what was changed since the last start. */
export class FilePeople {
  constructor(private readonly deps: FilePeopleDeps) {}

  /**
   * Makes the people what the file says. What cannot be applied is logged: it never keeps a server from starting. People whom
   * the file does not name any more stay as they are, and can be changed again.
   */
  async apply(people: readonly FilePerson[]): Promise<void> {
    const { directory, writer, log } = this.deps;
    if (people.length === 0 && directory.store.fromFile().length === 0) return;
    try {
      await writer.submit((tx) => this.applyIn(tx, people));
    } catch (error) {
      log.error("the people of the configuration file could not be applied", { error: errorText(error) });
    }
  }

  private applyIn(tx: Tx, people: readonly FilePerson[]): void {
    const { directory, log } = this.deps;
    const named = new Set<number>();
    for (const person of people) {
      try {
        named.add(this.applyPerson(tx, person).ref);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        log.error("a person of the configuration file could not be applied", {
          email: person.email,
          error: error.message,
        });
      }
    }
    for (const row of directory.store.fromFile()) {
      if (named.has(row.ref)) continue;
      const { role, name, disabled } = row;
      this.deps.service.apply(tx, row, { ...this.grantOf(row), role, name, disabled, isFromFile: false });
      log.warn(
        "a person is not in the configuration file any more, and keeps their role: delete them if they have left",
        { email: row.email, person_id: row.id },
      );
    }
  }

  private applyPerson(tx: Tx, person: FilePerson): PersonRow {
    const { directory, service, accounts } = this.deps;
    const accountRef = accounts.refOf(person.account);
    if (accountRef === 0) throw new ApiError("not_found", `There is no account ${person.account}.`);
    const grant = { role: person.role, projects: this.projectRoles(accountRef, person) };
    const row = directory.store.withEmail(accountRef, foldEmail(person.email));
    if (row === null) {
      service.assertCapacity(accountRef);
      const { email, name } = person;
      const invited = service.insert(tx, accountRef, {
        ...grant,
        email,
        name,
        invitedBy: null,
        acceptedAt: null,
        isFromFile: true,
      });
      this.record(tx, invited, "people.create", "added by the configuration file", null);
      return invited;
    }
    return this.change(tx, row, grant, person.name ?? row.name);
  }

  private change(tx: Tx, row: PersonRow, grant: Grant, name: string | null): PersonRow {
    const { directory, service, log } = this.deps;
    const before = this.grantOf(row);
    const isSame = sameGrant(before, grant) && name === row.name;
    if (isSame && row.from_file !== 0) return row;
    const { disabled } = row;
    try {
      service.apply(tx, row, { ...grant, name, disabled, isFromFile: true });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      service.apply(tx, row, { ...before, name, disabled, isFromFile: true });
      log.error("the last active owner keeps their role, which the configuration file would change", {
        email: row.email,
        person_id: row.id,
      });
    }
    if (!isSame) this.record(tx, row, "people.update", "changed by the configuration file", before);
    return directory.store.person(row.ref) ?? row;
  }

  private record(tx: Tx, row: PersonRow, action: string, what: string, before: Grant | null): void {
    const after = this.deps.directory.store.person(row.ref) ?? row;
    this.deps.trail.recordSystem(tx, action, row.account_ref, {
      ...aboutPerson(row, what),
      before: before && { role: before.role, projects: before.projects.size, name: row.name },
      after: { role: after.role, projects: this.grantOf(after).projects.size, name: after.name },
    });
  }

  private grantOf(row: PersonRow): Grant {
    const roles = row.role === null ? this.deps.directory.store.projectRoles(row.ref) : [];
    return { role: row.role, projects: new Map(roles.map((held) => [held.project_ref, held.role])) };
  }

  private projectRoles(accountRef: number, { projects }: FilePerson): Map<number, Role> {
    return new Map(
      projects.map(({ projectId, role }) => {
        const project = this.deps.projects.find(accountRef, projectId);
        if (project === null) throw new ApiError("not_found", `There is no project ${projectId}.`);
        return [project.ref, role];
      }),
    );
  }
}

function sameGrant(a: Grant, b: Grant): boolean {
  if (a.role !== b.role || a.projects.size !== b.projects.size) return false;
  return [...a.projects].every(([project, role]) => b.projects.get(project) === role);
}
