import { Elysia } from "elysia";
import { networkOf } from "../../kernel/data/addresses.ts";
import { ApiError } from "../../kernel/errors.ts";
import { AttemptLimiter } from "../../kernel/http/access/guard.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { OpenCall } from "../../kernel/http/requests/call.ts";
import type { TaggedText } from "../../kernel/http/responses/etag.ts";
import { type Reply, reply } from "../../kernel/http/responses/response.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { MINUTE_MS } from "../../kernel/time/units.ts";
import type { PublicStatusPages } from "./public-pages.ts";
import { BadgeData, PublicGroup, PublicIncident, PublicPage } from "./public-schema.ts";
import { notFoundHtml } from "./rendering/html.ts";
import {
  BadgeParams,
  BadgeQuery,
  GroupBadgeParams,
  PublicGroupParams,
  PublicIncidentParams,
  PublicPageParams,
  SummaryBadgeQuery,
  ZoneQuery,
} from "./schema.ts";

/** Maximum number of requests for status pages per client network and minute: some open tabs, or a page full of badges. */
export const PUBLIC_PER_MINUTE = 60;

const HTML = "text/html; charset=utf-8";
const JSON_TYPE = "application/json";
const ATOM = "application/atom+xml; charset=utf-8";
const SVG = "image/svg+xml; charset=utf-8";
const CALENDAR = "text/calendar; charset=utf-8";

/** No scripts and no third-party content. Any site may embed the page: its form changes nothing that clickjacking could abuse. */
const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors *",
  "referrer-policy": "no-referrer",
} as const;
/** Half a minute is recent enough, and lets a shared cache serve a busy day of visitors. */
const CACHED_HEADERS = { "cache-control": "public, max-age=30", ...SECURITY_HEADERS } as const;

/** An uploaded SVG that is opened by itself runs no script and loads nothing. */
const ICON_HEADERS = {
  ...CACHED_HEADERS,
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  "x-content-type-options": "nosniff",
} as const;

/** A page in an open tab stays current without a script. A `meta` element would do the same, but fails WCAG checks. */
const REFRESH_HEADERS = { refresh: "60" } as const;

const ERRORS = { errors: ["not_found", "rate_limit_exceeded"] } as const;
const SUFFIX = ".json";

const BADGE_IMAGE = { responseTypes: [SVG], tagged: "by-handler" } as const;
const BADGE_JSON = {
  description: "For the endpoint badge of shields.io.",
  responseTypes: [JSON_TYPE],
  tagged: "by-handler",
  additionalResponses: {
    200: { description: "The badge as JSON.", content: { [JSON_TYPE]: BadgeData } },
  },
} as const;

/** Limits the requests of each network for public pages. The returned function throws `rate_limit_exceeded`. */
export function publicAdmission(clock: Clock): (clientAddress: string) => void {
  const attempts = new AttemptLimiter(clock, PUBLIC_PER_MINUTE, MINUTE_MS);
  return (clientAddress) => {
    const waitSeconds = attempts.take(networkOf(clientAddress));
    if (waitSeconds === 0) return;
    const message = `A network can send at most ${PUBLIC_PER_MINUTE} requests for status pages per minute. Retry after the delay in the Retry-After header.`;
    throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds: waitSeconds });
  };
}

