import type { SessionAuthenticator } from "../../kernel/http/access/guard.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import type { RemoveAccountRows } from "../../kernel/projects/resources.ts";
import { keyDigest } from "../../kernel/secrets/key-format.ts";
import { LINK_MINUTES, readCookie } from "./domain.ts";
import { EmailLinks } from "./email-links.ts";
import { sessionExport } from "./export.ts";
import { type FetchOfIssuer, HeaderTokens } from "./header-token.ts";
import { sessionRoutes } from "./routes.ts";
import { Session } from "./schema.ts";
import { type SessionAreaDeps, SessionService } from "./service.ts";
import { Sessions } from "./sessions.ts";
import { sessionStore } from "./store.ts";
import { type HeaderSettings, TrustedHeader } from "./trusted-header.ts";

export type { SessionPeople } from "./ports.ts";

/** What sessions provide to the server. */
export interface SessionArea extends ApiArea {
  readonly authenticator: SessionAuthenticator;
  /** Creates a login link for a key. Returns what follows the server's URL in it. */
  readonly createSetupLink: (key: string) => Promise<string>;
  readonly exported: AreaExport;
  /** The schema of a session. */
  readonly schema: typeof Session;
  /** Opens, lists and ends sessions of people. */
  readonly ofPeople: Pick<
    SessionService,
    "openPerson" | "assertPersonMayAttempt" | "recordRejected" | "ofPerson" | "endOfPerson"
  > &
    Pick<Sessions, "assertSameOrigin" | "tokenHashOf"> & {
      /** The person of a browser's session, by the hash of its token; null without one. */
      readonly personWithToken: (hashOfToken: Uint8Array) => number | null;
      /** The value of a cookie; null without it. */
      readonly readCookie: (header: string | null, name: string) => string | null;
      /** Names of the cookie with logins in progress at providers: over HTTP, and over HTTPS. */
      readonly loginCookies: { readonly plain: string; readonly secure: string };
    };
  /** Removes the sessions of a deleted account; its keys open none of them any more. */
  readonly removeRows: RemoveAccountRows;
  /** Ends the sessions that the configuration does not permit any more. */
  readonly start: () => Promise<void>;
  /** Writes what is only in memory. Call before the process exits. */
  readonly finish: () => Promise<void>;
}

/** What the area needs of other areas and of the configuration. */
export interface SessionsDeps extends Omit<SessionAreaDeps, "header"> {
  /** The header of a trusted proxy that logs people in; null for none. */
  readonly headerSettings: HeaderSettings | null;
  /** Fetches a document of the issuer of that header. */
  readonly fetchOfIssuer: FetchOfIssuer;
}

/** Sessions removed in one unit of work. */
const PURGE_SLICE_ROWS = 200;

/** Builds the area: browser sessions, which act for a key without storing it in the browser. */
export function createSessions(kernel: Kernel, deps: SessionsDeps): SessionArea {
  const store = sessionStore(kernel.db);
  const tokens = tokensOf(kernel, deps);
  const header = new TrustedHeader(deps.headerSettings, tokens, kernel.metrics);
  const sessions = new Sessions(kernel, store, { ...deps, header });
  const mails = new EmailLinks({ ...kernel, ...deps });
  const service = new SessionService({ ...kernel, ...deps, header, store, sessions, mails });
  kernel.housekeeping.addPurge({
    name: "sessions.purge",
    rowsMax: PURGE_SLICE_ROWS,
    remove: (tx, rowsMax) => {
      store.removeExpiredLinks(tx, tx.now);
      return store.removeExpired(tx, tx.now, rowsMax);
    },
  });
  return {
    authenticator: sessions,
    createSetupLink: async (key) =>
      (await kernel.writer.submit((tx) => service.createLink(tx, keyDigest(key), LINK_MINUTES, ""))).url,
    ofPeople: {
      openPerson: (login, prove, method) => service.openPerson(login, prove, method),
      recordRejected: (login) => service.recordRejected(login),
      assertPersonMayAttempt: (address) => service.assertPersonMayAttempt(address),
      ofPerson: (personRef) => service.ofPerson(personRef),
      endOfPerson: (tx, personRef, which) => service.endOfPerson(tx, personRef, which),
      assertSameOrigin: (from) => sessions.assertSameOrigin(from),
      tokenHashOf: (from) => sessions.tokenHashOf(from),
      personWithToken: (hashOfToken) => sessions.withTokenHash(hashOfToken)?.personRef ?? null,
      loginCookies: sessions.loginCookies,
      readCookie,
    },
    schema: Session,
    removeRows: store.removeOfAccount,
    exported: sessionExport,
    start: () => {
      tokens?.start();
      return sessions.endForbidden();
    },
    finish: () => service.rejectedLogins.finish(),
    parts: [
      {
        name: "Sessions",
        description: "Browser sessions: a cookie that acts for a key. Only for the pages of this server.",
      },
    ],
    routes: (api) => sessionRoutes(api, { service, sessions, mails }),
  };
}

/** The signed tokens of the header; null without any. */
function tokensOf(kernel: Kernel, { headerSettings, fetchOfIssuer }: SessionsDeps): HeaderTokens | null {
  const settings = headerSettings?.token ?? null;
  return settings && new HeaderTokens(settings, kernel, fetchOfIssuer);
}
