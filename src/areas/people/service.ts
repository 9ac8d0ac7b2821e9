import { changed } from "../../kernel/audit/change.ts";
import type { AuditTrail } from "../../kernel/audit/trail.ts";
import type { Caller } from "../../kernel/callers/caller.ts";
import type { Role } from "../../kernel/callers/role.ts";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import { AttemptLimiter } from "../../kernel/http/access/guard.ts";
import { pageOf, pageStart } from "../../kernel/http/requests/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { TierLimit } from "../../kernel/limits/tier-limits.ts";
import type { MailQueue } from "../../kernel/mail/outbox.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { type PeopleDirectory, type Person, statusOf } from "./directory.ts";
import {
  foldEmail,
  INVITATION_KEYS_MAX,
  INVITATION_MS,
  INVITATIONS_PER_ADDRESS,
  INVITATIONS_PER_DAY,
  PERSON_ID_LENGTH,
} from "./domain.ts";
import { invitationMail, newLinkMail } from "./mails.ts";
import type { PeopleAccounts, PeopleKeys, PeopleProjects } from "./ports.ts";
import { accountRoleOf, assertMayGrantRole, assertNotAbove } from "./roles.ts";
import {
  type Invitation,
  PEOPLE_LIMIT,
  type PeoplePage,
  type PeopleQuery,
  type PersonCreateBody,
  type PersonInvited,
  type PersonPatchBody,
  type Person as PersonView,
} from "./schema.ts";
import type { PersonRow } from "./store.ts";

/** A role for the account, or roles in single projects by their references. */
export interface Grant {
  readonly role: Role | null;
  readonly projects: ReadonlyMap<number, Role>;
}

/** A person after a change, with the keys that they have created and that work on after a change of what they may do. */
export interface ChangedPerson {
  readonly person: PersonView;
  readonly keys: readonly string[];
}

/** What the use cases of people are built on. */
export interface PeopleServiceDeps extends Pick<Kernel, "ids" | "clock" | "writer" | "log"> {
  readonly directory: PeopleDirectory;
  readonly accounts: PeopleAccounts;
  readonly projects: PeopleProjects;
  readonly keys: PeopleKeys;
  readonly outbox: MailQueue;
  readonly trail: AuditTrail;
  readonly limit: TierLimit;
  /** The clock of the limits of invitations. */
  readonly limitClock: Pick<Clock, "monotonic">;
  /** Ends all sessions of a person. */
  readonly endSessions: (tx: Tx, personRef: number) => number[];
}

/** The use cases of people. */
export class PeopleService {
  private readonly invitations: AttemptLimiter;
  private readonly invitationsTo: AttemptLimiter;

  constructor(private readonly deps: PeopleServiceDeps) {
    const { limitClock } = deps;
    this.invitations = new AttemptLimiter(limitClock, INVITATIONS_PER_DAY, DAY_MS, INVITATION_KEYS_MAX);
    this.invitationsTo = new AttemptLimiter(limitClock, INVITATIONS_PER_ADDRESS, DAY_MS, INVITATION_KEYS_MAX);
  }

  /** A page of the people of an account, newest first. @throws ApiError `validation_error` */
  list({ account }: Caller, query: PeopleQuery): PeoplePage {
    const { limit = PEOPLE_LIMIT, cursor, status = null, role = null } = query;
    const page = { account: account.ref, before: pageStart(cursor), status, role, limit: limit + 1 };
    const { items, ...next } = pageOf(this.deps.directory.store.before(page), limit, ({ ref }) => [ref]);
    return { people: items.map((row) => this.view(row)), ...next };
  }

  /** @throws ApiError `not_found` */
  get(caller: Caller, id: string): PersonView {
    return this.view(this.visible(caller, id));
  }