/** Declares the public routes of status pages: pages, JSON, feeds, incidents and badges. */
export function publicRoutes(
  api: Api,
  pages: PublicStatusPages,
  admit: (clientAddress: string) => void,
  style: string,
) {
  const ofPage = (call: OpenCall, slug: string): Request => {
    call.shows = pages.accountOf(slug);
    return call.request;
  };
  return new Elysia({ tags: ["Status pages"] })
    .get(
      "/status/:page",
      api.open(
        {
          name: "status.page",
          summary: "Get a status page",
          description: "HTML without scripts. Append `.json` to the slug for the same data as JSON.",
          responseTypes: [HTML],
          tagged: "by-handler",
          additionalResponses: {
            200: {
              description: "With `.json` after the slug: the page as JSON.",
              content: { [JSON_TYPE]: PublicPage },
            },
            404: {
              description: "For clients that accept `text/html`: the error as a page.",
              content: { [HTML]: null },
            },
          },
          admit,
          ...ERRORS,
          params: PublicPageParams,
          query: ZoneQuery,
        },
        ({ call, params: { page }, query: { tz } }) =>
          respondWithPage(page, ofPage(call, withoutSuffix(page)), style, (slug, format) =>
            format === "html" ? pages.html(slug, tz) : pages.json(slug),
          ),
      ),
    )
    .get(
      "/status/:page/feed.atom",
      api.open(
        {
          name: "status.feed",
          summary: "Get a status page's incidents and maintenance as an Atom feed",
          description:
            "For feed readers and chat integrations: public incidents with their updates, outages and maintenance, as far as the page shows them. Sends an `ETag`; caches may store it for 30 seconds.",
          responseTypes: [ATOM],
          tagged: "by-handler",
          admit,
          ...ERRORS,
          params: PublicPageParams,
        },
        ({ call, params: { page } }) => respond(pages.feed(page, call.baseUrl), ofPage(call, page), ATOM),
      ),
    )
    .get(
      "/status/:page/maintenance.ics",
      api.open(
        {
          name: "status.calendar",
          summary: "Get a status page's maintenance windows as a calendar",
          description: "An iCalendar object (RFC 5545), which calendar applications can subscribe to.",
          responseTypes: [CALENDAR],
          tagged: "by-handler",
          admit,
          ...ERRORS,
          params: PublicPageParams,
        },
        ({ call, params: { page } }) =>
          respond(pages.calendar(page, call.baseUrl), ofPage(call, page), CALENDAR),
      ),
    )
    .get(
      "/status/:page/icon",
      api.open(
        {
          name: "status.icon",
          summary: "Get a status page's icon",
          description: "Its logo, or the first letter of its title on its color.",
          responseTypes: ["image/svg+xml", "image/png", "image/jpeg", "image/webp"],
          admit,
          ...ERRORS,
          params: PublicPageParams,
        },
        ({ call, params: { page } }) => {
          ofPage(call, page);
          const { type, bytes } = pages.icon(page);
          return reply(200, bytes, { "content-type": type, ...ICON_HEADERS });
        },
      ),
    )
    .get(
      "/status/:page/incidents/:incident",
      api.open(
        {
          name: "status.incident",
          summary: "Get an incident of a status page",
          description:
            "HTML without scripts, with the updates of the incident, newest first. Append `.json` to the id for the same data as JSON.",
          responseTypes: [HTML],
          tagged: "by-handler",
          additionalResponses: {
            200: {
              description: "With `.json` after the id: the incident as JSON.",
              content: { [JSON_TYPE]: PublicIncident },
            },
            404: {
              description: "For clients that accept `text/html`: the error as a page.",
              content: { [HTML]: null },
            },
          },
          admit,
          ...ERRORS,
          params: PublicIncidentParams,
          query: ZoneQuery,
        },
        ({ call, params: { page, incident }, query: { tz } }) =>
          respondWithPage(incident, ofPage(call, page), `../../${style}`, (id, format) =>
            pages.incident(page, id, format, tz),
          ),
      ),
    )
    .get(
      "/status/:page/badge/:badge",
      api.open(
        {
          name: "status.badge",
          summary: "Get a badge of a monitor on a status page",
          description: "An image with `.svg`; JSON for the endpoint badge of shields.io with `.json`.",
          responseTypes: [SVG],
          tagged: "by-handler",
          additionalResponses: {
            200: { description: "With `.json`: the badge as JSON.", content: { [JSON_TYPE]: BadgeData } },
          },
          admit,
          ...ERRORS,
          params: BadgeParams,
          query: BadgeQuery,
        },
        async ({ call, params, query }) => {
          const { text, isSvg } = await pages.badge(params.page, params.badge, query);
          return respond(Promise.resolve(text), ofPage(call, params.page), isSvg ? SVG : JSON_TYPE);
        },
      ),
    )
    .get(
      "/status/:page/badge.svg",
      api.open(
        {
          name: "status.page_badge",
          summary: "Get the badge of a status page",
          description:
            "An image of the overall status, such as `operational` or `partial outage`, to embed in websites and README files.",
          ...BADGE_IMAGE,
          admit,
          ...ERRORS,
          params: PublicPageParams,
          query: SummaryBadgeQuery,
        },
        ({ call, params: { page }, query }) =>
          respond(pages.pageBadge(page, "svg", query), ofPage(call, page), SVG),
      ),
    )
    .get(
      "/status/:page/badge.json",
      api.open(
        {
          name: "status.page_badge_data",
          summary: "Get the badge of a status page as JSON",
          ...BADGE_JSON,
          admit,
          ...ERRORS,
          params: PublicPageParams,
          query: SummaryBadgeQuery,
        },
        ({ call, params: { page }, query }) =>
          respond(pages.pageBadge(page, "json", query), ofPage(call, page), JSON_TYPE),
      ),
    )
    .get(
      "/status/:page/groups/:group",
      api.open(
        {
          name: "status.group",
          summary: "Get a group of a status page",
          description: "JSON: the group as the page's JSON has it, for clients that need one group only.",
          responseTypes: [JSON_TYPE],
          tagged: "by-handler",
          additionalResponses: {
            200: { description: "The group as JSON.", content: { [JSON_TYPE]: PublicGroup } },
          },
          admit,
          ...ERRORS,
          params: PublicGroupParams,
        },
        ({ call, params: { page, group } }) =>
          respond(pages.group(page, withoutSuffix(group)), ofPage(call, page), JSON_TYPE),
      ),
    )
    .get(
      "/status/:page/groups/:group/badge.svg",
      api.open(
        {
          name: "status.group_badge",
          summary: "Get the badge of a group of a status page",
          description:
            "An image of the worst status among the monitors of the group, to embed in websites and README files.",
          ...BADGE_IMAGE,
          admit,
          ...ERRORS,
          params: GroupBadgeParams,
          query: SummaryBadgeQuery,
        },
        ({ call, params: { page, group }, query }) =>
          respond(pages.groupBadge(page, group, "svg", query), ofPage(call, page), SVG),
      ),
    )
    .get(
      "/status/:page/groups/:group/badge.json",
      api.open(
        {
          name: "status.group_badge_data",
          summary: "Get the badge of a group of a status page as JSON",
          ...BADGE_JSON,
          admit,
          ...ERRORS,
          params: GroupBadgeParams,
          query: SummaryBadgeQuery,
        },
        ({ call, params: { page, group }, query }) =>
          respond(pages.groupBadge(page, group, "json", query), ofPage(call, page), JSON_TYPE),
      ),
    );
}

async function respond(
  text: Promise<TaggedText>,
  request: Request,
  type: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply<200 | 304, unknown>> {
  return (await text).respond(request, { "content-type": type, ...CACHED_HEADERS, ...headers });
}

function withoutSuffix(last: string): string {
  return last.endsWith(SUFFIX) ? last.slice(0, -SUFFIX.length) : last;
}

/** Responds with JSON if the last path segment ends with `.json`, else with HTML. */
async function respondWithPage(
  last: string,
  request: Request,
  style: string,
  render: (name: string, format: "html" | "json") => Promise<TaggedText>,
) {
  if (last.endsWith(SUFFIX)) return respond(render(withoutSuffix(last), "json"), request, JSON_TYPE);
  try {
    return await respond(render(last, "html"), request, HTML, REFRESH_HEADERS);
  } catch (error) {
    const isMissing = error instanceof ApiError && error.code === "not_found";
    // Browsers get an error page; other clients get the usual error body.
    if (!isMissing || !(request.headers.get("accept") ?? "").includes("text/html")) throw error;
    return reply(404, notFoundHtml(style), { "content-type": HTML, vary: "Accept", ...SECURITY_HEADERS });
  }
}
