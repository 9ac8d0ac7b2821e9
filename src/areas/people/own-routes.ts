import type { RegistrationResponseJSON } from "@simplewebauthn/server";
import { Elysia } from "elysia";
import { changed } from "../../kernel/audit/change.ts";
import type { Caller, CallerPerson } from "../../kernel/callers/caller.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import type { Person as KnownPerson, PeopleDirectory } from "./directory.ts";
import { type Passkeys, passkeyView } from "./passkeys.ts";
import type { PeopleSessions, PersonSession } from "./ports.ts";
import {
  Me,
  MePatchBody,
  Passkey,
  PasskeyCreateBody,
  PasskeyDeleted,
  PasskeyList,
  PasskeyOptions,
  PasskeyParams,
  PasskeyPatchBody,
  Person,
  PersonSessions,
  PersonSessionsEnded,
  SessionParams,
} from "./schema.ts";
import { aboutPerson, type PeopleService } from "./service.ts";
import type { PasskeyRow } from "./store.ts";

const OWN = { access: "any", anyProject: true } as const;
const CHANGE = { ...OWN, audit: "yes" } as const;

/** What the endpoints of the caller's own profile are built on. */
export interface OwnRoutesDeps {
  readonly people: PeopleService;
  readonly passkeys: Passkeys;
  readonly directory: PeopleDirectory;
  readonly sessions: Pick<PeopleSessions, "ofPerson" | "endOfPerson">;
}

/** Declares the endpoints of the caller's own profile, sessions and passkeys. */
export function ownRoutes(api: Api, deps: OwnRoutesDeps) {
  return [
    profileRoutes(api, deps),
    sessionRoutes(api, deps),
    passkeyRoutes(api, deps),
    changeRoutes(api, deps),
  ];
}

function profileRoutes(api: Api, { people }: OwnRoutesDeps) {
  return new Elysia({ prefix: "/v1/people/me", tags: ["People"] })
    .get(
      "",
      api.endpoint(
        {
          ...OWN,
          name: "people.me.read",
          summary: "Get your own profile",
          description: "Only in the session of a person.",
          response: Me,
        },
        ({ call }) => {
          const { person, session } = call.caller;
          const view = people.view(people.callingPerson(call.caller));
          const authenticated_at = isoTime(person?.authenticatedAt ?? 0);
          return { ...view, session_id: session?.id ?? 0, authenticated_at };
        },
      ),
    )
    .patch(
      "",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.me.update",
          summary: "Change your own profile",
          description:
            "Only in the session of a person; a key gets 403. Only `name` can be changed: an admin changes the role, and nobody the e-mail address.",
          example: { name: "Ann" },
          body: MePatchBody,
          response: Person,
        },
        ({ call, body }) => call.perform((tx) => people.rename(tx, call.caller, body.name)),
      ),
    );
}

function sessionRoutes(api: Api, { sessions }: OwnRoutesDeps) {
  return new Elysia({ prefix: "/v1/people/me/sessions", tags: ["People"] })
    .get(
      "",
      api.endpoint(
        {
          ...OWN,
          name: "people.me.sessions.list",
          summary: "List your own sessions",
          description:
            "Only in the session of a person; a key gets 403. `current` marks the session of this request. A session ends after 7 days, or 24 hours after its last request.",
          response: PersonSessions,
        },
        ({ call }) => {
          const current = call.caller.session?.id;
          const list = sessions.ofPerson(ownPerson(call.caller).ref);
          return { sessions: list.map((session) => sessionView(session, current)) };
        },
      ),
    )
    .delete(
      "",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.me.sessions.end_others",
          summary: "End all of your sessions but this one",
          description:
            "For a browser that you forgot to log out of. Only in the session of a person; a key gets 403. `ended` is 0 if there was no other.",
          response: PersonSessionsEnded,
        },
        ({ call }) => {
          const person = ownPerson(call.caller);
          return call.perform((tx) => {
            const except = call.caller.session?.id;
            const ended = sessions.endOfPerson(tx, person.ref, except === undefined ? {} : { except }).length;
            const about = aboutPerson(person, "logged out of all other browsers");
            tx.audit(changed({ ...about, before: { sessions: ended }, after: { sessions: 0 } }));
            return { ended };
          });
        },
      ),
    )
    .delete(
      "/:session_id",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.me.sessions.end",
          summary: "End one of your sessions",
          description:
            "May also be the session of this request, which then is logged out. Only in the session of a person; a key gets 403.",
          errors: ["not_found"],
          params: SessionParams,
          response: PersonSessionsEnded,
        },
        ({ call, params }) => {
          const person = ownPerson(call.caller);
          return call.perform((tx) => {
            const ended = sessions.endOfPerson(tx, person.ref, { only: Number(params.session_id) });
            if (ended.length === 0) throw new ApiError("not_found", "You have no session with this number.");
            const about = aboutPerson(person, "logged out of a browser");
            tx.audit({ ...about, before: { session_id: Number(params.session_id) }, after: null });
            return { ended: ended.length };
          });
        },
      ),
    );
}