  /**
   * Invites a person.
   * @throws ApiError `validation_error`, `forbidden`, `conflict`, `people_limit_exceeded`, `rate_limit_exceeded`
   */
  invite(tx: Tx, caller: Caller, body: PersonCreateBody, baseUrl: string): PersonInvited {
    const { directory } = this.deps;
    const { email, name = null } = body;
    const grant = this.grantOf(caller, body.role, body.projects, null);
    assertMayGrantRole(caller, grant.role);
    if (directory.store.withEmail(caller.account.ref, foldEmail(email)) !== null)
      throw new ApiError("conflict", "A person with this e-mail address exists already. Change that person.");
    this.assertCapacity(caller.account.ref);
    const invitedBy = caller.person?.id ?? null;
    const row = this.insert(tx, caller.account.ref, { email, name, invitedBy, acceptedAt: null, ...grant });
    tx.audit({ ...aboutPerson(row, "invited"), before: null, after: this.auditedFields(row) });
    const invitation = this.createInvitation(tx, caller, row, baseUrl);
    return { ...this.view(this.row(row.ref)), invitation_url: invitation.invitation_url };
  }

  /**
   * Creates a new invitation, which ends the previous one. That of an active person replaces their passkeys: it is returned
   * to owners only, others can have it mailed.
   * @throws ApiError `not_found`, `forbidden`, `conflict`, `rate_limit_exceeded`
   */
  renewInvitation(tx: Tx, caller: Caller, id: string, baseUrl: string): Invitation {
    const row = this.visible(caller, id);
    assertNotAbove(caller, row.role);
    if (row.disabled !== 0)
      throw new ApiError("conflict", "This person is disabled. Enable the person first.");
    const isActive = statusOf(row) === "active";
    if (isActive && !this.deps.outbox.available && accountRoleOf(caller) !== "owner") {
      throw new ApiError(
        "forbidden",
        "This server sends no e-mail, and only owners can get the link of an active person.",
      );
    }
    const invitation = this.createInvitation(tx, caller, row, baseUrl);
    const after = { expires_at: invitation.expires_at };
    tx.audit({ ...aboutPerson(row, "invited again"), before: null, after });
    return invitation;
  }

  /**
   * Changes a person. `revokesKeys`: also revokes the keys that they have created.
   * @throws ApiError `not_found`, `validation_error`, `forbidden`, `conflict`
   */
  update(tx: Tx, caller: Caller, id: string, body: PersonPatchBody, revokesKeys: boolean): ChangedPerson {
    const row = this.visible(caller, id);
    assertNotAbove(caller, row.role);
    const changesRole = body.role !== undefined || body.projects !== undefined;
    this.assertMayChange(caller, row, { changesRole, changesDisabled: body.disabled !== undefined });
    const before = this.auditedFields(row);
    const person = this.person(row.ref);
    const grant = changesRole ? this.grantOf(caller, body.role, body.projects, person) : person;
    if (changesRole) assertMayGrantRole(caller, grant.role);
    const { name = row.name } = body;
    const disabled = body.disabled === undefined ? row.disabled : Number(body.disabled);
    this.apply(tx, row, { ...grant, name, disabled });
    const after = this.row(row.ref);
    tx.audit(changed({ ...aboutPerson(row, "changed"), before, after: this.auditedFields(after) }));
    if (revokesKeys) this.deps.keys.revokeCreatedBy(tx, caller, row.id);
    const keys =
      changesRole || disabled > row.disabled ? this.deps.keys.createdBy(row.account_ref, row.id) : [];
    return { person: this.view(after), keys };
  }

  /** Changes the caller's own name. @throws ApiError `forbidden` with a key. */
  rename(tx: Tx, caller: Caller, name: string | null | undefined): PersonView {
    const row = this.callingPerson(caller);
    const before = { name: row.name };
    if (name !== undefined) this.apply(tx, row, { ...this.person(row.ref), name, disabled: row.disabled });
    const after = this.row(row.ref);
    tx.audit(changed({ ...aboutPerson(row, "changed"), before, after: { name: after.name } }));
    return this.view(after);
  }

