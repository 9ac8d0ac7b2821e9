import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import type { FileFacts } from "../../../kernel/http/resource-facts.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import type { KeyRoles } from "./roles.ts";
import { KeyRole, KeyRoleBody, KeyRolePage, KeyRoleParams, KeyRoleQuery } from "./schema.ts";

const PATH = "/v1/keys/roles";

/** How roles stand in a configuration file. */
const ROLE_FILE: FileFacts = {
  section: "roles",
  name: "name",
  isPut: true,
  defaults: { description: null },
};

/** Routes of roles. */
export function roleRoutes(api: Api, roles: KeyRoles) {
  return new Elysia({ tags: ["Keys"] })
    .put(
      `${PATH}/:name`,
      api.endpoint(
        {
          name: "keys.roles.save",
          access: "keys:write",
          audit: "yes",
          summary: "Create or replace a role",
          description:
            "A role is a named set of permissions for the keys that you issue to your customers. Keys of the project, and in the default project also keys of the account, have it by its name in `roles`. A change applies from the next request of every key that has the role.",
          example: { description: "Writes documents.", permissions: ["documents.read", "documents.write"] },
          file: ROLE_FILE,
          errors: ["role_limit_exceeded"],
          params: KeyRoleParams,
          body: KeyRoleBody,
          response: { 201: KeyRole, 200: KeyRole },
        },
        ({ call, params, body }) => call.perform((tx) => roles.save(tx, call.caller, params.name, body)),
      ),
    )
    .get(
      PATH,
      api.endpoint(
        {
          name: "keys.roles.list",
          access: "keys:read",
          summary: "List roles, newest first",
          description:
            "Use it to see which permissions keys have by their roles. A page with long permissions may have fewer items than `limit`, and still a `cursor`.",
          query: KeyRoleQuery,
          response: KeyRolePage,
        },
        ({ call, query }) => roles.list(call.caller.project.ref, query),
      ),
    )
    .get(
      `${PATH}/:name`,
      api.endpoint(
        {
          name: "keys.roles.read",
          access: "keys:read",
          summary: "Get a role",
          description: "Shows the permissions of one role, such as before you change them.",
          errors: ["not_found"],
          params: KeyRoleParams,
          response: KeyRole,
        },
        ({ call, params }) => roles.read(call.caller.project.ref, params.name),
      ),
    )
    .delete(
      `${PATH}/:name`,
      api.endpoint(
        {
          name: "keys.roles.delete",
          access: "keys:write",
          audit: "yes",
          summary: "Delete a role",
          description:
            "Only a role that no key has; keys that are revoked or expired do not count. Remove it from the keys first.",
          errors: ["not_found", "role_in_use"],
          params: KeyRoleParams,
          response: { 204: Type.Object({}) },
        },
        ({ call, params }) =>
          call.perform((tx) => {
            roles.remove(tx, call.caller, params.name);
            return reply(204, {});
          }),
      ),
    );
}