function passkeyRoutes(api: Api, { passkeys, directory }: OwnRoutesDeps) {
  return new Elysia({ prefix: "/v1/people/me/passkeys", tags: ["People"] })
    .get(
      "",
      api.endpoint(
        {
          ...OWN,
          name: "people.me.passkeys.list",
          summary: "List your own passkeys",
          description:
            "Only in the session of a person; a key gets 403. A passkey with `usable: false` belongs to an earlier host of the server, and cannot log you in.",
          response: PasskeyList,
        },
        ({ call }) => {
          const rows = directory.store.passkeysOf(ownPerson(call.caller).ref);
          return { passkeys: rows.map((row) => passkeyView(row, call.origin)) };
        },
      ),
    )
    .post(
      "/options",
      api.endpoint(
        {
          ...OWN,
          name: "people.me.passkeys.options",
          stepUp: true,
          idempotent: false,
          summary: "Get the options of a new passkey",
          description: "For `navigator.credentials.create`. Valid for 5 minutes, once.",
          errors: ["invalid_request"],
          response: PasskeyOptions,
        },
        ({ call }) => {
          const person = knownPerson(directory, call.caller);
          return { options: { ...passkeys.registrationOptions(person, call.origin) } };
        },
      ),
    )
    .post(
      "",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.me.passkeys.create",
          stepUp: true,
          idempotent: false,
          summary: "Add a passkey",
          description: "At most 20 for each person.",
          errors: ["invalid_request", "conflict"],
          body: PasskeyCreateBody,
          response: { 201: Passkey },
        },
        async ({ call, body }) => {
          const person = knownPerson(directory, call.caller);
          const credential = body.credential as RegistrationResponseJSON;
          const verified = await passkeys.verifyRegistration(person, credential, call.origin);
          return call.perform((tx) => {
            const row = passkeys.add(tx, person, verified, body.name);
            tx.audit({ ...aboutPasskey(person, row, "added"), before: null, after: { name: row.name } });
            return reply(201, passkeyView(row, call.origin));
          });
        },
      ),
    );
}

function changeRoutes(api: Api, { directory }: OwnRoutesDeps) {
  const find = (call: Call, id: string): PasskeyRow => {
    const passkeys = directory.store.passkeysOf(ownPerson(call.caller).ref);
    const row = passkeys.find((passkey) => passkey.id === id);
    if (row !== undefined) return row;
    throw new ApiError("not_found", "You have no passkey with this id.");
  };
  return new Elysia({ prefix: "/v1/people/me/passkeys", tags: ["People"] })
    .patch(
      "/:passkey_id",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.me.passkeys.update",
          summary: "Rename a passkey",
          description:
            "The name is for you only, to tell passkeys apart; your device or password manager does not learn it. Only in the session of a person; a key gets 403.",
          errors: ["not_found"],
          example: { name: "Phone" },
          params: PasskeyParams,
          body: PasskeyPatchBody,
          response: Passkey,
        },
        ({ call, params, body: { name } }) => {
          const person = ownPerson(call.caller);
          return call.perform((tx) => {
            const row = find(call, params.passkey_id);
            directory.store.renamePasskey(tx, name, row.ref);
            const about = aboutPasskey(person, row, "renamed");
            tx.audit(changed({ ...about, before: { name: row.name }, after: { name } }));
            return passkeyView({ ...row, name }, call.origin);
          });
        },
      ),
    )
    .delete(
      "/:passkey_id",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.me.passkeys.delete",
          stepUp: true,
          summary: "Remove a passkey",
          description:
            "It can no longer log you in; delete it on your device as well. The last one can be removed too: then you log in with an identity provider or a new invitation. Only in the session of a person.",
          errors: ["not_found"],
          params: PasskeyParams,
          response: PasskeyDeleted,
        },
        ({ call, params }) => {
          const person = ownPerson(call.caller);
          return call.perform((tx) => {
            const row = find(call, params.passkey_id);
            directory.store.removePasskey(tx, row.ref);
            directory.changed(tx, person.ref);
            tx.audit({ ...aboutPasskey(person, row, "removed"), before: { name: row.name }, after: null });
            return { deleted_at: isoTime(tx.now) };
          });
        },
      ),
    );
}

/** The person who calls. @throws ApiError `forbidden` with a key. */
function ownPerson({ person }: Caller): CallerPerson {
  if (person !== undefined) return person;
  throw new ApiError("forbidden", "Only people have a profile. This request was sent with a key.");
}

function knownPerson(directory: PeopleDirectory, caller: Caller): KnownPerson {
  const person = directory.person(ownPerson(caller).ref);
  if (person !== null) return person;
  throw new ApiError("unauthorized", "This person has been deleted.");
}

function aboutPasskey(person: Pick<CallerPerson, "id" | "email">, { id, name }: PasskeyRow, what: string) {
  const summary = `Passkey ${name} of ${person.email} ${what}`;
  return { summary, target: { type: "passkey", id } };
}

function sessionView(session: PersonSession, current: number | undefined) {
  return {
    session_id: session.id,
    current: session.id === current,
    method: session.method,
    created_at: isoTime(session.created_at),
    last_used_at: isoTime(session.seen_at),
    expires_at: isoTime(session.expires_at),
    ip: session.ip,
    user_agent: session.user_agent,
  };
}
