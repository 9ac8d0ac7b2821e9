import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/requests/body.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import {
  StatusPage,
  StatusPageCreateBody,
  StatusPageDeleted,
  StatusPageList,
  StatusPageParams,
  StatusPageQuery,
  StatusPageUpdateBody,
} from "./schema.ts";
import type { StatusPages } from "./status-pages.ts";

const READ = { access: "pulse:read", cost: 1, limit: "monitor" } as const;
const CHANGE = { ...READ, access: "pulse:write", audit: "yes" } as const;
/** A page with the maximum number of groups has 2,500 monitor ids. */
const BODY = { bodyLimits: largeBody() };

/** Declares the operations that manage status pages. */
export function pageRoutes(api: Api, pages: StatusPages) {
  return [readRoutes(api, pages), changeRoutes(api, pages)];
}

function readRoutes(api: Api, pages: StatusPages) {
  return new Elysia({ tags: ["Monitors"] })
    .use(api)
    .get(
      "/v1/pulse/pages",
      ({ call, query }) => call.read(() => pages.list(call.caller.project.ref, query, call.baseUrl)),
      {
        op: { name: "monitors.pages.list", ...READ, summary: "List status pages, newest first" },
        query: StatusPageQuery,
        response: StatusPageList,
      },
    )
    .get(
      "/v1/pulse/pages/:page_id",
      ({ call, params }) => call.read(() => pages.get(call.caller.project.ref, params.page_id, call.baseUrl)),
      {
        op: {
          name: "monitors.pages.read",
          ...READ,
          summary: "Get a status page's settings",
          errors: ["not_found"],
        },
        params: StatusPageParams,
        response: StatusPage,
      },
    );
}

function changeRoutes(api: Api, pages: StatusPages) {
  return new Elysia({ tags: ["Monitors"] })
    .use(api)
    .post(
      "/v1/pulse/pages",
      ({ call, body }) => call.perform((tx) => reply(201, pages.create(tx, call.caller, body, call.baseUrl))),
      {
        op: {
          name: "monitors.pages.create",
          ...CHANGE,
          summary: "Create a public status page",
          errors: ["page_limit_exceeded", "page_slug_taken"],
          example: { slug: "acme", title: "Acme" },
          ...BODY,
        },
        body: StatusPageCreateBody,
        response: { 201: StatusPage },
      },
    )
    .patch(
      "/v1/pulse/pages/:page_id",
      ({ call, params, body }) =>
        call.perform((tx) => pages.update(tx, call.caller, params.page_id, body, call.baseUrl)),
      {
        op: {
          name: "monitors.pages.update",
          ...CHANGE,
          summary: "Update a status page",
          description:
            "Omitted fields stay unchanged. `published: false` hides the page without deleting it.",
          errors: ["not_found", "page_slug_taken"],
          example: { title: "Acme's services" },
          ...BODY,
        },
        params: StatusPageParams,
        body: StatusPageUpdateBody,
        response: StatusPage,
      },
    )
    .delete(
      "/v1/pulse/pages/:page_id",
      ({ call, params }) => call.perform((tx) => pages.delete(tx, call.caller, params.page_id, call.baseUrl)),
      {
        op: {
          name: "monitors.pages.delete",
          ...CHANGE,
          summary: "Delete a status page",
          errors: ["not_found"],
        },
        params: StatusPageParams,
        response: StatusPageDeleted,
      },
    );
}
