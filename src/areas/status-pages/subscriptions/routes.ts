import { Elysia } from "elysia";
import { ApiError } from "../../../kernel/errors.ts";
import type { Api } from "../../../kernel/http/api.ts";
import type { OpenCall } from "../../../kernel/http/requests/call.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import type { PublicStatusPages } from "../public-pages.ts";
import { PublicPageParams, SubscriptionQuery } from "../schema.ts";
import type { PageRow, PageStore } from "../store.ts";
import {
  invalidLinkHtml,
  requestedHtml,
  subscribeHtml,
  subscriptionChangedHtml,
  subscriptionHtml,
} from "./html.ts";
import type { SubscriberRow } from "./store.ts";
import type { Subscriptions } from "./subscriptions.ts";

const HTML = "text/html; charset=utf-8";

/** No scripts, nothing of third parties, and no frames: the buttons have an effect. */
const HEADERS = {
  "content-type": HTML,
  "content-security-policy":
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
} as const;

interface SubscriptionDeps {
  readonly pages: PublicStatusPages;
  readonly stored: Pick<PageStore, "withRef">;
  readonly subscriptions: Subscriptions;
  readonly style: string;
  /** @throws ApiError `rate_limit_exceeded` for a network with too many requests. */
  readonly admit: (clientAddress: string) => void;
}

/** Declares the pages on which visitors subscribe to a status page by e-mail. */
export function subscriptionRoutes(
  api: Api,
  { pages, stored, subscriptions, style, admit }: SubscriptionDeps,
) {
  /** @throws ApiError `not_found`, also where no mail is configured. */
  const pageOf = (slug: string): PageRow => {
    const page = pages.find(slug);
    if (subscriptions.available) return page;
    throw new ApiError("not_found", "This status page sends no e-mails.");
  };
  /** The subscriber of a token, and the page. @throws ApiError `not_found` where no mail is configured. */
  const linked = (token: string): { readonly page: PageRow; readonly subscriber: SubscriberRow } | null => {
    if (!subscriptions.available) throw new ApiError("not_found", "This server sends no e-mails.");
    const subscriber = subscriptions.find(token);
    const page = subscriber && stored.withRef(subscriber.pageRef);
    return page === null || subscriber === null ? null : { page, subscriber };
  };
  const shown = (status: 200 | 202 | 400 | 404 | 429, text: string, headers: Record<string, string> = {}) =>
    reply(status, text, { ...HEADERS, ...headers });
  const spec = (name: string, summary: string, pages: readonly (400 | 404 | 429)[]) => ({
    name: `status.${name}`,
    summary,
    responseTypes: [HTML],
    additionalResponses: Object.fromEntries(
      pages.map((status) => [status, { description: "The error as a page.", content: { [HTML]: null } }]),
    ),
    admit,
    errors: ["not_found", "rate_limit_exceeded"] as const,
  });
  const form = { anyBody: "A form, `application/x-www-form-urlencoded`." };
  return new Elysia({ tags: ["Status pages"] })
    .get(
      "/status/:page/subscribe",
      api.open(
        {
          ...spec("subscribe_form", "Get the form for e-mails about a status page", []),
          description:
            "HTML without scripts. 404 if the server has no mail server or no public URL configured: then nobody can subscribe.",
          params: PublicPageParams,
        },
        ({ params: { page } }) => shown(200, subscribeHtml(pageOf(page), style)),
      ),
    )
    .post(
      "/status/:page/subscribe",
      api.open(
        {
          ...spec("subscribe", "Request e-mails about the incidents of a status page", [400, 429]),
          ...form,
          description:
            "The field `email` is the address. It gets a link with which its owner confirms the subscription.",
          params: PublicPageParams,
        },
        async ({ call, params }): Promise<Reply<number, string>> => {
          const page = pageOf(params.page);
          const email = (await formOf(call)).get("email")?.trim() ?? "";
          try {
            await subscriptions.request(page, email, call.clientAddress);
          } catch (error) {
            if (!(error instanceof ApiError)) throw error;
            const text = subscribeHtml(page, style, error.message);
            if (error.code === "validation_error") return shown(400, text);
            if (error.code !== "rate_limit_exceeded") throw error;
            return shown(429, text, { "retry-after": String(error.details.retryAfterSeconds ?? 1) });
          }
          return shown(202, requestedHtml(page, style));
        },
      ),
    )
    .get(
      "/status/:page/subscription",
      api.open(
        {
          ...spec("subscription", "Get the page of a subscription's link", [404]),
          description:
            "The page that the links in e-mails open. Opening it changes nothing, so that link scanners of mail servers neither confirm nor end a subscription: its button sends the `POST`.",
          params: PublicPageParams,
          query: SubscriptionQuery,
        },
        ({ query: { token = "" } }) => {
          const found = linked(token);
          if (found === null) return shown(404, invalidLinkHtml(style));
          return shown(200, subscriptionHtml(found.page, style, found.subscriber, token));
        },
      ),
    )
    .post(
      "/status/:page/subscription",
      api.open(
        {
          ...spec("subscription_change", "Confirm or end a subscription", [404]),
          ...form,
          errors: ["not_found", "rate_limit_exceeded", "validation_error"],
          description:
            "The field `action` is `confirm` or `unsubscribe`. Without it the subscription ends, as mail clients request it (RFC 8058).",
          params: PublicPageParams,
          query: SubscriptionQuery,
        },
        async ({ call, query: { token = "" } }) => {
          const fields = await formOf(call);
          const found = linked(token);
          if (found === null) return shown(404, invalidLinkHtml(style));
          const action = fields.get("action") === "confirm" ? "confirm" : "unsubscribe";
          const isDone = await subscriptions.act(found.subscriber, action);
          return shown(200, subscriptionChangedHtml(found.page, style, isDone ? action : "full"));
        },
      ),
    );
}

async function formOf(call: OpenCall): Promise<URLSearchParams> {
  return new URLSearchParams(new TextDecoder().decode(await call.readBytes()));
}
