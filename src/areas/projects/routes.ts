import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import {
  overviewSchema,
  Project,
  ProjectCreateBody,
  ProjectDeleted,
  ProjectPage,
  ProjectParams,
  ProjectUpdateBody,
} from "./schema.ts";
import type { ProjectService } from "./service.ts";

/** Default number of projects per page. */
const PROJECTS_LIMIT = 10;

/** Declares the endpoints of projects. `kinds`: the resources that overviews count. */
export function projectRoutes(api: Api, projects: ProjectService, kinds: readonly string[]) {
  return [createAndReadRoutes(api, projects, kinds), updateAndDeleteRoutes(api, projects)];
}

function createAndReadRoutes(api: Api, projects: ProjectService, kinds: readonly string[]) {
  return new Elysia({ prefix: "/v1/projects", tags: ["Projects"] })
    .post(
      "",
      api.endpoint(
        {
          name: "projects.create",
          role: "admin",
          audit: "yes",
          access: "projects:write",
          accountOnly: true,
          changesProject: false,
          summary: "Create a project",
          description:
            "The slug is derived from the name; if it is taken, a number is appended. Not for keys of one project.",
          errors: ["project_limit_exceeded"],
          example: { name: "Shop", description: "Everything about the shop" },
          body: ProjectCreateBody,
          response: { 201: Project },
        },
        ({ call, body }) => call.perform((tx) => reply(201, projects.create(tx, call.caller, body))),
      ),
    )
    .get(
      "",
      api.endpoint(
        {
          name: "projects.list",
          anyProject: true,
          access: "projects:read",
          summary: "List projects, newest first",
          description: "A key of one project lists only that project.",
          query: pageQuery(PROJECTS_LIMIT),
          response: ProjectPage,
        },
        ({ call, query }) => projects.list(call.caller, query.limit ?? PROJECTS_LIMIT, query.cursor),
      ),
    )
    .get(
      "/:id",
      api.endpoint(
        {
          name: "projects.get",
          access: "projects:read",
          summary: "Get a project",
          description:
            "A key of one project sees only that project; every other id is 404, as is a deleted project.",
          errors: ["not_found"],
          params: ProjectParams,
          response: Project,
        },
        ({ call, params }) => projects.get(call.caller, params.id),
      ),
    )
    .get(
      "/:id/overview",
      api.endpoint(
        {
          name: "projects.overview",
          access: "projects:read",
          summary: "Get the number of resources in a project",
          description: "The numbers are at most five minutes old.",
          errors: ["not_found"],
          params: ProjectParams,
          response: overviewSchema(kinds),
        },
        ({ call, params }) => projects.overview(call.caller, params.id),
      ),
    );
}

function updateAndDeleteRoutes(api: Api, projects: ProjectService) {
  return new Elysia({ prefix: "/v1/projects", tags: ["Projects"] })
    .patch(
      "/:id",
      api.endpoint(
        {
          name: "projects.update",
          audit: "yes",
          access: "projects:write",
          changesProject: false,
          summary: "Update the name, description, time zone or review of a project",
          description:
            "Omitted fields keep their value; `null` clears the description. The slug never changes.",
          errors: ["not_found"],
          example: { name: "Shop, new", description: null },
          params: ProjectParams,
          body: ProjectUpdateBody,
          response: Project,
        },
        ({ call, params, body }) => call.perform((tx) => projects.update(tx, call.caller, params.id, body)),
      ),
    )
    .delete(
      "/:id",
      api.endpoint(
        {
          name: "projects.delete",
          role: "admin",
          stepUp: true,
          audit: "yes",
          access: "projects:write",
          changesProject: false,
          summary: "Delete a project and everything in it",
          description:
            "Applies immediately, including to the project's keys. The data is removed in the background and cannot be restored. The default project can be deleted only if there is another one, which becomes the default; a key of the account needs the scope `*` for this.",
          errors: ["not_found"],
          params: ProjectParams,
          response: ProjectDeleted,
        },
        ({ call, params }) => call.perform((tx) => projects.delete(tx, call.caller, params.id)),
      ),
    );
}
