import { version } from "../../../package.json" with { type: "json" };
import { changed } from "../../kernel/audit/change.ts";
import {
  type AuditedKey,
  type AuditTrail,
  cutText,
  type RequestOrigin,
  USER_AGENT_LENGTH_MAX,
} from "../../kernel/audit/trail.ts";
import {
  assertAllowedFrom,
  assertStillValid,
  type Caller,
  type CallerPerson,
  isOperator,
  LOGIN_METHODS,
  type LoginMethod,
  loginRejected,
  RejectedLogin,
  type RejectedPerson,
} from "../../kernel/callers/caller.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { PageRequest } from "../../kernel/http/access/peers.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { MailQueue } from "../../kernel/mail/outbox.ts";
import { isBearerKey, keyDigest } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { MINUTE_MS } from "../../kernel/time/units.ts";
import {
  SESSION_MS,
  SESSIONS_PER_ACCOUNT_MAX,
  SESSIONS_PER_PERSON_MAX,
  setCookie,
  TOKEN_BYTES,
} from "./domain.ts";
import type { EmailLinks } from "./email-links.ts";
import { Logins } from "./logins.ts";
import { PersonCaller } from "./person-caller.ts";
import type { LoginProof, OfferedMethod, SessionPerson } from "./ports.ts";
import { RejectedLogins, type RejectedRequest } from "./rejected-logins.ts";
import type { LoginLink, Session, SessionBody } from "./schema.ts";
import type { ActiveSession, BrowserRequest, SessionDeps, Sessions } from "./sessions.ts";
import type { ListedSession, SessionStore } from "./store.ts";

/** What the area needs of other areas. */
export interface SessionAreaDeps extends SessionDeps {
  readonly trail: AuditTrail;
  /** The clock of the login limits. */
  readonly limitClock: Pick<Clock, "monotonic">;
  readonly keyOf: (credential: string) => AuditedKey | null;
  readonly outbox: MailQueue;
  /** Whether the configuration permits login links by e-mail. */
  readonly emailLinks: boolean;
  /** Whether the console is served; without it only keys log in. */
  readonly dashboard: boolean;
}

interface SessionServiceDeps
  extends Pick<Kernel, "clock" | "ids" | "writer" | "log" | "metrics">,
    SessionAreaDeps {
  readonly store: SessionStore;
  readonly sessions: Sessions;
  readonly mails: Pick<EmailLinks, "available">;
}

export type LoginRequest = RejectedRequest & BrowserRequest & { readonly requestOrigin: RequestOrigin };

/** A new session, with the header that sets its cookie. */
export interface OpenedSession {
  readonly session: Session;
  readonly cookie: string;
}

/** A login of a person, as whoever has verified it says. */
export interface PersonLogin {
  readonly person: SessionPerson;
  readonly method: LoginMethod;
  /** What it proves beyond the person; null or omitted for nothing. */
  readonly proof?: LoginProof | null;
  /** When the person logged in, epoch milliseconds; now when omitted. A change of account is no login. */
  readonly authenticatedAt?: number;
  /** When its session ends at the latest, epoch milliseconds; omitted: as long after it as a session lasts. */
  readonly endsAt?: number;
  /** Whether it opens a session, or continues that of the person; when omitted, it continues one if there is one. */
  readonly session?: "new" | "same";
}

/** The use cases of browser sessions. */
export class SessionService {
  readonly rejectedLogins: RejectedLogins;
  private readonly logins: Logins;
  private readonly counts;

  constructor(private readonly deps: SessionServiceDeps) {
    this.counts = deps.metrics.counterTable(
      { name: "ninefold_logins_total", help: "Logins of browsers, by method and result." },
      { label: "method", values: LOGIN_METHODS },
      { label: "result", values: ["accepted", "rejected"] },
    );
    this.logins = new Logins(deps.limitClock);
    this.rejectedLogins = new RejectedLogins(deps, deps.trail);
  }

