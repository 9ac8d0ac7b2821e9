import type { AuditTrail } from "../../kernel/audit/trail.ts";
import { loginRejected } from "../../kernel/callers/caller.ts";
import type { Role } from "../../kernel/callers/role.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { TierLimit } from "../../kernel/limits/tier-limits.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { PeopleDirectory, Person } from "./directory.ts";
import { foldEmail, IDENTITIES_LINKED_MAX } from "./domain.ts";
import type { GroupRoles } from "./group-roles.ts";
import type { PersonLogins } from "./logins.ts";
import type { LoginRequest, PeopleAccounts, VerifiedPerson } from "./ports.ts";
import { aboutPerson, type PeopleService } from "./service.ts";
import type { IdentityRow } from "./store.ts";

/** An identity that a provider has proven, and what its login may change. */
export interface IdentityLogin {
  readonly issuer: string;
  readonly subject: string;
  /** Null for an address that the provider has not verified. */
  readonly email: string | null;
  readonly name: string | null;
  /** When the person logged in at the provider, epoch milliseconds; null if it does not say so. */
  readonly authenticatedAt: number | null;
  /** The only account whose people log in; null: any. */
  readonly accountRef: number | null;
  /** The role that the provider gives; null: it gives none. */
  readonly role: Role | null;
  /** The role of people who are created; null: unknown people are rejected. */
  readonly createsAs: Role | null;
  /** Why the provider's rules reject it; null: they do not. Known before anything is changed. */
  readonly rejection: string | null;
  /** The person whose session this login confirms; null for a login of its own. */
  readonly stepUpOf: number | null;
}

/** What logins by identities are built on. */
export interface IdentitiesDeps extends Pick<Kernel, "ids" | "log"> {
  readonly directory: PeopleDirectory;
  readonly service: PeopleService;
  readonly logins: PersonLogins;
  readonly groupRoles: GroupRoles;
  readonly accounts: PeopleAccounts;
  readonly trail: AuditTrail;
  readonly limit: TierLimit;
}

/** Logs people in by their identities at providers: the first time by the verified address, then by the identity alone. */
export class Identities {
  constructor(private readonly deps: IdentitiesDeps) {}

  /**
   * The person of an identity, in the unit of work that opens the session. Links the identity to the people with its address,
   * and accepts their invitations.
   * @throws RejectedLogin
   */
  logIn(tx: Tx, identity: IdentityLogin, request: LoginRequest): VerifiedPerson {
    const known = this.linked(identity);
    const stepUp = identity.stepUpOf;
    const others = stepUp === null ? this.unlinked(identity, known) : [];
    const [chosen] =
      stepUp === null ? known.filter(canLogIn).sort(latestFirst) : known.filter(({ ref }) => ref === stepUp);
    const first = chosen ?? others.find(canLogIn) ?? others.find(({ status }) => status === "invited");
    if (identity.rejection !== null) throw rejected(first ?? known[0] ?? others[0], identity.rejection);
    if (stepUp !== null && chosen === undefined)
      throw rejected(this.deps.directory.person(stepUp), "another identity");
    if (first === undefined && known.length + others.length > 0)
      throw rejected(known[0] ?? others[0], "disabled");
    for (const person of others) if (person.status !== "disabled") this.link(tx, person, identity, request);
    const person = this.personOf((first ?? this.create(tx, identity, request)).ref);
    if (identity.role !== null) this.deps.groupRoles.apply(tx, person, identity.role, request);
    this.recordUse(tx, person.ref, identity);
    const { issuer, subject, authenticatedAt } = identity;
    return {
      person: this.personOf(person.ref),
      method: "oidc",
      proof: { type: "oidc", issuer, subject },
      authenticatedAt: Math.min(authenticatedAt ?? tx.now, tx.now),
      session: stepUp === null ? "new" : "same",
    };
  }

  /** People with this identity, of accounts that are in use. */
  private linked({ issuer, subject, accountRef }: IdentityLogin): Person[] {
    const { store } = this.deps.directory;
    const refs = store.identitiesOfSubject(issuer, subject).map(({ person_ref }) => person_ref);
    return this.people(refs, accountRef);
  }

