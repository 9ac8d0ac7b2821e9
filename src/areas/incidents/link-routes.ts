import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { networkOf } from "../../kernel/data/addresses.ts";
import { ApiError } from "../../kernel/errors.ts";
import { AttemptLimiter } from "../../kernel/http/access/guard.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { OpenCall } from "../../kernel/http/requests/call.ts";
import { type Reply, reply } from "../../kernel/http/responses/response.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { MINUTE_MS } from "../../kernel/time/units.ts";
import { deadLinkHtml, linkHtml, linkUsedHtml } from "./link-pages.ts";
import type { AlertLinks } from "./links.ts";
import type { IncidentRow } from "./store.ts";

const HTML = "text/html; charset=utf-8";
/** Requests for links of a network in a minute: a person opens a few, and guessing is hopeless anyway. */
export const LINKS_PER_MINUTE = 60;

/** No scripts, nothing of third parties, and no frames: the buttons have an effect. */
const HEADERS = {
  "content-type": HTML,
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
} as const;

const LinkParams = Type.Object({
  token: Type.String({ maxLength: 200, description: "Token of the link.", examples: ["AdYb…"] }),
});

const PAGES = {
  404: "For clients that accept `text/html`: the error as a page.",
  410: "The link was used, or the outage is over, as a page.",
} as const;

interface LinkRoutesDeps {
  readonly links: AlertLinks;
  readonly style: string;
  readonly clock: Clock;
}

/** Declares the pages of the links in alerts. */
export function linkRoutes(api: Api, { links, style, clock }: LinkRoutesDeps) {
  const attempts = new AttemptLimiter(clock, LINKS_PER_MINUTE, MINUTE_MS);
  const admit = (clientAddress: string): void => {
    const waitSeconds = attempts.take(networkOf(clientAddress));
    if (waitSeconds === 0) return;
    const message = `A network can open at most ${LINKS_PER_MINUTE} links of alerts per minute. Retry later.`;
    throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds: waitSeconds });
  };
  const spec = {
    params: LinkParams,
    responseTypes: [HTML],
    admit,
    additionalResponses: Object.fromEntries(
      Object.entries(PAGES).map(([status, description]) => [
        Number(status),
        { description, content: { [HTML]: null } },
      ]),
    ),
  };
  const timeOf = (incident: IncidentRow) => ({ now: clock.now(), zone: links.timeZoneOf(incident) });
  const shown = (status: number, text: string): Reply<number, string> => reply(status, text, HEADERS);
  const gone = () =>
    shown(410, deadLinkHtml("This link is used up", "It was used before, or the outage is over.", style));
  /** Browsers get an error page for a link that is none; other clients get the usual error body. */
  const asPage = async (
    { request }: OpenCall,
    respond: () => Promise<Reply<number, string>> | Reply<number, string>,
  ) => {
    try {
      return await respond();
    } catch (error) {
      const isMissing = error instanceof ApiError && error.code === "not_found";
      if (!isMissing || !(request.headers.get("accept") ?? "").includes("text/html")) throw error;
      return shown(404, deadLinkHtml("This link is not valid", error.message, style));
    }
  };
  return new Elysia({ tags: ["Monitors"] })
    .get(
      "/alerts/:token",
      api.open(
        {
          ...spec,
          name: "monitors.links.read",
          summary: "Get the page of a link in an alert",
          description:
            "The page that the links in alerts open, with buttons to acknowledge and to snooze the outage. Opening it changes nothing, so that link scanners of mail servers do neither.",
          errors: ["not_found", "rate_limit_exceeded"],
        },
        ({ call, params: { token } }) =>
          asPage(call, () => {
            const linked = links.find(token);
            if (linked === null) return gone();
            call.shows = linked.monitor.accountRef;
            return shown(200, linkHtml(linked.incident, style, timeOf(linked.incident)));
          }),
      ),
    )
    .post(
      "/alerts/:token",
      api.open(
        {
          ...spec,
          name: "monitors.links.use",
          summary: "Acknowledge or snooze the outage of a link in an alert",
          description:
            "The field `action` is `acknowledge` or `snooze`: then nobody is notified again for an hour. A link works once, for its incident only.",
          anyBody: "A form, `application/x-www-form-urlencoded`.",
          errors: ["not_found", "rate_limit_exceeded", "validation_error"],
        },
        async ({ call, params: { token } }) => {
          const action = new URLSearchParams(new TextDecoder().decode(await call.readBytes())).get("action");
          return asPage(call, async () => {
            if (action !== "acknowledge" && action !== "snooze") {
              // An altered link is not one, whatever it wants.
              links.find(token);
              throw new ApiError("validation_error", "action must be acknowledge or snooze.");
            }
            const incident = await links.act(token, action, call);
            return incident === null
              ? gone()
              : shown(200, linkUsedHtml(incident, action, style, timeOf(incident)));
          });
        },
      ),
    );
}
