import type { Role } from "../../kernel/callers/role.ts";
import type { Database } from "../../kernel/storage/database.ts";

/** A row of `people`. */
export type PersonRow = {
  readonly ref: number;
  readonly id: string;
  readonly account_ref: number;
  readonly email: string;
  readonly email_folded: string;
  readonly name: string | null;
  /** Null for roles in single projects. */
  readonly role: Role | null;
  /** Epoch milliseconds, as the others; null while the person is invited. */
  readonly accepted_at: number | null;
  readonly disabled: number;
  /** 1 if role and projects are those of the configuration file. */
  readonly from_file: number;
  readonly invited_by: string | null;
  readonly created_at: number;
  readonly seen_at: number | null;
};

export type ProjectRoleRow = { readonly project_ref: number; readonly role: Role };

/** A row of `passkeys`. */
export type PasskeyRow = {
  readonly ref: number;
  readonly id: string;
  readonly person_ref: number;
  /** Base64url. */
  readonly credential_id: string;
  /** COSE. */
  readonly public_key: Uint8Array;
  readonly counter: number;
  /** JSON. */
  readonly transports: string;
  /** Host. */
  readonly relying_party: string;
  readonly name: string;
  readonly created_at: number;
  readonly used_at: number | null;
};

/** A row of `person_identities`. */
export type IdentityRow = {
  readonly ref: number;
  readonly id: string;
  readonly person_ref: number;
  readonly issuer: string;
  readonly subject: string;
  /** 1 if the provider says when the person logged in there. */
  readonly sent_auth_time: number;
  readonly created_at: number;
  readonly used_at: number | null;
};

/** Kinds of links that log a person in once. */
export type LinkKind = "invitation" | "login" | "email";

export type LinkRow = {
  readonly token_hash: Uint8Array;
  readonly person_ref: number;
  readonly kind: LinkKind;
  /** SHA-256 of the cookie of the only browser that may use it; null: any. */
  readonly browser_hash: Uint8Array | null;
  readonly expires_at: number;
};

const PERSON =
  "SELECT ref, id, account_ref, email, email_folded, name, role, accepted_at, disabled, from_file, invited_by, created_at, seen_at FROM people";
const PASSKEY =
  "SELECT ref, id, person_ref, credential_id, public_key, counter, transports, relying_party, name, created_at, used_at FROM passkeys";
const IDENTITY =
  "SELECT ref, id, person_ref, issuer, subject, sent_auth_time, created_at, used_at FROM person_identities";

export type PeopleStore = ReturnType<typeof peopleStore>;

/** The SQL statements of people and of how they log in. */
export function peopleStore(db: Database) {
  return {
    ...personStatements(db),
    ...passkeyStatements(db),
    ...identityStatements(db),
    ...linkStatements(db),
  };
}

function personStatements(db: Database) {
  return {
    person: db.one<PersonRow, [ref: number]>(`${PERSON} WHERE ref = ?`),
    withId: db.one<PersonRow, [id: string]>(`${PERSON} WHERE id = ?`),
    withEmail: db.one<PersonRow, [accountRef: number, folded: string]>(
      `${PERSON} WHERE account_ref = ? AND email_folded = ?`,
    ),
    /** People of all accounts with an address. */
    withAddress: db.all<PersonRow, [folded: string]>(`${PERSON} WHERE email_folded = ? ORDER BY ref`),
    /** A page of an account's people, newest first; null: any status or role. */
    before: db.all<
      PersonRow,
      [
        {
          readonly account: number;
          readonly before: number;
          readonly status: string | null;
          readonly role: string | null;
          readonly limit: number;
        },
      ]
    >(
      `${PERSON} WHERE account_ref = $account AND ref < $before AND ($role IS NULL OR role = $role)
       AND ($status IS NULL OR $status = CASE WHEN disabled = 1 THEN 'disabled' WHEN accepted_at IS NULL THEN 'invited' ELSE 'active' END)
       ORDER BY ref DESC LIMIT $limit`,
    ),
    /** People of the configuration file. */
    fromFile: db.all<PersonRow, []>(`${PERSON} WHERE from_file = 1 ORDER BY ref`),
    insertPerson: db.change<[row: Omit<PersonRow, "ref" | "seen_at">]>(
      "INSERT INTO people (id, account_ref, email, email_folded, name, role, accepted_at, disabled, from_file, invited_by, created_at) VALUES ($id, $account_ref, $email, $email_folded, $name, $role, $accepted_at, $disabled, $from_file, $invited_by, $created_at)",
    ),
    updatePerson: db.change<
      [row: Pick<PersonRow, "ref" | "name" | "role" | "accepted_at" | "disabled" | "from_file">]
    >(
      "UPDATE people SET name = $name, role = $role, accepted_at = $accepted_at, disabled = $disabled, from_file = $from_file WHERE ref = $ref",
    ),
    setSeen: db.change<[seenAt: number, ref: number]>("UPDATE people SET seen_at = ? WHERE ref = ?"),
    removePerson: db.change<[ref: number]>("DELETE FROM people WHERE ref = ?"),
    /** Active owners of an account. */
    ownersOf: db.number<[accountRef: number]>(
      "SELECT count(*) AS n FROM people WHERE account_ref = ? AND role = 'owner' AND disabled = 0 AND accepted_at IS NOT NULL",
    ),
    /** 1 if there are people. */
    anyPerson: db.number("SELECT EXISTS (SELECT 1 FROM people) AS n"),
    /** People by status, among the first so many. */
    counts: db.all<{ readonly status: string; readonly n: number }, [countedMax: number]>(
      "SELECT CASE WHEN disabled = 1 THEN 'disabled' WHEN accepted_at IS NULL THEN 'invited' ELSE 'active' END AS status, count(*) AS n FROM (SELECT disabled, accepted_at FROM people LIMIT ?) GROUP BY status",
    ),
    /** People of a deleted account, to be removed. */
    batchOfAccount: db.all<{ readonly ref: number }, [accountRef: number, limit: number]>(
      "SELECT ref FROM people WHERE account_ref = ? LIMIT ?",
    ),
    projectRoles: db.all<ProjectRoleRow, [personRef: number]>(
      "SELECT project_ref, role FROM person_projects WHERE person_ref = ? ORDER BY project_ref",
    ),
    insertProjectRole: db.change<[personRef: number, projectRef: number, role: Role]>(
      "INSERT INTO person_projects (person_ref, project_ref, role) VALUES (?, ?, ?)",
    ),
    removeProjectRoles: db.change<[personRef: number]>("DELETE FROM person_projects WHERE person_ref = ?"),
    /** People with a role in a project. */
    peopleOfProject: db.all<{ readonly person_ref: number }, [projectRef: number, limit: number]>(
      "SELECT person_ref FROM person_projects WHERE project_ref = ? LIMIT ?",
    ),
    removeProjectRole: db.change<[projectRef: number, personRef: number]>(
      "DELETE FROM person_projects WHERE project_ref = ? AND person_ref = ?",
    ),
  };
}

