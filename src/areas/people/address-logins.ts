import { loginRejected } from "../../kernel/callers/caller.ts";
import type { Role } from "../../kernel/callers/role.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { PeopleDirectory, Person } from "./directory.ts";
import { ADDRESS_ACCOUNTS_MAX } from "./domain.ts";
import type { GroupRoles } from "./group-roles.ts";
import type { PersonLogins } from "./logins.ts";
import type { LoginRequest, PeopleAccounts } from "./ports.ts";

/** An address that a login has proven. */
export interface AddressLogin {
  readonly email: string;
  /** Null: the login does not say. */
  readonly name: string | null;
  /** The only account whose people log in; null: any. */
  readonly accountRef: number | null;
  /** The role that the groups of the login give; null: they give none. */
  readonly role: Role | null;
  /** Why its groups reject it; null: they do not. Known before anything is changed. */
  readonly rejection: string | null;
  /** The person of the browser's session, who is preferred; null without one. */
  readonly currentRef: number | null;
}

/** A link that is sent to the address of a person. */
export interface AddressLink {
  readonly token: string;
  readonly accountRef: number;
  readonly email: string;
}

/** What logins by a proven address are built on. */
interface AddressLoginsDeps {
  readonly directory: PeopleDirectory;
  readonly accounts: PeopleAccounts;
  readonly logins: PersonLogins;
  readonly groupRoles: GroupRoles;
}

/** Logs people in by an address that is proven: by a trusted proxy, or by a link that was sent to it. */
export class AddressLogins {
  constructor(private readonly deps: AddressLoginsDeps) {}

  /**
   * The person of an address, in the unit of work that opens the session. Accepts the invitations of that address.
   * @throws ApiError `unauthorized`
   */
  logIn(tx: Tx, login: AddressLogin, request: LoginRequest): Person {
    const people = this.usable(login.email, login.accountRef);
    const known = people[0] ?? this.deps.directory.withAddress(login.email)[0];
    const rejection =
      login.rejection ?? (people.length === 0 ? "the person or the account is disabled" : null);
    if (rejection !== null)
      throw loginRejected(known === undefined ? null : rejectedPerson(known, rejection));
    for (const person of people)
      if (person.status === "invited") this.deps.logins.accept(tx, person, login.name, request);
    const active = people.map(({ ref }) => this.personOf(ref)).filter(({ isActive }) => isActive);
    const chosen = active.find(({ ref }) => ref === login.currentRef) ?? active.sort(latestFirst)[0];
    if (chosen === undefined) throw loginRejected();
    if (login.role !== null) this.deps.groupRoles.apply(tx, chosen, login.role, request);
    return this.personOf(chosen.ref);
  }

  /** Creates a link for an address, which works in one browser; null if nobody has the address. */
  createLink(
    tx: Tx,
    email: string,
    { browserHash, expiresAt }: { readonly browserHash: Uint8Array; readonly expiresAt: number },
  ): AddressLink | null {
    const [person] = this.usable(email, null).sort(latestFirst);
    if (person === undefined) return null;
    const { ref, accountRef } = person;
    const token = this.deps.directory.createLink(tx, {
      personRef: ref,
      kind: "email",
      expiresAt,
      browserHash,
    });
    return { token, accountRef, email: person.email };
  }

  /** Uses up a link in its browser. Returns the address that it proves; null for any that is not valid there. */
  useLink(tx: Tx, token: string, browserHash: Uint8Array | null): string | null {
    const { directory } = this.deps;
    const found = directory.link("email", token, tx.now);
    const isOfBrowser =
      browserHash !== null && Buffer.from(browserHash).equals(found?.row.browser_hash ?? Buffer.alloc(0));
    return isOfBrowser ? (directory.consumeLink(tx, "email", token)?.email ?? null) : null;
  }

  /** People with an address who are not disabled, of accounts that are in use. */
  private usable(email: string, accountRef: number | null): Person[] {
    const { directory, accounts } = this.deps;
    return directory
      .withAddress(email)
      .filter((person) => {
        if (person.status === "disabled" || (accountRef !== null && person.accountRef !== accountRef))
          return false;
        const { suspended, deleted } = accounts.account(person.accountRef);
        return !suspended && !deleted;
      })
      .slice(0, ADDRESS_ACCOUNTS_MAX);
  }

  private personOf(ref: number): Person {
    const person = this.deps.directory.person(ref);
    if (person === null) throw loginRejected();
    return person;
  }
}

function rejectedPerson({ id, email, accountRef }: Person, reason: string) {
  return { id, email, accountRef, reason };
}

/** Active people first, and of those the one who was seen last. */
function latestFirst(a: Person, b: Person): number {
  return Number(b.isActive) - Number(a.isActive) || (b.seenAt ?? 0) - (a.seenAt ?? 0);
}
