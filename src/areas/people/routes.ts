import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import {
  IdentityParams,
  Invitation,
  PeoplePage,
  PeopleQuery,
  Person,
  PersonCreateBody,
  PersonDeleted,
  PersonInvited,
  PersonParams,
  PersonPatchBody,
  PersonSessionsEnded,
  RevokeKeysQuery,
  Roles,
} from "./schema.ts";
import type { PeopleService } from "./service.ts";

const TAGS = { prefix: "/v1/people", tags: ["People"] };
const READ = { access: "people:read", accountOnly: true } as const;
const CHANGE = {
  access: "people:write",
  accountOnly: true,
  changesProject: false,
  audit: "yes",
  stepUp: true,
} as const;

/** Declares the endpoints that manage people. `roles`: the table of roles, once all operations are declared. */
export function peopleRoutes(api: Api, people: PeopleService, roles: () => Roles) {
  return [readRoutes(api, people, roles), changeRoutes(api, people), accessRoutes(api, people)];
}

function readRoutes(api: Api, people: PeopleService, roles: () => Roles) {
  return new Elysia(TAGS)
    .get(
      "",
      api.endpoint(
        {
          ...READ,
          name: "people.list",
          summary: "List people, newest first",
          description:
            "Disabled and invited people are included: `status` and `role` select. `POST /v1/people` invites.",
          query: PeopleQuery,
          response: PeoplePage,
        },
        ({ call, query }) => people.list(call.caller, query),
      ),
    )
    .get(
      "/roles",
      api.endpoint(
        {
          name: "people.roles",
          access: "any",
          anyProject: true,
          summary: "List roles and what each may do",
          description: "The least role of each operation, in the order of their names.",
          response: Roles,
        },
        () => roles(),
      ),
    )
    .get(
      "/:person_id",
      api.endpoint(
        {
          ...READ,
          name: "people.read",
          summary: "Get a person",
          description:
            "Also of people who are disabled or have not yet accepted their invitation (`status`). A deleted person is 404, although the audit log still names them.",
          errors: ["not_found"],
          params: PersonParams,
          response: Person,
        },
        ({ call, params }) => people.get(call.caller, params.person_id),
      ),
    );
}

function changeRoutes(api: Api, people: PeopleService) {
  return new Elysia(TAGS)
    .post(
      "",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.create",
          secret: true,
          summary: "Invite a person",
          description:
            "The invitation is sent by e-mail, or returned as `invitation_url` if the server sends none. At most 20 invitations a day for an account, and 3 for an address.",
          errors: ["conflict", "people_limit_exceeded", "rate_limit_exceeded"],
          example: { email: "ann@example.com", name: "Ann", role: "editor" },
          body: PersonCreateBody,
          response: { 201: PersonInvited },
        },
        ({ call, body }) =>
          call.perform((tx) => reply(201, people.invite(tx, call.caller, body, call.linkUrl))),
      ),
    )
    .patch(
      "/:person_id",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.update",
          summary: "Change a person",
          description:
            "A change takes effect with the next request of the person and ends their open streams. Nobody changes a person above them, or their own role. The last active owner stays one. Keys that the person has created continue to work, and a warning lists them, unless `revoke_keys` is true.",
          errors: ["not_found", "conflict"],
          example: { name: "Ann Smith", role: "editor" },
          params: PersonParams,
          query: RevokeKeysQuery,
          body: PersonPatchBody,
          response: Person,
        },
        ({ call, params, query, body }) =>
          call.perform((tx) => {
            const revokes = query.revoke_keys === "true";
            const { person, keys } = people.update(tx, call.caller, params.person_id, body, revokes);
            call.addWarnings(keyWarnings(keys));
            return person;
          }),
      ),
    )
    .delete(
      "/:person_id",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.delete",
          summary: "Delete a person",
          description:
            "Ends their sessions. Keys that they created continue to work, unless `revoke_keys` is true.",
          errors: ["not_found", "conflict"],
          params: PersonParams,
          query: RevokeKeysQuery,
          response: PersonDeleted,
        },
        ({ call, params, query }) =>
          call.perform((tx) =>
            people.delete(tx, call.caller, params.person_id, query.revoke_keys === "true"),
          ),
      ),
    );
}

/** Keys that a warning lists. */
const WARNED_KEYS_MAX = 20;

/** Keys keep what they may do when their creator's role changes. */
function keyWarnings(keys: readonly string[]): string[] {
  if (keys.length === 0) return [];
  const more = keys.length > WARNED_KEYS_MAX ? `, and ${keys.length - WARNED_KEYS_MAX} more` : "";
  const listed = keys.slice(0, WARNED_KEYS_MAX).join(", ");
  return [
    `Keys that this person has created continue to work with their scopes: ${listed}${more}. Revoke those that they should not have.`,
  ];
}

/** What logs a person in: invitations, identities and sessions. */
function accessRoutes(api: Api, people: PeopleService) {
  return new Elysia(TAGS)
    .post(
      "/:person_id/invitation",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.invitation.create",
          secret: true,
          summary: "Create a new invitation",
          description:
            "Replaces the previous one. For a person who has lost their passkey, too: its use removes their other passkeys and ends their sessions. The link of an active person is returned to owners only; others can have it sent by e-mail.",
          errors: ["not_found", "conflict", "rate_limit_exceeded"],
          params: PersonParams,
          response: { 201: Invitation },
        },
        ({ call, params }) =>
          call.perform((tx) =>
            reply(201, people.renewInvitation(tx, call.caller, params.person_id, call.linkUrl)),
          ),
      ),
    )
    .delete(
      "/:person_id/sessions",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.sessions.end",
          summary: "End all sessions of a person",
          description:
            "For a lost laptop or a stolen cookie: the person must log in again everywhere. Keys that they created continue to work, and their passkeys stay. 403 for a person with a higher role than yours.",
          errors: ["not_found"],
          params: PersonParams,
          response: PersonSessionsEnded,
        },
        ({ call, params }) => call.perform((tx) => people.endSessions(tx, call.caller, params.person_id)),
      ),
    )
    .delete(
      "/:person_id/identities/:identity_id",
      api.endpoint(
        {
          ...CHANGE,
          name: "people.identities.delete",
          summary: "Remove an identity of a person",
          description: "The next login with the person's address at that provider links another identity.",
          errors: ["not_found"],
          params: IdentityParams,
          response: Person,
        },
        ({ call, params }) =>
          call.perform((tx) => people.removeIdentity(tx, call.caller, params.person_id, params.identity_id)),
      ),
    );
}