  /**
   * People with the verified address who have no identity at this provider, in accounts where the identity is not known.
   * @throws RejectedLogin if the only one has another identity there: the address has changed hands.
   */
  private unlinked({ issuer, email, accountRef }: IdentityLogin, known: readonly Person[]): Person[] {
    if (email === null) return [];
    const { store } = this.deps.directory;
    const refs = store.withAddress(foldEmail(email)).map(({ ref }) => ref);
    const accounts = new Set(known.map((person) => person.accountRef));
    const found = this.people(refs, accountRef).filter((person) => !accounts.has(person.accountRef));
    const taken = found.filter(({ ref }) => this.identityOf(ref, issuer) !== undefined);
    const free = found.filter((person) => !taken.includes(person)).slice(0, IDENTITIES_LINKED_MAX);
    const [conflict] = taken;
    if (conflict !== undefined && free.length + known.length === 0) throw rejected(conflict, "conflict");
    return free;
  }

  private people(refs: readonly number[], accountRef: number | null): Person[] {
    const { directory, accounts } = this.deps;
    return refs.flatMap((ref) => {
      const person = directory.person(ref);
      if (person === null || (accountRef !== null && person.accountRef !== accountRef)) return [];
      const { deleted, suspended } = accounts.account(person.accountRef);
      return deleted || suspended ? [] : [person];
    });
  }

  private identityOf(personRef: number, issuer: string): IdentityRow | undefined {
    return this.deps.directory.store.identitiesOf(personRef).find((row) => row.issuer === issuer);
  }

  /** Links an identity to a person, and accepts the invitation of one who is invited. */
  private link(tx: Tx, person: Person, identity: IdentityLogin, request: LoginRequest): void {
    const { directory, ids, logins } = this.deps;
    const { issuer, subject, authenticatedAt } = identity;
    directory.store.insertIdentity(tx, {
      id: ids.uuidV7(),
      person_ref: person.ref,
      issuer,
      subject,
      sent_auth_time: Number(authenticatedAt !== null),
      created_at: tx.now,
      used_at: null,
    });
    directory.changed(tx, person.ref);
    const isInvited = person.status === "invited";
    if (isInvited) logins.activate(tx, person, identity.name);
    const what = isInvited ? "accepted the invitation by a login at a provider" : "linked to a provider";
    this.record(tx, isInvited ? "people.invitation.accept" : "people.identities.create", person, request, {
      what,
      before: null,
      after: { issuer, subject },
    });
  }

  /** @throws RejectedLogin if unknown people are not created, or the account has as many as its tier allows. */
  private create(tx: Tx, identity: IdentityLogin, request: LoginRequest): Person {
    const { service, limit, accounts, log } = this.deps;
    const { email, name, accountRef, createsAs } = identity;
    if (createsAs === null || email === null || accountRef === null) throw loginRejected();
    const account = accounts.account(accountRef);
    if (account.suspended || account.deleted) throw loginRejected();
    if (!limit.hasCapacity(account)) {
      log.warn("a login created no person: the account has as many people as its tier allows", {
        user_id: account.userId,
      });
      throw loginRejected();
    }
    const grant = { role: createsAs, projects: new Map<number, Role>() };
    const row = service.insert(tx, accountRef, {
      email,
      name,
      invitedBy: null,
      acceptedAt: tx.now,
      ...grant,
    });
    const person = this.personOf(row.ref);
    const after = { email, name, role: createsAs };
    this.record(tx, "people.create", person, request, {
      what: "created by a login at a provider",
      before: null,
      after,
    });
    this.link(tx, person, identity, request);
    return person;
  }

  private recordUse(tx: Tx, personRef: number, { issuer, authenticatedAt }: IdentityLogin): void {
    const identity = this.identityOf(personRef, issuer);
    if (identity === undefined) return;
    const { directory } = this.deps;
    directory.store.setIdentityUse(tx, Number(authenticatedAt !== null), tx.now, identity.ref);
    directory.changed(tx, personRef);
  }

  private record(
    tx: Tx,
    action: string,
    person: Person,
    { requestId, requestOrigin }: LoginRequest,
    change: { readonly what: string; readonly before: object | null; readonly after: object },
  ): void {
    const { trail, accounts } = this.deps;
    const account = { ref: person.accountRef, userId: accounts.account(person.accountRef).userId };
    const { what, before, after } = change;
    trail.recordPublic(tx, action, { requestId, requestOrigin }, account, {
      ...aboutPerson(person, what),
      before: before && { ...before },
      after: { ...after },
    });
  }

  private personOf(ref: number): Person {
    const person = this.deps.directory.person(ref);
    if (person === null) throw loginRejected();
    return person;
  }
}

function canLogIn({ isActive }: Person): boolean {
  return isActive;
}

function latestFirst(a: Person, b: Person): number {
  return (b.seenAt ?? 0) - (a.seenAt ?? 0);
}

function rejected(person: Person | null | undefined, reason: string) {
  return loginRejected(
    person ? { id: person.id, email: person.email, accountRef: person.accountRef, reason } : null,
  );
}
