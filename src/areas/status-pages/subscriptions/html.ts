import { documentOf, headerOf } from "../../../kernel/data/document.ts";
import { html, type Markup } from "../../../kernel/data/markup.ts";
import { noticeHtml } from "../rendering/html.ts";
import type { PageRow } from "../store.ts";
import type { SubscriberRow } from "./store.ts";

/** A page next to a status page, at `/status/{slug}/…`. */
function document({ slug, settings: { title } }: PageRow, style: string, heading: string, content: Markup) {
  return documentOf({
    title: `${heading}: ${title}`,
    style: `../${style}`,
    icon: "icon",
    index: false,
    body: html`${headerOf("icon", title)}<main>
<h2>${heading}</h2>
${content}<p><a href="../${slug}">Status page</a></p>
</main>
`,
  });
}

/** The form for an e-mail address. `error`: what was wrong with the last one. */
export function subscribeHtml(page: PageRow, style: string, error: string | null = null): string {
  const message = error === null ? null : html`<p class="error" role="alert">${error}</p>\n`;
  return document(
    page,
    style,
    "Get updates by e-mail",
    html`<p>You get an e-mail when an incident is opened, updated or resolved.</p>
${message}<form class="form" method="post" action="subscribe">
<label for="email">E-mail address</label>
<input id="email" name="email" type="email" autocomplete="email" maxlength="254" required>
<button type="submit">Subscribe</button>
</form>
`,
  );
}

/** The response to every valid address, known or not. */
export function requestedHtml(page: PageRow, style: string): string {
  return document(
    page,
    style,
    "Check your inbox",
    html`<p>If this address has no subscription yet, an e-mail with a link is on its way to it. Open the link to confirm the subscription.</p>
`,
  );
}

/** The page of a link in an e-mail. Only its button changes something, since mail scanners open links. */
export function subscriptionHtml(
  page: PageRow,
  style: string,
  subscriber: SubscriberRow,
  token: string,
): string {
  const isConfirmed = subscriber.confirmedAt !== null;
  return document(
    page,
    style,
    isConfirmed ? "Your subscription" : "Confirm your subscription",
    html`<form class="form" method="post" action="subscription?token=${token}">
<p>${subscriber.email}</p>
<button type="submit" name="action" value="${isConfirmed ? "unsubscribe" : "confirm"}">${isConfirmed ? "Unsubscribe" : "Confirm"}</button>
</form>
`,
  );
}

const RESULTS = {
  confirm: ["Subscribed", "You get an e-mail about each incident. Each one has a link to unsubscribe."],
  unsubscribe: ["Unsubscribed", "You get no more e-mails about this status page."],
  full: ["Not subscribed", "This page has too many subscribers. Try again later with the same link."],
} as const;

/** The result of a button. */
export function subscriptionChangedHtml(page: PageRow, style: string, result: keyof typeof RESULTS): string {
  const [heading, text] = RESULTS[result];
  return document(page, style, heading, html`<p>${text}</p>\n`);
}

/** The page of a link that is not, or no longer, valid. It says nothing of a page, since the link leads to none. */
export function invalidLinkHtml(style: string): string {
  const text = "The subscription has ended, or the link has expired.";
  return noticeHtml(`../${style}`, "This link is not valid", text);
}