  /**
   * Deletes a person, and ends their sessions. Keys that they created stay, unless they are revoked too.
   * @throws ApiError `not_found`, `forbidden`, `conflict` for the last owner
   */
  delete(tx: Tx, caller: Caller, id: string, revokesKeys: boolean) {
    const row = this.visible(caller, id);
    assertNotAbove(caller, row.role);
    this.assertNotLastOwner(row, null);
    const keys = this.deps.keys.createdBy(row.account_ref, row.id);
    const before = this.auditedFields(row);
    tx.audit({ ...aboutPerson(row, "deleted"), before, after: null });
    if (revokesKeys) this.deps.keys.revokeCreatedBy(tx, caller, row.id);
    this.remove(tx, row.ref);
    return { deleted_at: isoTime(tx.now), keys };
  }

  /** Removes an identity at a provider, so that another one can be linked. @throws ApiError `not_found`, `forbidden` */
  removeIdentity(tx: Tx, caller: Caller, id: string, identityId: string): PersonView {
    const row = this.visible(caller, id);
    assertNotAbove(caller, row.role);
    const { store } = this.deps.directory;
    const identity = store.identitiesOf(row.ref).find((linked) => linked.id === identityId);
    if (identity === undefined) throw new ApiError("not_found", "This person has no identity with this id.");
    store.removeIdentity(tx, identity.ref);
    this.deps.directory.changed(tx, row.ref);
    tx.audit({
      ...aboutPerson(row, "unlinked from a provider"),
      before: { issuer: identity.issuer, subject: identity.subject },
      after: null,
    });
    return this.view(this.row(row.ref));
  }

  /** Ends all sessions of a person. @throws ApiError `not_found`, `forbidden` */
  endSessions(tx: Tx, caller: Caller, id: string): { ended: number } {
    const row = this.visible(caller, id);
    assertNotAbove(caller, row.role);
    const ended = this.deps.endSessions(tx, row.ref).length;
    const about = aboutPerson(row, `logged out of ${ended} browsers`);
    tx.audit(changed({ ...about, before: { sessions: ended }, after: { sessions: 0 } }));
    return { ended };
  }

  /** The row of the calling person. @throws ApiError `forbidden` with a key. */
  callingPerson({ person }: Caller): PersonRow {
    if (person === undefined)
      throw new ApiError("forbidden", "Only people have a profile. This request was sent with a key.");
    return this.row(person.ref);
  }

  /** @throws ApiError `people_limit_exceeded` for an account with as many people as its tier allows. */
  assertCapacity(accountRef: number): void {
    this.deps.limit.assertCapacity(this.deps.accounts.account(accountRef));
  }

  /** Stores a new person. The caller has checked the limit and the address. */
  insert(
    tx: Tx,
    accountRef: number,
    person: Grant & {
      readonly email: string;
      readonly name: string | null;
      readonly invitedBy: string | null;
      readonly acceptedAt: number | null;
      readonly isFromFile?: boolean;
    },
  ): PersonRow {
    const { directory, ids } = this.deps;
    const { email, name, role, projects, invitedBy, acceptedAt, isFromFile = false } = person;
    const id = `psn_${ids.base62(PERSON_ID_LENGTH)}`;
    directory.store.insertPerson(tx, {
      id,
      account_ref: accountRef,
      email,
      email_folded: foldEmail(email),
      name,
      role,
      accepted_at: acceptedAt,
      disabled: 0,
      from_file: Number(isFromFile),
      invited_by: invitedBy,
      created_at: tx.now,
    });
    const row = directory.store.withId(id);
    if (row === null) throw new Error("a person was not stored");
    for (const [projectRef, projectRole] of projects)
      directory.store.insertProjectRole(tx, row.ref, projectRef, projectRole);
    directory.changed(tx, row.ref);
    return row;
  }

