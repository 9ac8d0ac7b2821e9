import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import type { AuditTrail } from "../../kernel/audit/trail.ts";
import { loginRejected } from "../../kernel/callers/caller.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { MailQueue } from "../../kernel/mail/outbox.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import type { PeopleDirectory, Person } from "./directory.ts";
import { LOGIN_LINK_MS } from "./domain.ts";
import { linkUsedMail } from "./mails.ts";
import type { Passkeys, VerifiedPasskey } from "./passkeys.ts";
import type { LoginRequest, Opened, PeopleAccounts, PeopleSessions, VerifiedPerson } from "./ports.ts";
import type { LoginCredential, RegistrationCredential } from "./schema.ts";
import { aboutPerson, type PeopleService } from "./service.ts";

/** What the logins of people are built on. */
export interface PersonLoginDeps extends Pick<Kernel, "clock" | "ids"> {
  readonly directory: PeopleDirectory;
  readonly service: PeopleService;
  readonly passkeys: Passkeys;
  readonly accounts: PeopleAccounts;
  readonly trail: AuditTrail;
  readonly outbox: MailQueue;
  readonly sessions: PeopleSessions;
}

/** Logins of people by passkey and by invitation. */
export class PersonLogins {
  constructor(private readonly deps: PersonLoginDeps) {}

  /** Logs a person in by a passkey. @throws ApiError `unauthorized`, with the same message for every reason. */
  byPasskey(credential: LoginCredential, login: LoginRequest): Promise<Opened> {
    const { passkeys, sessions } = this.deps;
    return sessions.openPerson(login, async () => {
      const verified = await passkeys.verifyLogin(credential as AuthenticationResponseJSON, login.origin);
      return (tx) => ({ person: passkeys.use(tx, verified), method: "passkey" });
    });
  }

  /**
   * What an invitation is for, and the options of the passkey that accepts it. It is not used up.
   * @throws ApiError `unauthorized` for every token that is not valid.
   */
  invitation(token: string, login: LoginRequest) {
    const { directory, clock, accounts, sessions } = this.deps;
    const found = directory.link("invitation", token, clock.now());
    const account = found && accounts.account(found.person.accountRef);
    if (found === null || account === null || account.suspended || account.deleted) {
      sessions.recordRejected(login);
      throw loginRejected();
    }
    const { person, row } = found;
    const { email, name, role } = person;
    return {
      email,
      name,
      account: account.email,
      role,
      expires_at: isoTime(row.expires_at),
      ...this.optionsFor(person, login.origin),
    };
  }

  /**
   * Accepts an invitation with a new passkey, and logs the person in. An active person loses all other passkeys and sessions.
   * @throws ApiError `unauthorized`, `validation_error`, `conflict`
   */
  acceptByPasskey(
    token: string,
    credential: RegistrationCredential,
    name: string | undefined,
    login: LoginRequest,
  ): Promise<Opened> {
    const { directory, passkeys, clock, sessions } = this.deps;
    return sessions.openPerson(
      login,
      async () => {
        const found = directory.link("invitation", token, clock.now());
        if (found === null) throw loginRejected();
        const response = credential as RegistrationResponseJSON;
        const verified = await passkeys.verifyRegistration(found.person, response, login.origin);
        return (tx) => this.accepted(tx, token, verified, name, login);
      },
      "invitation",
    );
  }

  /**
   * Creates a login link of a person, for whoever has the folder of the stopped server. Returns its token.
   * @throws ApiError `not_found`, `conflict` for a disabled person.
   */
  createLink(tx: Tx, email: string, account: string | null): { token: string; expiresAt: number } {
    const { directory, accounts, trail } = this.deps;
    const accountRef = accounts.refOf(account);
    if (accountRef === 0) throw new ApiError("not_found", `There is no account ${account}.`);
    const person = directory.withEmail(accountRef, email);
    if (person === null)
      throw new ApiError(
        "not_found",
        `The account ${accounts.account(accountRef).email} has no person with the address ${email}.`,
      );
    if (person.status === "disabled")
      throw new ApiError("conflict", `${email} is disabled. Enable the person first.`);
    const expiresAt = tx.now + LOGIN_LINK_MS;
    const token = directory.createLink(tx, { personRef: person.ref, kind: "login", expiresAt });
    const after = { expires_at: isoTime(expiresAt) };
    const about = aboutPerson(person, "got a login link on the stopped server");
    trail.recordSystem(tx, "people.login_link.create", accountRef, { ...about, before: null, after });
    return { token, expiresAt };
  }

