import type { TObject } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import type { OpenCall } from "../../kernel/http/requests/call.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import type { PersonLogins } from "./logins.ts";
import type { Passkeys } from "./passkeys.ts";
import type { LoginRequest, Opened, PeopleSessions } from "./ports.ts";
import {
  InvitationAcceptBody,
  InvitationBody,
  InvitationView,
  PasskeyLoginBody,
  PasskeyOptions,
} from "./schema.ts";

/** What the logins of people are built on. */
export interface LoginRoutesDeps {
  readonly logins: PersonLogins;
  readonly passkeys: Passkeys;
  readonly sessions: PeopleSessions;
  /** The schema of a session. */
  readonly schema: TObject;
}

const ERRORS = [
  "unauthorized",
  "forbidden",
  "not_found",
  "rate_limit_exceeded",
  "service_unavailable",
] as const;

/** Declares the logins by passkey and by invitation. */
export function loginRoutes(api: Api, { logins, passkeys, sessions, schema }: LoginRoutesDeps) {
  const admit = (clientAddress: string) => sessions.assertPersonMayAttempt(clientAddress);
  const login = (call: OpenCall): LoginRequest => {
    const { request, origin, requestId, requestOrigin, clientAddress } = call;
    sessions.assertSameOrigin(call);
    return { request, origin, requestId, requestOrigin, clientAddress };
  };
  const opened = ({ session, cookie }: Opened) => reply(201, { ...session }, { "set-cookie": cookie });
  const open = { audit: "failure", secret: true, fromOwnPage: true, admit } as const;
  return new Elysia({ prefix: "/v1/session", tags: ["Sessions"] })
    .post(
      "/passkey/options",
      api.open(
        {
          name: "session.passkey.options",
          fromOwnPage: true,
          admit,
          summary: "Get the options of a login by passkey",
          description: "For `navigator.credentials.get`. Valid for 5 minutes, once.",
          errors: ["forbidden", "not_found", "invalid_request", "rate_limit_exceeded"],
          response: PasskeyOptions,
        },
        ({ call }) => {
          sessions.assertSameOrigin(call);
          return { options: { ...passkeys.loginOptions(call.origin) } };
        },
      ),
    )
    .post(
      "/passkey",
      api.open(
        {
          ...open,
          name: "session.passkey.create",
          summary: "Log a browser in by passkey",
          description:
            "In a session of the same person it is a step-up: the session continues with a new cookie. Every rejection is the same 401. At most 10 logins a minute for a person.",
          errors: [...ERRORS, "invalid_request"],
          body: PasskeyLoginBody,
          response: { 201: schema },
        },
        async ({ call, body }) => opened(await logins.byPasskey(body.credential, login(call))),
      ),
    )
    .post(
      "/invitation",
      api.open(
        {
          name: "session.invitation.read",
          secret: true,
          fromOwnPage: true,
          admit,
          summary: "Get an invitation",
          description:
            "With the options of the passkey that accepts it. It is not used up. An invitation that is unknown, used, replaced or expired is the same 401.",
          errors: ERRORS,
          example: { token: "9rT4mX7cB4nL9pS1t3vQ8sK2mX7cB4nL9pS1t3vQ8sK" },
          body: InvitationBody,
          response: InvitationView,
        },
        ({ call, body }) => logins.invitation(body.token, login(call)),
      ),
    )
    .post(
      "/invitation/accept",
      api.open(
        {
          ...open,
          name: "session.invitation.accept",
          summary: "Accept an invitation",
          description:
            "Stores the passkey and logs the browser in. For an active person, it also removes all other passkeys and ends all other sessions.",
          errors: [...ERRORS, "invalid_request", "conflict"],
          body: InvitationAcceptBody,
          response: { 201: schema },
        },
        async ({ call, body: { token, credential, name } }) =>
          opened(await logins.acceptByPasskey(token, credential, name, login(call))),
      ),
    );
}