  /**
   * Changes a person. Disabling ends their sessions and links; the role of an owner ends invitations. @throws ApiError `conflict` for the last owner.
   */
  apply(
    tx: Tx,
    row: PersonRow,
    next: Grant & {
      readonly name: string | null;
      readonly disabled: number;
      readonly acceptedAt?: number;
      readonly isFromFile?: boolean;
    },
  ): void {
    const { directory } = this.deps;
    const { store } = directory;
    this.assertNotLastOwner(row, next);
    const { name, role, disabled, acceptedAt = row.accepted_at, isFromFile = row.from_file !== 0 } = next;
    store.updatePerson(tx, {
      ref: row.ref,
      name,
      role,
      accepted_at: acceptedAt,
      disabled,
      from_file: Number(isFromFile),
    });
    store.removeProjectRoles(tx, row.ref);
    for (const [projectRef, role] of next.projects) store.insertProjectRole(tx, row.ref, projectRef, role);
    directory.changed(tx, row.ref);
    // An admin may have the link: nobody becomes an owner by an invitation that was created for less.
    if (role === "owner" && row.role !== "owner" && acceptedAt === null)
      store.removePersonLinks(tx, row.ref, "invitation");
    if (disabled === 0 || row.disabled !== 0) return;
    store.removePersonLinksOf(tx, row.ref);
    this.deps.endSessions(tx, row.ref);
  }

  /** Removes a person with everything that logs them in. */
  remove(tx: Tx, ref: number): void {
    const { directory } = this.deps;
    const { store } = directory;
    this.deps.endSessions(tx, ref);
    store.removePersonLinksOf(tx, ref);
    store.removePasskeysOf(tx, ref);
    store.removeIdentitiesOf(tx, ref);
    store.removeProjectRoles(tx, ref);
    store.removePerson(tx, ref);
    directory.changed(tx, ref);
  }

  /**
   * The last active owner keeps their role: without one, nobody could manage people.
   * @throws ApiError `conflict`
   */
  assertNotLastOwner(
    row: PersonRow,
    next: { readonly role: Role | null; readonly disabled: number } | null,
  ): void {
    const isOwner = row.role === "owner" && statusOf(row) === "active";
    const remains = next !== null && next.role === "owner" && next.disabled === 0;
    if (!isOwner || remains || this.deps.directory.store.ownersOf(row.account_ref) > 1) return;
    throw new ApiError(
      "conflict",
      "This is the last active owner of the account. Make another person an owner first.",
    );
  }

  /** A person as the API shows them. */
  view(row: PersonRow): PersonView {
    const { directory, clock } = this.deps;
    const { store } = directory;
    const identities = store.identitiesOf(row.ref);
    const hasPasskey = store.passkeysOf(row.ref).length > 0;
    return {
      person_id: row.id,
      email: row.email,
      name: row.name,
      role: row.role,
      projects: this.projectsView(row),
      status: statusOf(row),
      login_methods: [
        ...(hasPasskey ? (["passkey"] as const) : []),
        ...(identities.length > 0 ? (["oidc"] as const) : []),
      ],
      identities: identities.map((identity) => ({
        identity_id: identity.id,
        issuer: identity.issuer,
        created_at: isoTime(identity.created_at),
        last_used_at: isoTimeOrNull(identity.used_at),
      })),
      from_file: row.from_file !== 0,
      invited_by: row.invited_by,
      invitation_expires_at: isoTimeOrNull(store.invitationEnd(row.ref, clock.now()) || null),
      created_at: isoTime(row.created_at),
      last_seen_at: isoTimeOrNull(row.seen_at),
    };
  }

  /** A row that is known to exist. */
  row(ref: number): PersonRow {
    const row = this.deps.directory.store.person(ref);
    if (row === null) throw new ApiError("not_found", "There is no person with this id.");
    return row;
  }

  private person(ref: number): Person {
    const person = this.deps.directory.person(ref);
    if (person === null) throw new ApiError("not_found", "There is no person with this id.");
    return person;
  }

  private visible({ account }: Caller, id: string): PersonRow {
    const row = this.deps.directory.store.withId(id);
    if (row !== null && row.account_ref === account.ref) return row;
    throw new ApiError("not_found", "There is no person with this id.");
  }

  /** @throws ApiError `forbidden` for the caller's own role, `conflict` for a role of the configuration file. */
  private assertMayChange(
    caller: Caller,
    row: PersonRow,
    { changesRole, changesDisabled }: { readonly changesRole: boolean; readonly changesDisabled: boolean },
  ): void {
    if ((changesRole || changesDisabled) && caller.person?.ref === row.ref)
      throw new ApiError(
        "forbidden",
        "Nobody changes their own role, or disables themself. Another admin or owner can.",
      );
    if (changesRole && row.from_file !== 0) {
      throw new ApiError(
        "conflict",
        "The role and the projects of this person are set by the configuration file. Change them there.",
      );
    }
  }