  /** @throws ApiError `rate_limit_exceeded` for an address with too many logins, or too many rejected ones. */
  assertMayAttempt(clientAddress: string): void {
    this.rejectedLogins.assertMayAttempt(clientAddress);
    this.logins.assertMayAttempt(clientAddress);
  }

  /**
   * Opens a session for a key, or for the key of a login link.
   * @throws ApiError `validation_error`, `unauthorized`, `forbidden`, `rate_limit_exceeded`
   */
  async open(body: SessionBody, login: LoginRequest): Promise<OpenedSession> {
    const { key, link, email_link: emailLink, proxy } = body;
    if ([key, link, emailLink, proxy].filter((proof) => proof !== undefined).length !== 1) {
      throw new ApiError("validation_error", "Send one of key, link, email_link and proxy.", {
        fields: { key: ["or link, email_link or proxy is required, and only one of them"] },
      });
    }
    if (key === undefined && link === undefined) this.assertPeopleLogIn();
    if (proxy === true) return this.openByHeader(login);
    if (emailLink !== undefined) return this.openByEmail(emailLink, login);
    const token = this.newToken();
    const method = link === undefined ? "key" : "link";
    return this.opening(login, { token, method }, async () => (tx) => {
      const person = link === undefined ? null : this.deps.people.consumeLoginLink(tx, link);
      if (person !== null) return this.openForPerson(tx, { person, method: "link" }, token, login);
      const digest = link === undefined ? digestOfKey(key ?? "") : this.consumeLink(tx, link);
      this.deps.sessions.endPrevious(tx, login);
      const found = this.callerOf(digest, login);
      this.logins.count(tx, login.clientAddress, found.account);
      return this.insert(tx, found, digest, token, login);
    });
  }

  /**
   * Opens a session for a person. `prove` verifies the login; what it returns runs in the unit of work that opens the session,
   * and says who logs in. Another login of the person whose session the browser has is a step-up: it keeps that session, with
   * a new cookie. `method`: under which a rejection is counted.
   * @throws ApiError what `prove` throws; `rate_limit_exceeded`
   */
  openPerson(
    login: LoginRequest,
    prove: () => Promise<(tx: Tx) => PersonLogin>,
    method: LoginMethod = "passkey",
  ): Promise<OpenedSession> {
    const token = this.newToken();
    return this.opening(login, { token, method }, async () => {
      const verified = await prove();
      return (tx) => this.openForPerson(tx, verified(tx), token, login);
    });
  }

  /** @throws ApiError `unauthorized`, the same whatever was wrong. */
  private openByHeader(login: LoginRequest): Promise<OpenedSession> {
    const { header, people } = this.deps;
    return this.openPerson(
      login,
      async () => {
        const identity = await header.identityOf(login);
        if (identity === null) throw loginRejected();
        return (tx): PersonLogin => {
          const person = people.logInByHeader(tx, { ...identity, currentRef: this.currentRef(login) }, login);
          return { person, method: "header", proof: { type: "header", email: identity.email } };
        };
      },
      "header",
    );
  }

  /** @throws ApiError as {@link openByHeader} */
  private openByEmail(link: string, login: LoginRequest): Promise<OpenedSession> {
    const { people, sessions, emailLinks } = this.deps;
    return this.openPerson(
      login,
      async () =>
        (tx): PersonLogin => {
          const { value } = sessions.emailCookie(login);
          const browserHash = value === null ? null : keyDigest(value);
          const email = emailLinks ? people.useEmailLink(tx, link, browserHash) : null;
          if (email === null) throw loginRejected();
          const proven = { email, name: null, groups: null, currentRef: this.currentRef(login) };
          const person = people.logInByEmail(tx, proven, login);
          return { person, method: "email", proof: { type: "email", email } };
        },
      "email",
    );
  }

  private assertPeopleLogIn(): void {
    if (!this.deps.dashboard)
      throw new ApiError("not_found", "This server has no console: only keys log in, by POST /v1/session.");
  }

