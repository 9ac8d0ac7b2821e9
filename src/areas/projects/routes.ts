import type { Http } from "../../kernel/http/http.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import {
  Project,
  ProjectCreateBody,
  ProjectDeleted,
  ProjectOverview,
  ProjectPage,
  ProjectParams,
  ProjectUpdateBody,
} from "./schema.ts";
import type { ProjectService } from "./service.ts";

/** Projects on a page unless asked otherwise. */
const PROJECTS_LIMIT = 10;

/** Declares the endpoints of projects. */
export function projectRoutes(http: Http, projects: ProjectService): void {
  collectionRoutes(http, projects);
  projectReadRoutes(http, projects);
  projectChangeRoutes(http, projects);
}

function collectionRoutes(http: Http, projects: ProjectService): void {
  http.route(
    "POST",
    "/v1/projects",
    {
      operation: "projects.create",
      summary: "Create a project",
      description:
        "Its slug is derived from the name; one that is taken gets a number. Not for keys of one project.",
      status: 201,
      body: ProjectCreateBody,
      answers: { 201: Project },
      errors: ["project_limit_exceeded"],
      example: { name: "Shop", description: "Everything about the shop" },
    },
    (call) => {
      const { name, description = null } = call.body;
      return call.perform((tx) => projects.create(tx, call.caller.account, name, description));
    },
  );
  http.route(
    "GET",
    "/v1/projects",
    {
      operation: "projects.list",
      summary: "List projects, newest first",
      description: "A key of one project sees that one.",
      query: pageQuery(PROJECTS_LIMIT),
      answers: { 200: ProjectPage },
    },
    (call) => projects.list(call.caller, call.query.limit ?? PROJECTS_LIMIT, call.query.cursor),
  );
}

function projectReadRoutes(http: Http, projects: ProjectService): void {
  http.route(
    "GET",
    "/v1/projects/:id",
    {
      operation: "projects.get",
      summary: "Read a project",
      params: ProjectParams,
      answers: { 200: Project },
      errors: ["not_found"],
    },
    (call) => projects.get(call.caller, call.params.id),
  );
  http.route(
    "GET",
    "/v1/projects/:id/overview",
    {
      operation: "projects.overview",
      summary: "Count what is in a project",
      description: "At most five minutes old.",
      params: ProjectParams,
      answers: { 200: ProjectOverview },
      errors: ["not_found"],
    },
    (call) => projects.overview(call.caller, call.params.id),
  );
}

function projectChangeRoutes(http: Http, projects: ProjectService): void {
  http.route(
    "PATCH",
    "/v1/projects/:id",
    {
      operation: "projects.update",
      summary: "Change a project's name or description",
      description: "What is left out stays; `null` clears the description. The slug never changes.",
      params: ProjectParams,
      body: ProjectUpdateBody,
      answers: { 200: Project },
      errors: ["not_found"],
      example: { name: "Shop, new", description: null },
    },
    (call) => {
      const { name, description } = call.body;
      const change = {
        ...(name === undefined ? {} : { name }),
        ...(description === undefined ? {} : { description }),
      };
      return call.perform((tx) => projects.update(tx, call.caller, call.params.id, change));
    },
  );
  http.route(
    "DELETE",
    "/v1/projects/:id",
    {
      operation: "projects.delete",
      summary: "Delete a project and everything in it",
      description:
        "Works at once, for its keys too; the rows are removed in the background, for good. The default project can be deleted only when there is another, which becomes the default, and by a key of the account only if that has the scope `*`.",
      params: ProjectParams,
      answers: { 200: ProjectDeleted },
      errors: ["not_found"],
    },
    (call) => call.perform((tx) => projects.delete(tx, call.caller, call.params.id)),
  );
}
