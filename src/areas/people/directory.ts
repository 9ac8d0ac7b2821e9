import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { LoginMethod } from "../../kernel/callers/caller.ts";
import type { Role } from "../../kernel/callers/role.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { keyDigest } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import {
  foldEmail,
  PEOPLE_IN_MEMORY_MAX,
  SEEN_WRITE_MS,
  type Status,
  TOKEN_BYTES,
  TOKEN_LENGTH,
} from "./domain.ts";
import { type LinkKind, type LinkRow, type PeopleStore, type PersonRow, peopleStore } from "./store.ts";

const NO_SCOPES: ReadonlySet<string> = new Set();

/** A person as they are now. A change makes another object. */
export interface Person extends Actor {
  readonly ref: number;
  readonly id: string;
  readonly accountRef: number;
  readonly email: string;
  readonly name: string | null;
  readonly role: Role | null;
  readonly projects: ReadonlyMap<number, Role>;
  readonly status: Status;
  readonly isActive: boolean;
  readonly isFromFile: boolean;
  readonly stepUpMethods: readonly LoginMethod[];
  seenAt: number | null;
}

/** The status of a person. */
export function statusOf({ disabled, accepted_at }: Pick<PersonRow, "disabled" | "accepted_at">): Status {
  if (disabled !== 0) return "disabled";
  return accepted_at === null ? "invited" : "active";
}

/** The people of all accounts, and the links that log them in. Recently used people are in memory. */
export class PeopleDirectory {
  readonly store: PeopleStore;
  /** The scopes that each role stands for, once all operations are declared. */
  roleScopes: ReadonlyMap<Role, ReadonlySet<string>> = new Map();
  private readonly inMemory = new ActorRegistry<number, Person>(PEOPLE_IN_MEMORY_MAX);

  constructor(private readonly kernel: Pick<Kernel, "db" | "ids">) {
    this.store = peopleStore(kernel.db);
  }

  /** The scopes that a role stands for, for what looks at scopes instead of operations. */
  scopesOf(role: Role): ReadonlySet<string> {
    return this.roleScopes.get(role) ?? NO_SCOPES;
  }

  /** A person; null if there is none. */
  person(ref: number): Person | null {
    return this.inMemory.get(ref, () => this.read(this.store.person(ref))) ?? null;
  }

  /** The person of an account with an address; null if there is none. */
  withEmail(accountRef: number, email: string): Person | null {
    const row = this.store.withEmail(accountRef, foldEmail(email));
    return row && this.person(row.ref);
  }

  /** Whether a person of an account can log in and has a role in a project; null if nobody of it has the address. */
  mayRead(accountRef: number, projectRef: number, email: string): boolean | null {
    const person = this.withEmail(accountRef, email);
    if (person === null) return null;
    return person.isActive && (person.role !== null || person.projects.has(projectRef));
  }

  /** People of all accounts with an address. */
  withAddress(email: string): Person[] {
    return this.peopleOf(this.store.withAddress(foldEmail(email)).map(({ ref }) => ref));
  }

  /** Active people of all accounts with an address. */
  activeWithAddress(email: string): Person[] {
    return this.withAddress(email).filter(({ isActive }) => isActive);
  }

  /** Active people of all accounts with an identity at a provider. */
  activeWithIdentity(issuer: string, subject: string): Person[] {
    const refs = this.store.identitiesOfSubject(issuer, subject).map(({ person_ref }) => person_ref);
    return this.peopleOf(refs).filter(({ isActive }) => isActive);
  }

  /** Drops a person from memory, in the unit of work that changes them or how they log in. */
  changed(tx: Tx, ref: number): void {
    // What a later unit of the same batch reads is dropped again if the batch is rolled back.
    this.inMemory.drop(ref);
    tx.onRollback(() => this.inMemory.drop(ref));
  }

  /** Records that a person was seen, at most every few minutes. */
  recordSeen(tx: Tx, ref: number): void {
    const person = this.person(ref);
    if (person === null || Math.abs(tx.now - (person.seenAt ?? 0)) < SEEN_WRITE_MS) return;
    const before = person.seenAt;
    person.seenAt = tx.now;
    tx.onRollback(() => {
      person.seenAt = before;
    });
    this.store.setSeen(tx, tx.now, ref);
  }

  /** Creates a link. A new invitation ends the earlier ones. Returns the token. */
  createLink(
    tx: Tx,
    {
      personRef,
      kind,
      expiresAt,
      browserHash = null,
    }: {
      readonly personRef: number;
      readonly kind: LinkKind;
      readonly expiresAt: number;
      readonly browserHash?: Uint8Array | null;
    },
  ): string {
    const token = Buffer.from(this.kernel.ids.bytes(TOKEN_BYTES)).toString("base64url");
    if (kind === "invitation") this.store.removePersonLinks(tx, personRef, kind);
    this.store.insertPersonLink(tx, {
      token_hash: keyDigest(token),
      person_ref: personRef,
      kind,
      browser_hash: browserHash,
      expires_at: expiresAt,
    });
    return token;
  }

  /** A valid link with its person; null for any other token. It is not used up. */
  link(
    kind: LinkKind,
    token: string,
    now: number,
  ): { readonly row: LinkRow; readonly person: Person } | null {
    const row = token.length === TOKEN_LENGTH ? this.store.personLink(keyDigest(token)) : null;
    if (row === null || row.kind !== kind || row.expires_at <= now) return null;
    const person = this.person(row.person_ref);
    return person === null || person.status === "disabled" ? null : { row, person };
  }

  /** Uses up a link. Returns its person; null for a token that is not valid. */
  consumeLink(tx: Tx, kind: LinkKind, token: string): Person | null {
    const found = this.link(kind, token, tx.now);
    if (found === null) return null;
    this.store.removePersonLink(tx, found.row.token_hash);
    return found.person;
  }

  private peopleOf(refs: readonly number[]): Person[] {
    return refs.flatMap((ref) => this.person(ref) ?? []);
  }

  private read(row: PersonRow | null): Person | undefined {
    if (row === null) return undefined;
    const { ref, id, account_ref, email, name, role, from_file, seen_at } = row;
    const { store } = this;
    const roles = role === null ? store.projectRoles(ref) : [];
    const status = statusOf(row);
    const hasPasskey = store.passkeysOf(ref).length > 0;
    const hasFreshLogin = store.identitiesOf(ref).some(({ sent_auth_time }) => sent_auth_time !== 0);
    return {
      idle: true,
      recent: false,
      ref,
      id,
      accountRef: account_ref,
      email,
      name,
      role,
      projects: new Map(roles.map((role) => [role.project_ref, role.role])),
      status,
      isActive: status === "active",
      isFromFile: from_file !== 0,
      stepUpMethods: [
        ...(hasPasskey ? (["passkey"] as const) : []),
        ...(hasFreshLogin ? (["oidc"] as const) : []),
      ],
      seenAt: seen_at,
    };
  }
}