  private currentRef(login: LoginRequest): number | null {
    return this.deps.sessions.ofBrowser(login)?.personRef ?? null;
  }

  /** Counts a rejected login that opened no session. */
  recordRejected(login: LoginRequest): void {
    this.rejectedLogins.record(login);
  }

  /**
   * @throws ApiError `rate_limit_exceeded` for an address with too many logins of people, or too many rejected ones; `not_found`
   *   on a server without the console, where only keys log in.
   */
  assertPersonMayAttempt(clientAddress: string): void {
    this.assertPeopleLogIn();
    this.rejectedLogins.assertMayAttempt(clientAddress);
    this.logins.assertPersonMayAttempt(clientAddress);
  }

  /** The sessions of a person, newest first. */
  ofPerson(personRef: number): readonly ListedSession[] {
    const now = this.deps.clock.now();
    return this.deps.store.ofPerson(personRef).filter(({ expires_at }) => expires_at > now);
  }

  /** Ends sessions of a person: one, or all but one. Returns their numbers. */
  endOfPerson(
    tx: Tx,
    personRef: number,
    which: { readonly only?: number; readonly except?: number },
  ): number[] {
    const { only, except } = which;
    const ended = this.deps.store
      .ofPerson(personRef)
      .filter(({ id }) => id !== except && (only === undefined || id === only));
    for (const { id, token_hash } of ended) this.deps.sessions.end(tx, id, token_hash);
    return ended.map(({ id }) => id);
  }

  /**
   * Opens a session in another account that the login of the current session has proven too.
   * @throws ApiError `not_found` for any other account.
   */
  switchAccount(userId: string, login: LoginRequest): Promise<OpenedSession> {
    const { sessions, people } = this.deps;
    const current = sessions.authenticateSession(login);
    const proof = current?.person === undefined ? null : sessions.proofOf(login);
    return this.openPerson(login, async () => (): PersonLogin => {
      const person =
        proof && people.provenBy(proof).find(({ accountRef }) => this.userIdOf(accountRef) === userId);
      const method = current?.person?.method;
      if (!person || method === undefined)
        throw new ApiError("not_found", "This login opens no account with this user_id.");
      const { authenticatedAt = 0 } = current?.person ?? {};
      // It is no login: otherwise a session could be continued forever without one.
      return { person, method, proof, authenticatedAt, endsAt: current?.session?.endsAt ?? 0 };
    });
  }

  /** Ways to log in, in the order in which the login page offers them. */
  offeredMethods({ isFromProxy = false }: PageRequest): readonly OfferedMethod[] {
    const { dashboard, people, header, mails } = this.deps;
    const key: OfferedMethod = { type: "key" };
    if (!dashboard) return [key];
    return [
      ...people.offeredMethods(),
      ...(header.isOn && isFromProxy ? [{ type: "header" } as const] : []),
      ...(mails.available ? [{ type: "email" } as const] : []),
      key,
    ];
  }

