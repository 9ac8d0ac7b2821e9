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

/** Projects on a page unless asked otherwise. */
const PROJECTS_LIMIT = 10;

/** Declares the endpoints of projects; overviews count these kinds of resources. */
export function projectRoutes(api: Api, projects: ProjectService, kinds: readonly string[]) {
  return [collectionAndReads(api, projects, kinds), projectChangeRoutes(api, projects)];
}

function collectionAndReads(api: Api, projects: ProjectService, kinds: readonly string[]) {
  return new Elysia({ prefix: "/v1/projects", tags: ["Projects"] })
    .use(api)
    .post("", ({ call, body }) => call.perform((tx) => reply(201, projects.create(tx, call.caller, body))), {
      op: {
        name: "projects.create",
        audit: "yes",
        access: "projects:write",
        accountOnly: true,
        changesProject: false,
        summary: "Create a project",
        description:
          "Its slug is derived from the name; one that is taken gets a number. Not for keys of one project.",
        errors: ["project_limit_exceeded"],
        example: { name: "Shop", description: "Everything about the shop" },
      },
      body: ProjectCreateBody,
      response: { 201: Project },
    })
    .get("", ({ call, query }) => projects.list(call.caller, query.limit ?? PROJECTS_LIMIT, query.cursor), {
      op: {
        name: "projects.list",
        access: "projects:read",
        summary: "List projects, newest first",
        description: "A key of one project sees that one.",
      },
      query: pageQuery(PROJECTS_LIMIT),
      response: ProjectPage,
    })
    .get("/:id", ({ call, params }) => projects.get(call.caller, params.id), {
      op: { name: "projects.get", access: "projects:read", summary: "Read a project", errors: ["not_found"] },
      params: ProjectParams,
      response: Project,
    })
    .get("/:id/overview", ({ call, params }) => projects.overview(call.caller, params.id), {
      op: {
        name: "projects.overview",
        access: "projects:read",
        summary: "Count what is in a project",
        description: "At most five minutes old.",
        errors: ["not_found"],
      },
      params: ProjectParams,
      response: overviewSchema(kinds),
    });
}

function projectChangeRoutes(api: Api, projects: ProjectService) {
  return new Elysia({ prefix: "/v1/projects", tags: ["Projects"] })
    .use(api)
    .patch(
      "/:id",
      ({ call, params, body }) => call.perform((tx) => projects.update(tx, call.caller, params.id, body)),
      {
        op: {
          name: "projects.update",
          audit: "yes",
          access: "projects:write",
          changesProject: false,
          summary: "Change a project's name or description",
          description: "What is left out stays; `null` clears the description. The slug never changes.",
          errors: ["not_found"],
          example: { name: "Shop, new", description: null },
        },
        params: ProjectParams,
        body: ProjectUpdateBody,
        response: Project,
      },
    )
    .delete("/:id", ({ call, params }) => call.perform((tx) => projects.delete(tx, call.caller, params.id)), {
      op: {
        name: "projects.delete",
        audit: "yes",
        access: "projects:write",
        changesProject: false,
        summary: "Delete a project and everything in it",
        description:
          "Works at once, for its keys too; the rows are removed in the background, for good. The default project can be deleted only when there is another, which becomes the default, and by a key of the account only if that has the scope `*`.",
        errors: ["not_found"],
      },
      params: ProjectParams,
      response: ProjectDeleted,
    });
}
