import type { AuditTrail } from "../../kernel/audit/trail.ts";
import type { Role } from "../../kernel/callers/role.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Person } from "./directory.ts";
import type { LoginRequest, PeopleAccounts } from "./ports.ts";
import { aboutPerson, type PeopleService } from "./service.ts";

/** Gives people the role of their groups at each login: whoever sends the groups is the truth about roles. */
export class GroupRoles {
  constructor(
    private readonly deps: Pick<Kernel, "log"> & {
      readonly service: PeopleService;
      readonly accounts: PeopleAccounts;
      readonly trail: AuditTrail;
    },
  ) {}

  /** Changes the role, but not of people of the configuration file and of the last owner. */
  apply(tx: Tx, person: Person, role: Role, { requestId, requestOrigin }: LoginRequest): void {
    const { service, log, trail, accounts } = this.deps;
    if (person.isFromFile || person.role === role) return;
    const row = service.row(person.ref);
    try {
      service.apply(tx, row, { role, projects: new Map(), name: row.name, disabled: row.disabled });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      log.warn("the groups of a login give another role to the last owner, who keeps theirs", {
        person_id: person.id,
        role,
      });
      return;
    }
    const account = { ref: person.accountRef, userId: accounts.account(person.accountRef).userId };
    trail.recordPublic(tx, "people.update", { requestId, requestOrigin }, account, {
      ...aboutPerson(person, "has another role by the groups of a login"),
      before: { role: person.role },
      after: { role },
    });
  }
}
