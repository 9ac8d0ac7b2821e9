import { Elysia } from "elysia";
import { ApiError } from "../../../kernel/errors.ts";
import { networkOf } from "../../../kernel/http/access/addresses.ts";
import { AttemptLimiter } from "../../../kernel/http/access/guard.ts";
import type { Api } from "../../../kernel/http/api.ts";
import type { TaggedText } from "../../../kernel/http/responses/etag.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { missingHtml } from "./html.ts";
import type { PublicStatusPages } from "./public-pages.ts";
import { BadgeData, PublicIncident, PublicPage } from "./public-schema.ts";
import { BadgeParams, BadgeQuery, PublicIncidentParams, PublicPageParams } from "./schema.ts";

/** What one address may ask of all pages together: a person with some tabs open, or a page full of badges. */
export const PUBLIC_PER_MINUTE = 60;
const MINUTE_MS = 60_000;

const HTML = "text/html; charset=utf-8";
const JSON_TYPE = "application/json";
const ATOM = "application/atom+xml; charset=utf-8";
const SVG = "image/svg+xml; charset=utf-8";

/** Nothing runs, nothing comes from elsewhere; any site may show the page in a frame, where nothing can be clicked by mistake. */
const HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors *",
  "referrer-policy": "no-referrer",
} as const;
/** Half a minute old is as good as new, and a busy day of visitors reaches a cache alone. */
const CACHED_HEADERS = { "cache-control": "public, max-age=30", ...HEADERS } as const;

const ERRORS = { errors: ["not_found", "rate_limit_exceeded"] } as const;
const SUFFIX = ".json";

/** Declares what anybody sees of status pages. */
export function statusRoutes(api: Api, status: PublicStatusPages, clock: Clock, style: string) {
  const attempts = new AttemptLimiter(clock, PUBLIC_PER_MINUTE, MINUTE_MS);
  const admit = (clientAddress: string): void => {
    const waitSeconds = attempts.take(networkOf(clientAddress));
    if (waitSeconds === 0) return;
    const message = `At most ${PUBLIC_PER_MINUTE} requests for status pages in a minute from one address.`;
    throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds: waitSeconds });
  };
  return new Elysia({ tags: ["Status pages"] })
    .use(api)
    .get(
      "/status/:page",
      ({ call: { request }, params: { page } }) =>
        respondWithPage(page, request, style, (slug, form) => status[form](slug)),
      {
        open: {
          name: "status.page",
          summary: "Look at a status page",
          description: "HTML without scripts; the same data as JSON with `.json` behind the slug.",
          answerTypes: [HTML],
          tagged: "by-handler",
          alsoAnswers: {
            200: {
              description: "With `.json` behind the slug: the same as data.",
              content: { [JSON_TYPE]: PublicPage },
            },
            404: {
              description: "To a client that accepts `text/html`: a page that says the same.",
              content: { [HTML]: null },
            },
          },
          admit,
          ...ERRORS,
        },
        params: PublicPageParams,
      },
    )
    .get(
      "/status/:page/feed.atom",
      ({ call: { request, baseUrl }, params: { page } }) =>
        respond(status.feed(page, baseUrl), request, ATOM),
      {
        open: {
          name: "status.feed",
          summary: "Follow a status page's incidents and maintenance as an Atom feed",
          answerTypes: [ATOM],
          tagged: "by-handler",
          admit,
          ...ERRORS,
        },
        params: PublicPageParams,
      },
    )
    .get(
      "/status/:page/incidents/:incident",
      ({ call: { request }, params: { page, incident } }) =>
        respondWithPage(incident, request, `../../${style}`, (id, form) => status.incident(page, id, form)),
      {
        open: {
          name: "status.incident",
          summary: "Look at an incident of a status page",
          description:
            "HTML without scripts, with the updates of the incident, the newest first; the same data as JSON with `.json` behind the id.",
          answerTypes: [HTML],
          tagged: "by-handler",
          alsoAnswers: {
            200: {
              description: "With `.json` behind the id: the same as data.",
              content: { [JSON_TYPE]: PublicIncident },
            },
            404: {
              description: "To a client that accepts `text/html`: a page that says the same.",
              content: { [HTML]: null },
            },
          },
          admit,
          ...ERRORS,
        },
        params: PublicIncidentParams,
      },
    )
    .get(
      "/status/:page/badge/:badge",
      async ({ call: { request }, params, query: { metric = "status" } }) => {
        const { text, isSvg } = await status.badge(params.page, params.badge, metric);
        return respond(Promise.resolve(text), request, isSvg ? SVG : JSON_TYPE);
      },
      {
        open: {
          name: "status.badge",
          summary: "Get a badge of a monitor on a status page",
          description: "A picture with `.svg`, what shields.io's endpoint badge asks for with `.json`.",
          answerTypes: [SVG],
          tagged: "by-handler",
          alsoAnswers: {
            200: { description: "With `.json`: the badge as data.", content: { [JSON_TYPE]: BadgeData } },
          },
          admit,
          ...ERRORS,
        },
        params: BadgeParams,
        query: BadgeQuery,
      },
    );
}

async function respond(
  text: Promise<TaggedText>,
  request: Request,
  type: string,
): Promise<Reply<200 | 304, unknown>> {
  return (await text).answer(request, { "content-type": type, ...CACHED_HEADERS });
}

/** A text of data where the last part of an address ends with `.json`, else a page. */
async function respondWithPage(
  last: string,
  request: Request,
  style: string,
  render: (name: string, form: "html" | "json") => Promise<TaggedText>,
) {
  if (last.endsWith(SUFFIX))
    return respond(render(last.slice(0, -SUFFIX.length), "json"), request, JSON_TYPE);
  try {
    return await respond(render(last, "html"), request, HTML);
  } catch (error) {
    const isMissing = error instanceof ApiError && error.code === "not_found";
    // A person reads a page; programs, which do not ask for HTML, read what they read everywhere.
    if (!isMissing || !(request.headers.get("accept") ?? "").includes("text/html")) throw error;
    return reply(404, missingHtml(style), { "content-type": HTML, vary: "Accept", ...HEADERS });
  }
}
