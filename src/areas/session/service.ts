import { version } from "../../../package.json" with { type: "json" };
import { changed } from "../../kernel/audit/change.ts";
import {
  type AuditedKey,
  type AuditTrail,
  cutText,
  type RequestOrigin,
  USER_AGENT_LENGTH_MAX,
} from "../../kernel/audit/trail.ts";
import { assertAllowedFrom, assertStillValid, type Caller, isOperator } from "../../kernel/callers/caller.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { PageRequest } from "../../kernel/http/access/peers.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { isBearerKey, keyDigest } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { MINUTE_MS } from "../../kernel/time/units.ts";
import { SESSION_MS, SESSIONS_PER_ACCOUNT_MAX, setCookie, TOKEN_BYTES } from "./domain.ts";
import { Logins } from "./logins.ts";
import { RejectedLogins, type RejectedRequest } from "./rejected-logins.ts";
import type { LoginLink, Session, SessionBody } from "./schema.ts";
import { type SessionDeps, type Sessions, tokenHash } from "./sessions.ts";
import type { SessionStore } from "./store.ts";

/** What the area needs of other areas. */
export interface SessionAreaDeps extends SessionDeps {
  readonly trail: AuditTrail;
  /** The clock of the login limits. */
  readonly limitClock: Pick<Clock, "monotonic">;
  readonly emailOf: (accountRef: number) => string;
  readonly keyOf: (credential: string) => AuditedKey | null;
}

interface SessionServiceDeps extends Pick<Kernel, "clock" | "ids" | "writer" | "log">, SessionAreaDeps {
  readonly store: SessionStore;
  readonly sessions: Sessions;
}

export type LoginRequest = RejectedRequest & PageRequest & { readonly requestOrigin: RequestOrigin };

/** A new session, with the header that sets its cookie. */
export interface OpenedSession {
  readonly session: Session;
  readonly cookie: string;
}

/** The use cases of browser sessions. */
export class SessionService {
  readonly rejectedLogins: RejectedLogins;
  private readonly logins: Logins;

  constructor(private readonly deps: SessionServiceDeps) {
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
    const { key, link } = body;
    if ((key === undefined) === (link === undefined)) {
      throw new ApiError("validation_error", "Send either key or link.", {
        fields: { key: ["or link is required, but not both"] },
      });
    }
    const token = this.newToken();
    try {
      const caller = await this.deps.writer.submit((tx) => {
        const digest = link === undefined ? digestOfKey(key ?? "") : this.consumeLink(tx, link);
        this.deps.sessions.endPrevious(tx, login);
        const found = this.callerOf(digest, login);
        this.logins.count(tx, login.clientAddress, found.account);
        return this.insert(tx, found, digest, token, login);
      });
      const name = this.deps.sessions.cookieName(login);
      const cookie = setCookie(name, token, SESSION_MS / 1000);
      return { session: this.viewOf(caller, this.deps.clock.now() + SESSION_MS), cookie };
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 403))
        this.rejectedLogins.record(login);
      throw error;
    }
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
    sessions.end(tx, caller.session.id, tokenHash(token));
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

  /** Creates a link that opens one session of a key. */
  createLink(tx: Tx, digest: Uint8Array, minutes: number, baseUrl: string): LoginLink {
    const token = this.newToken();
    const expiresAt = tx.now + minutes * MINUTE_MS;
    const hashed = tokenHash(token);
    this.deps.store.insertLink(tx, hashed, digest, expiresAt);
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
    const hashed = tokenHash(link);
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
    return caller;
  }

  private insert(
    tx: Tx,
    caller: Caller,
    key_digest: Uint8Array,
    token: string,
    { requestOrigin, requestId }: LoginRequest,
  ): Caller {
    const { store, sessions, trail } = this.deps;
    const { ref: account_ref, userId } = caller.account;
    const token_hash = tokenHash(token);
    const { ip } = requestOrigin;
    const user_agent = cutText(requestOrigin.userAgent, USER_AGENT_LENGTH_MAX);
    const expires_at = tx.now + SESSION_MS;
    store.insert(tx, { token_hash, account_ref, key_digest, now: tx.now, expires_at, ip, user_agent });
    for (const old of store.exceptNewest(account_ref, SESSIONS_PER_ACCOUNT_MAX)) {
      sessions.end(tx, old.id, old.token_hash);
    }
    const id = store.withToken(token_hash)?.id ?? 0;
    const after = { expires_at: isoTime(expires_at) };
    trail.recordLogin(
      tx,
      "session.create",
      { caller, requestId, requestOrigin },
      {
        ...aboutSession(id, `of ${userId} opened`),
        before: null,
        after,
      },
    );
    return caller;
  }

  private viewOf(caller: Caller, endsAt: number): Session {
    const { account, scopes, project, projectBound } = caller;
    const { emailOf, keyOf } = this.deps;
    const key = keyOf(caller.session?.credential ?? caller.credential);
    return {
      user_id: account.userId,
      email: emailOf(account.ref),
      tier: account.tier,
      operator: isOperator(caller),
      key_id: key?.id ?? null,
      key_name: key?.name ?? null,
      scopes: [...scopes],
      project_id: projectBound ? project.id : null,
      expires_at: isoTime(Math.min(endsAt, caller.endsAt ?? endsAt)),
      version,
    };
  }
}

const UNKNOWN_KEY =
  "This key is unknown, revoked or expired, or it is not a key of this API. Use a valid key.";

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
