import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Caller, CallerProject, CallerSession, LoginMethod } from "../../kernel/callers/caller.ts";
import { CallerOfKey } from "../../kernel/callers/caller-of-key.ts";
import { errorText } from "../../kernel/errors.ts";
import type { Authenticator, SessionAuthenticator } from "../../kernel/http/access/guard.ts";
import type { PageRequest } from "../../kernel/http/access/peers.ts";
import { chosenProject } from "../../kernel/http/access/project-choice.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { isUnlimited } from "../../kernel/limits/tiers.ts";
import { keyDigest } from "../../kernel/secrets/key-format.ts";
import { NOBODY, type Tx } from "../../kernel/storage/tx.ts";
import {
  assertSameOrigin,
  cookieNames,
  IDLE_MS,
  LAST_USE_WRITE_MS,
  readCookie,
  SESSIONS_IN_MEMORY_MAX,
  TOKEN_LENGTH,
} from "./domain.ts";
import { PersonCaller, type PersonCallerDeps } from "./person-caller.ts";
import type { LoginProof } from "./ports.ts";
import type { SessionRow, SessionStore } from "./store.ts";
import type { TrustedHeader } from "./trusted-header.ts";

/** What sessions need of other areas. */
export interface SessionDeps extends PersonCallerDeps {
  /** Finds the caller of a key by its digest. */
  readonly keys: Authenticator;
  /** Whose API keys log browsers in. */
  readonly keyLogins: "all" | "operator";
  /** The header of a trusted proxy that logs people in. */
  readonly header: Pick<TrustedHeader, "addressOf" | "identityOf" | "isOn">;
}

/**
 * A request of a browser. A page of another server has sent it here: then it has no cookie of the session, and
 * `sessionAtStart` is the hash of the token that the browser had when the login began.
 */
export type BrowserRequest = PageRequest & { readonly sessionAtStart?: Uint8Array | null };

/** A session in memory. A step-up changes how and when its person logged in. */
export interface ActiveSession extends Actor, Omit<CallerSession, "credential"> {
  readonly personRef: number | null;
  method: LoginMethod;
  proof: LoginProof | null;
  authenticatedAt: number;
  endsAt: number;
  usedAt: number;
  lastUseWrittenAt: number;
  isEnded: boolean;
}

/** The caller of a session: that of its key, in the project that the request selects. */
class SessionCaller extends CallerOfKey implements Caller {
  readonly credential: string;
  readonly session: CallerSession;

  constructor(
    private readonly active: ActiveSession,
    key: Caller,
    private readonly namedProject: CallerProject | null,
    private readonly isDeleted: (project: CallerProject) => boolean,
  ) {
    super(key);
    this.credential = `session:${active.id}`;
    const { id, digest, endsAt } = active;
    this.session = { id, digest, endsAt, credential: key.credential };
  }

  get project(): CallerProject {
    return this.namedProject ?? this.key.project;
  }

  get projectBound() {
    return this.key.projectBound;
  }

  get projectDeleted() {
    return this.key.projectDeleted || (this.namedProject !== null && this.isDeleted(this.namedProject));
  }

  override get revoked() {
    return this.active.isEnded || this.key.revoked;
  }
}

/** Authenticates browser sessions. Recently used ones are in memory. */
export class Sessions implements SessionAuthenticator {
  private readonly active = new ActorRegistry<string, ActiveSession>(SESSIONS_IN_MEMORY_MAX);
  /**
   * The sessions of requests that last for long: after a step-up the cookie that a stream was opened with is another one,
   * but the session is the same.
   */
  private readonly ofRequests = new WeakMap<Request, number>();
  private readonly names: { readonly plain: string; readonly secure: string };

  constructor(
    private readonly kernel: Pick<Kernel, "clock" | "writer" | "log">,
    private readonly store: SessionStore,
    private readonly deps: SessionDeps,
  ) {
    this.names = cookieNames(store.instanceId()?.value ?? "");
  }

  /** The cookie that binds login links to a browser: its name for a request's connection, and its value. */
  emailCookie(from: PageRequest): { readonly name: string; readonly value: string | null } {
    const name = `${this.cookieName(from)}_email`;
    return { name, value: readCookie(from.request.headers.get("cookie"), name) };
  }

  /** The name of the cookie for a request's connection. */
  cookieName({ origin }: PageRequest): string {
    return origin.startsWith("https:") ? this.names.secure : this.names.plain;
  }