  /** Accepts the invitation of a person whose address a login has proven, in its unit of work. */
  accept(tx: Tx, invited: Person, name: string | null, { requestId, requestOrigin }: LoginRequest): Person {
    const { accounts, trail } = this.deps;
    const person = this.activate(tx, invited, name);
    const account = { ref: invited.accountRef, userId: accounts.account(invited.accountRef).userId };
    trail.recordPublic(tx, "people.invitation.accept", { requestId, requestOrigin }, account, {
      ...aboutPerson(invited, "accepted the invitation by a login with the address"),
      before: null,
      after: { status: "active" },
    });
    return person;
  }

  /** Uses up a login link. It accepts the invitation of its person. Null for any that is not valid. */
  useLink(tx: Tx, token: string): Person | null {
    const person = this.deps.directory.consumeLink(tx, "login", token);
    return person?.status === "invited" ? this.activate(tx, person, null) : person;
  }

  /** Makes an invited person active, in the unit of work of a login that proves their address. */
  activate(tx: Tx, person: Person, name: string | null): Person {
    const { directory, service } = this.deps;
    const { ref, role, projects } = person;
    const row = service.row(ref);
    directory.store.removePersonLinks(tx, ref, "invitation");
    service.apply(tx, row, {
      role,
      projects,
      name: row.name ?? name,
      disabled: row.disabled,
      acceptedAt: row.accepted_at ?? tx.now,
    });
    return this.personOf(ref);
  }

  private accepted(
    tx: Tx,
    token: string,
    verified: VerifiedPasskey,
    name: string | undefined,
    { requestId, requestOrigin }: LoginRequest,
  ): VerifiedPerson {
    const { directory, passkeys, sessions, trail, accounts, outbox } = this.deps;
    const invited = directory.consumeLink(tx, "invitation", token);
    if (invited === null) throw loginRejected();
    const { ref, isActive } = invited;
    if (isActive) {
      directory.store.removePasskeysOf(tx, ref);
      directory.store.removePersonLinksOf(tx, ref);
      sessions.endOfPerson(tx, ref, {});
      const { email, accountRef } = invited;
      if (outbox.available)
        outbox.enqueue(
          tx,
          accountRef,
          linkUsedMail({ to: email, account: accounts.account(accountRef).email }),
        );
    }
    this.activate(tx, invited, null);
    if (name !== undefined) {
      const row = this.deps.service.row(ref);
      const { role, projects } = this.personOf(ref);
      this.deps.service.apply(tx, row, { role, projects, name, disabled: row.disabled });
    }
    passkeys.add(tx, invited, verified);
    const { userId } = accounts.account(invited.accountRef);
    const change = {
      ...aboutPerson(invited, isActive ? "replaced all passkeys by a new one" : "accepted the invitation"),
      before: null,
      after: { passkeys: 1 },
    };
    const account = { ref: invited.accountRef, userId };
    trail.recordPublic(tx, "people.invitation.accept", { requestId, requestOrigin }, account, change);
    return { person: this.personOf(ref), method: "invitation" };
  }

  private personOf(ref: number): Person {
    const person = this.deps.directory.person(ref);
    if (person === null) throw loginRejected();
    return person;
  }

  /** The options of a passkey, or why the address of this page permits none. */
  private optionsFor(person: Person, origin: string) {
    try {
      return {
        options: { ...this.deps.passkeys.registrationOptions(person, origin) },
        passkeys_unavailable: null,
      };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return { options: null, passkeys_unavailable: error.message };
    }
  }
}