function passkeyStatements(db: Database) {
  return {
    passkeysOf: db.all<PasskeyRow, [personRef: number]>(`${PASSKEY} WHERE person_ref = ? ORDER BY ref`),
    passkeyWithCredential: db.one<PasskeyRow, [credentialId: string]>(`${PASSKEY} WHERE credential_id = ?`),
    insertPasskey: db.change<[row: Omit<PasskeyRow, "ref" | "used_at">]>(
      "INSERT INTO passkeys (id, person_ref, credential_id, public_key, counter, transports, relying_party, name, created_at) VALUES ($id, $person_ref, $credential_id, $public_key, $counter, $transports, $relying_party, $name, $created_at)",
    ),
    renamePasskey: db.change<[name: string, ref: number]>("UPDATE passkeys SET name = ? WHERE ref = ?"),
    setPasskeyUse: db.change<[counter: number, usedAt: number, ref: number]>(
      "UPDATE passkeys SET counter = ?, used_at = ? WHERE ref = ?",
    ),
    removePasskey: db.change<[ref: number]>("DELETE FROM passkeys WHERE ref = ?"),
    removePasskeysOf: db.change<[personRef: number]>("DELETE FROM passkeys WHERE person_ref = ?"),
    /** 1 if somebody has a passkey. */
    anyPasskey: db.number("SELECT EXISTS (SELECT 1 FROM passkeys) AS n"),
  };
}

function identityStatements(db: Database) {
  return {
    identitiesOf: db.all<IdentityRow, [personRef: number]>(`${IDENTITY} WHERE person_ref = ? ORDER BY ref`),
    identitiesOfSubject: db.all<IdentityRow, [issuer: string, subject: string]>(
      `${IDENTITY} WHERE issuer = ? AND subject = ? ORDER BY ref`,
    ),
    insertIdentity: db.change<[row: Omit<IdentityRow, "ref">]>(
      "INSERT INTO person_identities (id, person_ref, issuer, subject, sent_auth_time, created_at, used_at) VALUES ($id, $person_ref, $issuer, $subject, $sent_auth_time, $created_at, $used_at)",
    ),
    setIdentityUse: db.change<[sentAuthTime: number, usedAt: number, ref: number]>(
      "UPDATE person_identities SET sent_auth_time = ?, used_at = ? WHERE ref = ?",
    ),
    removeIdentity: db.change<[ref: number]>("DELETE FROM person_identities WHERE ref = ?"),
    removeIdentitiesOf: db.change<[personRef: number]>("DELETE FROM person_identities WHERE person_ref = ?"),
  };
}

function linkStatements(db: Database) {
  return {
    personLink: db.one<LinkRow, [tokenHash: Uint8Array]>(
      "SELECT token_hash, person_ref, kind, browser_hash, expires_at FROM person_links WHERE token_hash = ?",
    ),
    insertPersonLink: db.change<[row: LinkRow]>(
      "INSERT INTO person_links (token_hash, person_ref, kind, browser_hash, expires_at) VALUES ($token_hash, $person_ref, $kind, $browser_hash, $expires_at)",
    ),
    removePersonLink: db.change<[tokenHash: Uint8Array]>("DELETE FROM person_links WHERE token_hash = ?"),
    removePersonLinks: db.change<[personRef: number, kind: LinkKind]>(
      "DELETE FROM person_links WHERE person_ref = ? AND kind = ?",
    ),
    removePersonLinksOf: db.change<[personRef: number]>("DELETE FROM person_links WHERE person_ref = ?"),
    removeExpiredPersonLinks: db.change<[now: number, rowsMax: number]>(
      "DELETE FROM person_links WHERE token_hash IN (SELECT token_hash FROM person_links WHERE expires_at <= ? LIMIT ?)",
    ),
    /** When the invitation of a person expires; 0 without one. */
    invitationEnd: db.number<[personRef: number, now: number]>(
      "SELECT max(expires_at) AS n FROM person_links WHERE person_ref = ? AND kind = 'invitation' AND expires_at > ?",
    ),
  };
}