  authenticateSession(from: PageRequest): Caller | null {
    const { request } = from;
    const token = this.tokenOf(from);
    if (token === null) return null;
    this.assertSameOrigin(from);
    const session = this.find(token) ?? this.renewed(request);
    if (session === undefined) return null;
    if (session.digest === null)
      return this.isVouchedFor(session, from) ? this.personOf(session, request) : null;
    const key = this.deps.keys.authenticate(session.digest);
    if (key === null || !this.mayLogInByKey(key)) return null;
    this.recordUse(session);
    const isDeleted = ({ id }: CallerProject) => this.deps.findProject(key.account.ref, id) === null;
    return new SessionCaller(session, key, this.projectOf(request, key), isDeleted);
  }

  /** @throws ApiError `forbidden` for a request that does not come from a page of this server. */
  assertSameOrigin({ request, origin }: PageRequest): void {
    assertSameOrigin(request.headers, origin);
  }

  /** Whether keys of this account log browsers in. */
  mayLogInByKey({ account }: Pick<Caller, "account">): boolean {
    return this.deps.keyLogins === "all" || isUnlimited(account.tier);
  }

  /** A session by the header of a proxy is accepted only in requests whose header has the same address. */
  private isVouchedFor({ method, proof }: ActiveSession, from: PageRequest): boolean {
    if (method !== "header") return true;
    const address = this.deps.header.addressOf(from);
    return proof?.type === "header" && address?.toLowerCase() === proof.email.toLowerCase();
  }

  /** Ends the sessions that the configuration does not permit any more. */
  async endForbidden(): Promise<void> {
    if (this.deps.keyLogins === "all") return;
    await this.kernel.writer.submit((tx) => {
      for (const { id, token_hash, account_ref } of this.store.ofKeys())
        if (!this.mayLogInByKey({ account: this.deps.accounts.account(account_ref) }))
          this.end(tx, id, token_hash);
    });
  }

  private personOf(session: ActiveSession, request: Request): Caller | null {
    const person = session.personRef === null ? null : this.deps.people.person(session.personRef);
    if (person === null || !person.isActive) return null;
    const caller = new PersonCaller(session, person, request, this.deps);
    if (caller.account.deleted) return null;
    this.ofRequests.set(request, session.id);
    this.recordUse(session);
    return caller;
  }

  /** The session of a request that was authenticated before, after a step-up has given it another cookie. */
  private renewed(request: Request): ActiveSession | undefined {
    const id = this.ofRequests.get(request);
    const row = id === undefined ? null : this.store.withId(id);
    return row === null ? undefined : this.unlessOver(activeSession(row));
  }

  /** The session of a browser, which a login of the same person can continue; null without one. */
  ofBrowser(from: BrowserRequest): ActiveSession | null {
    for (const hashOfToken of this.tokenHashesOf(from)) {
      const session = this.findHashed(hashOfToken);
      if (session !== undefined) return session;
    }
    return null;
  }

  /** The session with a token, by its hash; null without a valid one. */
  withTokenHash(hashOfToken: Uint8Array): ActiveSession | null {
    return this.findHashed(hashOfToken) ?? null;
  }

  /** Names of the cookie with logins in progress at providers. */
  get loginCookies(): { readonly plain: string; readonly secure: string } {
    return { plain: `${this.names.plain}_login`, secure: `${this.names.secure}_login` };
  }

  /** The hash of the token in a request's cookie; null without one. */
  tokenHashOf(from: PageRequest): Uint8Array | null {
    const token = this.tokenOf(from);
    return token?.length === TOKEN_LENGTH ? keyDigest(token) : null;
  }

  /** What the login of a request's session has proven; null for nothing beyond its person or key. */
  proofOf(from: PageRequest): LoginProof | null {
    return this.ofBrowser(from)?.proof ?? null;
  }

  /** Gives a session of a person another cookie, in the unit of work of another login of the same person. */
  renew(
    tx: Tx,
    session: ActiveSession,
    fields: { readonly from: BrowserRequest; readonly hashOfToken: Uint8Array } & RenewedSession,
  ): void {
    const { from, hashOfToken, ...renewed } = fields;
    const { id } = session;
    const { method, proof, endsAt } = renewed;
    this.store.renew(tx, {
      id,
      method,
      token_hash: hashOfToken,
      proof: proof && JSON.stringify(proof),
      now: renewed.authenticatedAt,
      expires_at: endsAt,
    });
    const before = { method: session.method, proof: session.proof, endsAt: session.endsAt };
    const { authenticatedAt } = session;
    Object.assign(session, renewed);
    tx.onRollback(() => Object.assign(session, before, { authenticatedAt }));
    const names = this.tokenHashesOf(from).map(nameOf);
    tx.afterCommit(() => {
      for (const name of names) this.active.drop(name);
    });
  }

