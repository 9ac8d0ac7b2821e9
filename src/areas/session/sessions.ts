import { hash } from "node:crypto";
import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Caller, CallerProject, CallerSession } from "../../kernel/callers/caller.ts";
import { CallerOfKey } from "../../kernel/callers/caller-of-key.ts";
import { errorText } from "../../kernel/errors.ts";
import type { Authenticator, SessionAuthenticator } from "../../kernel/http/access/guard.ts";
import type { PageRequest } from "../../kernel/http/access/peers.ts";
import { chosenProject } from "../../kernel/http/access/project-choice.ts";
import type { Kernel } from "../../kernel/kernel.ts";
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
import type { SessionRow, SessionStore } from "./store.ts";

/** What sessions need of other areas. */
export interface SessionDeps {
  /** Finds the caller of a key by its digest. */
  readonly keys: Authenticator;
  /** The account's project with this id; null when there is none. */
  readonly findProject: (accountRef: number, id: string) => CallerProject | null;
}

/** SHA-256 of a cookie's or link's token. */
export function tokenHash(token: string): Uint8Array {
  return hash("sha256", token, "buffer");
}

interface ActiveSession extends Actor, Omit<CallerSession, "credential"> {
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
  private readonly names: { readonly plain: string; readonly secure: string };

  constructor(
    private readonly kernel: Pick<Kernel, "clock" | "writer" | "log">,
    private readonly store: SessionStore,
    private readonly deps: SessionDeps,
  ) {
    this.names = cookieNames(store.instanceId()?.value ?? "");
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
    const session = token.length === TOKEN_LENGTH ? this.find(token) : undefined;
    if (session === undefined) return null;
    const key = this.deps.keys.authenticate(session.digest);
    if (key === null) return null;
    this.recordUse(session);
    const isDeleted = ({ id }: CallerProject) => this.deps.findProject(key.account.ref, id) === null;
    return new SessionCaller(session, key, this.projectOf(request, key), isDeleted);
  }

  /** @throws ApiError `forbidden` for a request that does not come from a page of this server. */
  assertSameOrigin({ request, origin }: PageRequest): void {
    assertSameOrigin(request.headers, origin);
  }

  /** Ends a session in the unit of work that removes its row. */
  end(tx: Tx, id: number, hashOfToken: Uint8Array): void {
    this.store.remove(tx, id);
    const name = Buffer.from(hashOfToken).toString("hex");
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
  endPrevious(tx: Tx, from: PageRequest): void {
    const token = this.tokenOf(from);
    const replaced = token === null ? null : this.store.withToken(tokenHash(token));
    if (token !== null && replaced !== null) this.end(tx, replaced.id, tokenHash(token));
  }

  private find(token: string): ActiveSession | undefined {
    const hashed = tokenHash(token);
    const session = this.active.get(Buffer.from(hashed).toString("hex"), () => {
      const row = this.store.withToken(hashed);
      return row === null ? undefined : activeSession(row);
    });
    const now = this.kernel.clock.now();
    const isEnded = session === undefined || session.isEnded;
    return isEnded || now >= session.endsAt || now >= session.usedAt + IDLE_MS ? undefined : session;
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
    });
    // Not awaited: if the write fails, the session can expire earlier after a restart.
    written.catch((error) =>
      log.warn("the last use of a session could not be written", { error: errorText(error) }),
    );
  }
}

function activeSession({ id, key_digest, seen_at, expires_at }: SessionRow): ActiveSession {
  return {
    recent: false,
    idle: true,
    id,
    digest: Buffer.from(key_digest).toString("hex"),
    endsAt: expires_at,
    usedAt: seen_at,
    lastUseWrittenAt: seen_at,
    isEnded: false,
  };
}
