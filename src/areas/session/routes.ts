import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { EXAMPLE_KEY } from "../../kernel/http/document/openapi-security.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { EMAIL_LINK_MS, LINK_MINUTES } from "./domain.ts";
import type { EmailLinks } from "./email-links.ts";
import {
  CurrentSession,
  EmailLinkBody,
  EmailLinkRequested,
  LoginLink,
  LoginLinkBody,
  Session,
  SessionAccountBody,
  SessionBody,
  SessionsEnded,
} from "./schema.ts";
import type { SessionService } from "./service.ts";
import type { Sessions } from "./sessions.ts";

const TAGS = { tags: ["Sessions"] };

/** Declares the browser sessions and the links that open them. */
export function sessionRoutes(
  api: Api,
  {
    service,
    sessions,
    mails,
  }: {
    readonly service: SessionService;
    readonly sessions: Sessions;
    readonly mails: EmailLinks;
  },
) {
  return [
    openRoutes(api, service, sessions),
    emailRoute(api, mails, service, sessions),
    endRoutes(api, service, sessions),
    linkRoute(api, service),
  ];
}

function openRoutes(api: Api, service: SessionService, sessions: Sessions) {
  return new Elysia(TAGS)
    .post(
      "/v1/session",
      api.open(
        {
          name: "session.create",
          audit: "failure",
          secret: true,
          fromOwnPage: true,
          summary: "Log a browser in",
          description:
            "Exchanges a key or a login link for an HttpOnly cookie, or what a trusted proxy says of its client. The session has the permissions of the key, and expires with it, or those of the person. Only for pages of this server, with the header `X-Ninefold-Session: 1`. At most 10 logins a minute per client address and per account, and 10 rejected attempts in 10 minutes per client address.",
          errors: ["unauthorized", "forbidden", "not_found", "rate_limit_exceeded", "service_unavailable"],
          example: { key: EXAMPLE_KEY },
          admit: (clientAddress: string) => service.assertMayAttempt(clientAddress),
          body: SessionBody,
          response: { 201: Session },
        },
        async ({ call, body }) => {
          const { request, origin, isFromProxy, requestId, requestOrigin, clientAddress } = call;
          sessions.assertSameOrigin(call);
          const opened = await service.open(body, {
            request,
            origin,
            isFromProxy,
            requestId,
            requestOrigin,
            clientAddress,
          });
          return reply(201, opened.session, { "set-cookie": opened.cookie });
        },
      ),
    )
    .post(
      "/v1/session/account",
      api.open(
        {
          name: "session.switch",
          audit: "failure",
          secret: true,
          fromOwnPage: true,
          summary: "Switch to another account",
          description:
            "Opens a session in another account of `session.accounts`: the one in which the identity or address that this login has proven is that of an active person. Any other account is not found.",
          errors: ["unauthorized", "forbidden", "not_found", "rate_limit_exceeded", "service_unavailable"],
          example: { user_id: "usr_3vQ8Zk2mX7cB4nL9pS1t" },
          admit: (clientAddress: string) => service.assertPersonMayAttempt(clientAddress),
          body: SessionAccountBody,
          response: { 201: Session },
        },
        async ({ call, body }) => {
          const { request, origin, isFromProxy, requestId, requestOrigin, clientAddress } = call;
          sessions.assertSameOrigin(call);
          const login = { request, origin, isFromProxy, requestId, requestOrigin, clientAddress };
          const opened = await service.switchAccount(body.user_id, login);
          return reply(201, opened.session, { "set-cookie": opened.cookie });
        },
      ),
    )
    .get(
      "/v1/session",
      api.open(
        {
          name: "session.read",
          fromOwnPage: true,
          summary: "Get the browser's session",
          description:
            "`session` is null if the browser has none. `login` lists how a browser can log in. Only for pages of this server.",
          errors: ["forbidden", "not_found"],
          response: CurrentSession,
        },
        ({ call }) => ({
          session: service.current(call),
          login: { methods: [...service.offeredMethods(call)] },
        }),
      ),
    );
}

function emailRoute(api: Api, mails: EmailLinks, service: SessionService, sessions: Sessions) {
  return new Elysia(TAGS).post(
    "/v1/session/email",
    api.open(
      {
        name: "session.email.create",
        fromOwnPage: true,
        showsNothing: true,
        summary: "Send a login link by e-mail",
        description:
          "The response is the same whether or not anyone has the address. The link is valid for 15 minutes, once, and only in the browser that has requested it, which gets a cookie for that. At most 5 an hour for a network (429) and for an address (no mail is sent). Only if `login.email_links` is on.",
        errors: ["forbidden", "not_found", "rate_limit_exceeded"],
        example: { email: "ann@example.com" },
        admit: (clientAddress: string) => service.assertPersonMayAttempt(clientAddress),
        body: EmailLinkBody,
        response: { 202: EmailLinkRequested },
      },
      ({ call, body }) => {
        sessions.assertSameOrigin(call);
        const { clientAddress, linkUrl, receivedAt } = call;
        const { name, value } = sessions.emailCookie(call);
        const { email } = body;
        const cookie = mails.request({ email, clientAddress, cookieName: name, cookie: value, linkUrl });
        const expires_at = isoTime(receivedAt + EMAIL_LINK_MS);
        return reply(202, { expires_at }, { "set-cookie": cookie });
      },
    ),
  );
}

function endRoutes(api: Api, service: SessionService, sessions: Sessions) {
  return new Elysia(TAGS)
    .delete(
      "/v1/session",
      api.endpoint(
        {
          name: "session.end",
          fromOwnPage: true,
          access: "any",
          anyProject: true,
          audit: "yes",
          idempotent: false,
          summary: "Log a browser out",
          description: "Deletes the cookie and the browser's cache of this server.",
          response: { 204: Type.Object({}) },
        },
        ({ call }) => {
          sessions.assertSameOrigin(call);
          return call.perform((tx) => {
            const cookie = service.end(tx, call.caller, call);
            return reply(204, {}, { "set-cookie": cookie, "clear-site-data": '"cache"' });
          });
        },
      ),
    )
    .delete(
      "/v1/sessions",
      api.endpoint(
        {
          name: "sessions.end",
          access: "*",
          accountOnly: true,
          audit: "yes",
          summary: "End all browser sessions of the account",
          description:
            "For a suspected theft: logs everyone out of the console, the caller's own session and people included. Keys continue to work; to revoke a leaked platform key, rotate it.",
          response: SessionsEnded,
        },
        ({ call }) => call.perform((tx) => ({ ended: service.endAll(tx, call.caller) })),
      ),
    );
}

function linkRoute(api: Api, service: SessionService) {
  return new Elysia({ tags: ["Operator"] }).post(
    "/v1/admin/login-links",
    api.endpoint(
      {
        name: "admin.login_links.create",
        access: "operator",
        stepUp: true,
        audit: "yes",
        secret: true,
        summary: "Create a login link",
        description: "The link opens one session of the calling key or person, once.",
        example: { minutes: 10 },
        body: LoginLinkBody,
        response: { 201: LoginLink },
      },
      ({ call, body: { minutes = LINK_MINUTES } }) => {
        const { keyDigest, caller } = call;
        const owner = keyDigest === null ? (caller.person?.ref ?? 0) : Buffer.from(keyDigest, "hex");
        return call.perform((tx) => reply(201, service.createLink(tx, owner, minutes, call.baseUrl)));
      },
    ),
  );
}