  /** Ends a session in the unit of work that removes its row. */
  end(tx: Tx, id: number, hashOfToken: Uint8Array): void {
    this.store.remove(tx, id);
    const name = nameOf(hashOfToken);
    const session = this.active.peek(name);
    if (session !== undefined) {
      session.isEnded = true;
      tx.onRollback(() => {
        session.isEnded = false;
      });
    }
    tx.afterCommit(() => this.active.drop(name));
  }

  /**
   * The token in a request's cookie; null without one. Over HTTPS only the `__Host-` cookie is accepted: another host of
   * the same domain can set the other one.
   */
  tokenOf(from: PageRequest): string | null {
    return readCookie(from.request.headers.get("cookie"), this.cookieName(from));
  }

  /** Ends the previous session of a browser, in the unit of work that opens the new one. */
  endPrevious(tx: Tx, from: BrowserRequest): void {
    for (const hashOfToken of this.tokenHashesOf(from)) {
      const replaced = this.store.withToken(hashOfToken);
      if (replaced !== null) this.end(tx, replaced.id, hashOfToken);
    }
  }

  /** Of the session as the login began, and of the cookie that the request has now. */
  private tokenHashesOf(from: BrowserRequest): Uint8Array[] {
    const { sessionAtStart = null } = from;
    return [sessionAtStart, this.tokenHashOf(from)].filter((hashOfToken) => hashOfToken !== null);
  }

  private find(token: string): ActiveSession | undefined {
    return token.length === TOKEN_LENGTH ? this.findHashed(keyDigest(token)) : undefined;
  }

  private findHashed(hashOfToken: Uint8Array): ActiveSession | undefined {
    const session = this.active.get(nameOf(hashOfToken), () => {
      const row = this.store.withToken(hashOfToken);
      return row === null ? undefined : activeSession(row);
    });
    return session && this.unlessOver(session);
  }

  private unlessOver(session: ActiveSession): ActiveSession | undefined {
    const now = this.kernel.clock.now();
    const isOver = session.isEnded || now >= session.endsAt || now >= session.usedAt + IDLE_MS;
    return isOver ? undefined : session;
  }

  private projectOf(request: Request, key: Caller): CallerProject | null {
    return chosenProject(request, key, { find: this.deps.findProject });
  }

  private recordUse(session: ActiveSession): void {
    const { clock, writer, log } = this.kernel;
    const now = clock.now();
    session.usedAt = now;
    if (Math.abs(now - session.lastUseWrittenAt) < LAST_USE_WRITE_MS) return;
    session.lastUseWrittenAt = now;
    const written = writer.submit((tx) => {
      tx.affects = NOBODY;
      this.store.setLastUse(tx, now, session.id);
      if (session.personRef !== null) this.deps.people.recordSeen(tx, session.personRef);
    });
    // Not awaited: if the write fails, the session can expire earlier after a restart.
    written.catch((error) =>
      log.warn("the last use of a session could not be written", { error: errorText(error) }),
    );
  }
}

/** The name of a session in memory. */
function nameOf(hashOfToken: Uint8Array): string {
  return Buffer.from(hashOfToken).toString("hex");
}

/** What another login changes in a session. */
export interface RenewedSession {
  readonly method: LoginMethod;
  readonly proof: LoginProof | null;
  readonly authenticatedAt: number;
  readonly endsAt: number;
}

function activeSession(row: SessionRow): ActiveSession {
  const { id, key_digest, person_ref, method, proof, authenticated_at, seen_at, expires_at } = row;
  return {
    recent: false,
    idle: true,
    id,
    digest: key_digest && Buffer.from(key_digest).toString("hex"),
    personRef: person_ref,
    method,
    proof: proof === null ? null : (JSON.parse(proof) as LoginProof),
    authenticatedAt: authenticated_at,
    endsAt: expires_at,
    usedAt: seen_at,
    lastUseWrittenAt: seen_at,
    isEnded: false,
  };
}
