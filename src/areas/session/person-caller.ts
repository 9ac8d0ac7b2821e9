import type {
  Caller,
  CallerAccount,
  CallerPerson,
  CallerProject,
  CallerSession,
  LoginMethod,
} from "../../kernel/callers/caller.ts";
import { highestRole, type Role } from "../../kernel/callers/role.ts";
import { ApiError } from "../../kernel/errors.ts";
import { PROJECT_HEADER } from "../../kernel/http/access/project-choice.ts";
import type { SessionAccounts, SessionPeople, SessionPerson } from "./ports.ts";

/** A person's session in memory. */
export interface PersonSession {
  readonly id: number;
  readonly method: LoginMethod;
  readonly authenticatedAt: number;
  readonly endsAt: number;
  readonly isEnded: boolean;
}

/** What a caller looks up, so that every change of the person counts immediately. */
export interface PersonCallerDeps {
  readonly people: SessionPeople;
  readonly accounts: SessionAccounts;
  readonly findProject: (accountRef: number, id: string) => CallerProject | null;
  readonly isDeleted: (projectRef: number) => boolean;
  readonly idOf: (projectRef: number) => string | null;
}

/** Start of the credentials of people. */
const PERSON = "person:";

/** The project of a request by a person. */
interface Selected {
  readonly project: CallerProject;
  /** Whether neither the header nor a role in the default project selects it. */
  readonly isFallback: boolean;
}

/** The caller of a person's session, in the project that the request selects. */
export class PersonCaller implements Caller {
  readonly superseded = false;
  readonly endsAt = null;
  readonly credential: string;
  readonly session: CallerSession;
  readonly person: CallerPerson;
  readonly project: CallerProject;
  private readonly accountRef: number;
  private readonly roleAtStart: Role | null;

  /** @throws ApiError `not_found` for a project in which the person has no role. */
  constructor(
    private readonly active: PersonSession,
    start: SessionPerson,
    request: Request,
    private readonly deps: PersonCallerDeps,
  ) {
    const { id, endsAt } = active;
    this.credential = `session:${id}`;
    this.session = { id, digest: null, endsAt, credential: PERSON + start.ref };
    this.accountRef = start.accountRef;
    const { project, isFallback } = this.select(start, request.headers.get(PROJECT_HEADER));
    this.project = project;
    this.roleAtStart = roleIn(start, project, isFallback);
    this.person = personOf(this, start, isFallback, () => this.now);
  }

  get account(): CallerAccount {
    return this.deps.accounts.account(this.accountRef);
  }

  get scopes(): ReadonlySet<string> {
    return this.deps.people.scopesOf(this.person.role);
  }

  get projectBound(): boolean {
    return !this.person.isOfAccount;
  }

  get projectDeleted(): boolean {
    return this.deps.isDeleted(this.project.ref);
  }

  /** Also when the role is another one than at the start of the request: what was permitted may not be any more. */
  get revoked(): boolean {
    const { now } = this;
    if (this.active.isEnded || now === null || !now.isActive) return true;
    return roleIn(now, this.project, this.person.lacksProject) !== this.roleAtStart;
  }

  get method(): LoginMethod {
    return this.active.method;
  }

  get authenticatedAt(): number {
    return this.active.authenticatedAt;
  }

  /** The role that counts. Only of those who may do nothing any more, the least. */
  get role(): Role {
    const { now } = this;
    return (now && roleIn(now, this.project, this.person.lacksProject)) ?? "viewer";
  }

  private get now(): SessionPerson | null {
    return this.deps.people.person(this.person.ref);
  }

  private select(person: SessionPerson, id: string | null): Selected {
    const { defaultProject } = this.account;
    if (id !== null) {
      const project = this.deps.findProject(person.accountRef, id);
      if (project !== null && (person.role !== null || person.projects.has(project.ref)))
        return { project, isFallback: false };
      throw new ApiError("not_found", "There is no project with this id.");
    }
    const hasRole = person.role !== null || person.projects.has(defaultProject.ref);
    if (hasRole) return { project: defaultProject, isFallback: false };
    for (const ref of person.projects.keys()) {
      const other = this.deps.isDeleted(ref) ? null : this.deps.idOf(ref);
      if (other !== null) return { project: { ref, id: other }, isFallback: true };
    }
    return { project: defaultProject, isFallback: true };
  }
}

/** The role that counts in a project; of a project that nothing selects, the highest role in any. */
function roleIn({ role, projects }: SessionPerson, { ref }: CallerProject, isFallback: boolean): Role | null {
  return role ?? (isFallback ? highestRole(projects.values()) : (projects.get(ref) ?? null));
}

/** The person as callers have them: id and address do not change within a request, the role may. */
function personOf(
  caller: PersonCaller,
  { ref, id, email, name }: SessionPerson,
  lacksProject: boolean,
  now: () => SessionPerson | null,
): CallerPerson {
  return {
    ref,
    id,
    email,
    name,
    lacksProject,
    get role() {
      return caller.role;
    },
    get isOfAccount() {
      return (now()?.role ?? null) !== null;
    },
    get projects() {
      const person = now();
      return person === null || person.role === null ? (person?.projects ?? new Map()) : null;
    },
    get authenticatedAt() {
      return caller.authenticatedAt;
    },
    get method() {
      return caller.method;
    },
    stepUpMethods: () => now()?.stepUpMethods ?? [],
  };
}