  private async opening(
    login: LoginRequest,
    { token, method }: { readonly token: string; readonly method: LoginMethod },
    prove: () => Promise<(tx: Tx) => Caller>,
  ): Promise<OpenedSession> {
    try {
      const open = await prove();
      const caller = await this.deps.writer.submit(open);
      this.counts[caller.person?.method ?? method].accepted.add();
      const name = this.deps.sessions.cookieName(login);
      const now = this.deps.clock.now();
      const endsAt = caller.session?.endsAt ?? now + SESSION_MS;
      const cookie = setCookie(name, token, Math.ceil((endsAt - now) / 1000));
      return { session: this.viewOf(caller, endsAt), cookie };
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
        this.counts[method].rejected.add();
        this.rejectedLogins.record(login);
        if (error instanceof RejectedLogin && error.person !== null)
          this.recordRejectedPerson(error.person, method, login);
      }
      throw error;
    }
  }

  private recordRejectedPerson(
    { accountRef, ...person }: RejectedPerson,
    method: LoginMethod,
    login: LoginRequest,
  ): void {
    const account = { ref: accountRef, userId: this.userIdOf(accountRef) };
    this.rejectedLogins.recordPerson(login, account, { ...person, method });
  }

  private openForPerson(
    tx: Tx,
    {
      person,
      method,
      proof = null,
      authenticatedAt = tx.now,
      session,
      endsAt = tx.now + SESSION_MS,
    }: PersonLogin,
    token: string,
    login: LoginRequest,
  ): Caller {
    const { store, sessions, people, accounts } = this.deps;
    const { suspended, deleted } = accounts.account(person.accountRef);
    const about = { id: person.id, email: person.email, accountRef: person.accountRef };
    if (deleted) throw loginRejected();
    if (suspended) throw loginRejected({ ...about, reason: "the account is suspended" });
    if (!person.isActive) throw loginRejected({ ...about, reason: "the person is not active" });
    this.logins.countPerson(tx, login.clientAddress, person.id);
    people.recordSeen(tx, person.ref);
    const token_hash = keyDigest(token);
    const current = session === "new" ? null : sessions.ofBrowser(login);
    const isSame = current !== null && current.personRef === person.ref;
    if (session === "same" && !isSame) throw loginRejected({ ...about, reason: "another session" });
    if (isSame) {
      const renewed = { method, proof, authenticatedAt, endsAt };
      sessions.renew(tx, current, { from: login, hashOfToken: token_hash, ...renewed });
      const caller = this.personCaller(current, person, login);
      this.recordLogin(tx, "session.step_up", caller, endsAt, login);
      return caller;
    }
    sessions.endPrevious(tx, login);
    const row = {
      account_ref: person.accountRef,
      key_digest: null,
      person_ref: person.ref,
      method,
      proof: proof && JSON.stringify(proof),
      authenticated_at: authenticatedAt,
      expires_at: endsAt,
    };
    const opened = this.insertRow(tx, token_hash, row, login);
    for (const old of store.exceptNewestOfPerson(person.ref, SESSIONS_PER_PERSON_MAX))
      sessions.end(tx, old.id, old.token_hash);
    const caller = this.personCaller(
      { id: opened, method, authenticatedAt, endsAt, isEnded: false },
      person,
      login,
    );
    this.recordLogin(tx, "session.create", caller, endsAt, login);
    return caller;
  }

  private personCaller(
    session: Pick<ActiveSession, "id" | "method" | "authenticatedAt" | "endsAt" | "isEnded">,
    person: SessionPerson,
    { request }: LoginRequest,
  ): PersonCaller {
    return new PersonCaller(session, person, request, this.deps);
  }

  /** The session of a browser; null if it has no valid one. @throws ApiError `forbidden`, `not_found` */
  current(from: PageRequest): Session | null {
    this.deps.sessions.assertSameOrigin(from);
    const caller = this.deps.sessions.authenticateSession(from);
    if (caller === null || caller.session === undefined || caller.account.suspended) return null;
    return this.viewOf(caller, caller.session.endsAt);
  }

  /** Ends the caller's session. Returns the header that deletes the cookie. @throws ApiError `forbidden` */
  end(tx: Tx, caller: Caller, from: PageRequest): string {
    const { sessions } = this.deps;
    const token = sessions.tokenOf(from);
    if (caller.session === undefined || token === null) {
      throw new ApiError(
        "forbidden",
        "Only a browser session can be ended. This request was sent with a key.",
      );
    }
    sessions.end(tx, caller.session.id, keyDigest(token));
    tx.audit({ ...aboutSession(caller.session.id, "ended"), before: {}, after: null });
    return setCookie(sessions.cookieName(from), "", 0);
  }

  /** Ends all sessions of the caller's account. Returns their number. */
  endAll(tx: Tx, { account }: Caller): number {
    const removed = this.deps.store.exceptNewest(account.ref, 0);
    for (const { id, token_hash } of removed) this.deps.sessions.end(tx, id, token_hash);
    const target = { type: "account", id: account.userId };
    const summary = `All sessions of the account ended: ${removed.length}`;
    tx.audit(changed({ summary, target, before: { sessions: removed.length }, after: { sessions: 0 } }));
    return removed.length;
  }

  /** Creates a link that opens one session of a key, or of a person by its reference. */
  createLink(tx: Tx, owner: Uint8Array | number, minutes: number, baseUrl: string): LoginLink {
    const expiresAt = tx.now + minutes * MINUTE_MS;
    const isPerson = typeof owner === "number";
    const token = isPerson ? this.deps.people.createLoginLink(tx, owner, expiresAt) : this.newToken();
    const hashed = keyDigest(token);
    if (!isPerson) this.deps.store.insertLink(tx, hashed, owner, expiresAt);
    tx.audit({
      summary: `Login link created, valid for ${minutes} minutes`,
      target: { type: "login_link", id: shortName(hashed) },
      before: null,
      after: { expires_at: isoTime(expiresAt) },
    });
    return { url: `${baseUrl}/dashboard/#/setup/${token}`, expires_at: isoTime(expiresAt) };
  }

  private newToken(): string {
    return Buffer.from(this.deps.ids.bytes(TOKEN_BYTES)).toString("base64url");
  }

  /** @throws ApiError `unauthorized`, with the same message for every reason. */
  private consumeLink(tx: Tx, link: string): Uint8Array {
    const hashed = keyDigest(link);
    const row = this.deps.store.link(hashed);
    if (row === null || row.expires_at <= tx.now) {
      throw new ApiError("unauthorized", "This login link has been used or has expired. Create a new one.");
    }
    this.deps.store.removeLink(tx, hashed);
    return row.key_digest;
  }

  /** @throws ApiError `unauthorized`, `forbidden` */
  private callerOf(digest: Uint8Array, { requestOrigin }: LoginRequest): Caller {
    const caller = this.deps.keys.authenticate(Buffer.from(digest).toString("hex"));
    if (caller === null) throw new ApiError("unauthorized", UNKNOWN_KEY);
    assertStillValid(caller);
    assertAllowedFrom(caller, requestOrigin.ip ?? "");
    if (!this.deps.sessions.mayLogInByKey(caller)) throw new ApiError("forbidden", KEYS_OF_OPERATOR);
    return caller;
  }

  private insert(tx: Tx, caller: Caller, key_digest: Uint8Array, token: string, login: LoginRequest): Caller {
    const { store, sessions } = this.deps;
    const { ref: account_ref } = caller.account;
    const row = {
      account_ref,
      key_digest,
      person_ref: null,
      method: "key",
      proof: null,
      authenticated_at: tx.now,
      expires_at: tx.now + SESSION_MS,
    } as const;
    const id = this.insertRow(tx, keyDigest(token), row, login);
    for (const old of store.exceptNewestOfKeys(account_ref, SESSIONS_PER_ACCOUNT_MAX)) {
      sessions.end(tx, old.id, old.token_hash);
    }
    this.recordLogin(tx, "session.create", caller, tx.now + SESSION_MS, login, id);
    return caller;
  }

  /** Stores a session. Returns its number. */
  private insertRow(
    tx: Tx,
    token_hash: Uint8Array,
    row: Pick<
      Parameters<SessionStore["insert"]>[1],
      "account_ref" | "key_digest" | "person_ref" | "method" | "proof" | "authenticated_at" | "expires_at"
    >,
    { requestOrigin }: LoginRequest,
  ): number {
    const { store } = this.deps;
    const { ip } = requestOrigin;
    const user_agent = cutText(requestOrigin.userAgent, USER_AGENT_LENGTH_MAX);
    store.insert(tx, { token_hash, now: tx.now, ip, user_agent, ...row });
    return store.withToken(token_hash)?.id ?? 0;
  }

  private recordLogin(
    tx: Tx,
    action: "session.create" | "session.step_up",
    caller: Caller,
    endsAt: number,
    { requestOrigin, requestId }: LoginRequest,
    id = caller.session?.id ?? 0,
  ): void {
    const whose = caller.person?.email ?? caller.account.userId;
    const done = action === "session.create" ? "opened" : "confirmed by another login";
    const method = caller.person === undefined ? {} : { method: caller.person.method };
    const after = { expires_at: isoTime(endsAt), ...method };
    const about = aboutSession(id, `of ${whose} ${done}`);
    this.deps.trail.recordLogin(
      tx,
      action,
      { caller, requestId, requestOrigin },
      { ...about, before: null, after },
    );
  }

  private userIdOf(accountRef: number): string {
    return this.deps.accounts.account(accountRef).userId;
  }

  private viewOf(caller: Caller, endsAt: number): Session {
    const { account, scopes, project, projectBound, person } = caller;
    const { accounts, keyOf } = this.deps;
    const key = keyOf(caller.session?.credential ?? caller.credential);
    return {
      user_id: account.userId,
      email: accounts.account(account.ref).email,
      tier: account.tier,
      operator: isOperator(caller),
      key_id: key?.id ?? null,
      key_name: key?.name ?? null,
      scopes: [...scopes],
      project_id: projectBound && person === undefined ? project.id : null,
      expires_at: isoTime(Math.min(endsAt, caller.endsAt ?? endsAt)),
      version,
      ...(person === undefined ? {} : this.personView(caller, person)),
    };
  }

  /** The fields of a session that only people have. */
  private personView({ session, account }: Caller, person: CallerPerson) {
    const { idOf } = this.deps;
    const { id, email, name, method, authenticatedAt, projects } = person;
    const roles = [...(projects ?? [])].flatMap(([ref, role]) => {
      const project_id = this.deps.isDeleted(ref) ? null : idOf(ref);
      return project_id === null ? [] : [{ project_id, role }];
    });
    return {
      session_id: session?.id ?? 0,
      method,
      authenticated_at: isoTime(authenticatedAt),
      person: {
        person_id: id,
        email,
        name,
        role: projects === null ? person.role : null,
        projects: projects === null ? ("all" as const) : roles,
      },
      accounts: this.accountsOf(session?.id ?? 0, account.userId),
    };
  }

  /** The other accounts that the login of a session opens, for which it has proven the identity or address. */
  private accountsOf(sessionId: number, current: string): { user_id: string; email: string }[] {
    const { store, people, accounts } = this.deps;
    const proof = store.withId(sessionId)?.proof ?? null;
    const proven = proof === null ? [] : people.provenBy(JSON.parse(proof) as LoginProof);
    const others = proven
      .map(({ accountRef }) => accounts.account(accountRef))
      .filter(({ userId, suspended, deleted }) => userId !== current && !suspended && !deleted)
      .map(({ userId, email }) => ({ user_id: userId, email }));
    return others;
  }
}

const UNKNOWN_KEY =
  "This key is unknown, revoked or expired, or it is not a key of this API. Use a valid key.";

const KEYS_OF_OPERATOR =
  "On this server only the operator logs in with an API key. Log in as a person, such as by a passkey.";

/** @throws ApiError `unauthorized` for a text that does not have the form of a key of this API. */
function digestOfKey(key: string): Uint8Array {
  if (!isBearerKey(key)) throw new ApiError("unauthorized", UNKNOWN_KEY);
  return keyDigest(key);
}

function aboutSession(id: number, what: string) {
  return { summary: `Session ${what}`, target: { type: "session", id: String(id) } };
}

/** The start of a hash, long enough to distinguish links. */
function shortName(hashed: Uint8Array): string {
  return Buffer.from(hashed.subarray(0, 6)).toString("hex");
}
