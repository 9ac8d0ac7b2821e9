import type { AuditedRequest } from "../../kernel/audit/trail.ts";
import type { Caller, CallerAccount, CallerProject, LoginMethod } from "../../kernel/callers/caller.ts";
import type { PageRequest } from "../../kernel/http/access/peers.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Person } from "./directory.ts";

/** What people need of the accounts. */
export interface PeopleAccounts {
  account(accountRef: number): CallerAccount & { readonly email: string };
  /** The account that a setting names by its id or address; null: the operator's. 0 when there is none. */
  refOf(name: string | null): number;
}

/** What people need of the projects. */
export interface PeopleProjects {
  /** The account's project with this id; null when there is none or it is deleted. */
  find(accountRef: number, id: string): CallerProject | null;
  idOf(projectRef: number): string | null;
  isDeleted(projectRef: number): boolean;
}

/** The request of a browser that logs in. */
export type LoginRequest = PageRequest &
  Pick<AuditedRequest, "requestId" | "requestOrigin"> & { readonly clientAddress: string };

/** A login of a person that was verified. */
export interface VerifiedPerson {
  readonly person: Person;
  readonly method: LoginMethod;
  /** What it proves beyond the person. */
  readonly proof?: { readonly type: "oidc"; readonly issuer: string; readonly subject: string };
  /** When the person logged in, epoch milliseconds; now when omitted. */
  readonly authenticatedAt?: number;
  /** Whether it opens a session, or continues that of the person; when omitted, it continues one if there is one. */
  readonly session?: "new" | "same";
}

/** A session of a person as lists show it. */
export interface PersonSession {
  readonly id: number;
  readonly method: LoginMethod;
  readonly created_at: number;
  readonly seen_at: number;
  readonly expires_at: number;
  readonly ip: string | null;
  readonly user_agent: string | null;
}

/** A new session as the API shows it, with the header that sets its cookie. */
export interface Opened {
  readonly session: Readonly<Record<string, unknown>>;
  readonly cookie: string;
}

/** What people need of the sessions. */
export interface PeopleSessions {
  /**
   * Opens a session once `prove` has verified who logs in; what it returns runs in the unit of work that opens it. `method`:
   * under which a rejection is counted.
   */
  openPerson(
    login: LoginRequest,
    prove: () => Promise<(tx: Tx) => VerifiedPerson>,
    method?: LoginMethod,
  ): Promise<Opened>;
  /** @throws ApiError `rate_limit_exceeded` */
  assertPersonMayAttempt(clientAddress: string): void;
  /** Counts a rejected login. */
  recordRejected(login: LoginRequest): void;
  /** @throws ApiError `forbidden` for a request that does not come from a page of this server. */
  assertSameOrigin(from: PageRequest): void;
  ofPerson(personRef: number): readonly PersonSession[];
  /** Ends sessions of a person: one, or all but one. Returns their numbers. */
  endOfPerson(
    tx: Tx,
    personRef: number,
    which: { readonly only?: number; readonly except?: number },
  ): number[];
}

/** What people need of the keys that they have created. */
export interface PeopleKeys {
  /** Ids of keys that a person created and that are not revoked, newest first, up to a limit. */
  createdBy(accountRef: number, personId: string): string[];
  /** Revokes them. */
  revokeCreatedBy(tx: Tx, caller: Caller, personId: string): void;
}