  /**
   * The role or the project roles that a body gives. `before`: the person that it changes.
   * @throws ApiError `validation_error`
   */
  private grantOf(
    { account }: Caller,
    role: PersonCreateBody["role"],
    projects: PersonCreateBody["projects"],
    before: Grant | null,
  ): Grant {
    const isList = Array.isArray(projects);
    const inProjects = isList || (projects === undefined && role === null && before?.role === null);
    if (inProjects) {
      if (role !== undefined && role !== null)
        throw invalidField("role", "must be null or omitted with a list of projects");
      return {
        role: null,
        projects: isList ? this.rolesOf(account.ref, projects) : (before?.projects ?? new Map()),
      };
    }
    const accountRole = role === undefined ? (before?.role ?? null) : role;
    if (accountRole === null)
      throw invalidField(
        "role",
        "is required, unless projects is a list: one of viewer, responder, editor, admin, owner",
      );
    return { role: accountRole, projects: new Map() };
  }

  private rolesOf(
    accountRef: number,
    projects: readonly { readonly project_id: string; readonly role: Role }[],
  ): Map<number, Role> {
    const roles = new Map<number, Role>();
    for (const { project_id, role } of projects) {
      const project = this.deps.projects.find(accountRef, project_id);
      if (project === null)
        throw invalidField("projects", `has ${project_id}, which is no project of the account`);
      if (roles.has(project.ref)) throw invalidField("projects", `has ${project_id} twice`);
      roles.set(project.ref, role);
    }
    return roles;
  }

  /** @throws ApiError `rate_limit_exceeded` */
  private createInvitation(tx: Tx, caller: Caller, row: PersonRow, baseUrl: string): Invitation {
    const { directory, outbox, accounts } = this.deps;
    this.countInvitation(tx, caller.account.userId, row.email_folded);
    const expiresAt = tx.now + INVITATION_MS;
    const token = directory.createLink(tx, { personRef: row.ref, kind: "invitation", expiresAt });
    const url = `${baseUrl}/dashboard/#/invitation/${token}`;
    const isActive = statusOf(row) === "active";
    if (outbox.available) {
      const account = accounts.account(row.account_ref).email;
      const facts = { to: row.email, account, inviter: caller.person?.email ?? null, url };
      outbox.enqueue(tx, row.account_ref, isActive ? newLinkMail(facts) : invitationMail(facts));
    }
    const isShown = !outbox.available || (isActive && accountRoleOf(caller) === "owner");
    return { person_id: row.id, invitation_url: isShown ? url : null, expires_at: isoTime(expiresAt) };
  }

  private countInvitation(tx: Tx, userId: string, address: string): void {
    const waits = [this.invitations.takeIn(tx, userId), this.invitationsTo.takeIn(tx, address)];
    const retryAfterSeconds = Math.max(...waits);
    if (retryAfterSeconds === 0) return;
    const message = `Too many invitations ${waits[0] === 0 ? "to this address" : "of this account"} today. Retry in ${retryAfterSeconds} s.`;
    throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds });
  }

  private projectsView(row: PersonRow): PersonView["projects"] {
    if (row.role !== null) return "all";
    const { projects, directory } = this.deps;
    return directory.store.projectRoles(row.ref).flatMap(({ project_ref, role }) => {
      const project_id = projects.isDeleted(project_ref) ? null : projects.idOf(project_ref);
      return project_id === null || role === "owner" ? [] : [{ project_id, role }];
    });
  }

  private auditedFields(row: PersonRow) {
    const { email, name, role } = row;
    return { email, name, role, projects: this.projectsView(row), disabled: row.disabled !== 0 };
  }
}

/** Common fields of the audit entries of a person. */
export function aboutPerson({ id, email }: Pick<PersonRow, "id" | "email">, what: string) {
  return { summary: `Person ${email} ${what}`, target: { type: "person", id } };
}
