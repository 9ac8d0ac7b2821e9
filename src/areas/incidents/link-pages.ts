import { documentOf } from "../../kernel/data/document.ts";
import { html, type Markup } from "../../kernel/data/markup.ts";
import { clockText } from "../../kernel/time/readable.ts";
import type { LinkAction } from "./links.ts";
import type { IncidentRow } from "./store.ts";

/** The time of a page, epoch milliseconds, and the zone in which it shows times. */
interface PageTime {
  readonly now: number;
  readonly zone: string;
}

/** A page at `/alerts/{token}`. */
function page(style: string, heading: string, content: Markup): string {
  const body = html`<main>
<h1>${heading}</h1>
${content}</main>
`;
  return documentOf({ title: heading, style: `../status/${style}`, icon: null, index: false, body });
}

/** The page of a link in an alert. Only its buttons change something, since mail scanners open links. */
export function linkHtml(incident: IncidentRow, style: string, { now, zone }: PageTime): string {
  const { title, startedAt, cause, acknowledgedBy } = incident;
  const choice =
    acknowledgedBy === null
      ? html`<form class="form" method="post">
<p>Acknowledge the outage if you take care of it: nobody is notified again. Snooze it to be notified again in an hour.</p>
<button type="submit" name="action" value="acknowledge">Acknowledge</button>
<button type="submit" name="action" value="snooze">Snooze 1 h</button>
</form>
`
      : html`<p>${acknowledgedText(acknowledgedBy)}</p>
`;
  return page(
    style,
    title,
    html`<p>Since ${clockText(startedAt, now, zone)}${cause === null ? null : html`: ${cause}`}</p>
${choice}`,
  );
}

function acknowledgedText(by: string | null): string {
  return `Acknowledged by ${by}. Nobody is notified again until the target recovers.`;
}

/** The result of a button: an outage that is acknowledged is not snoozed. */
export function linkUsedHtml(
  { title, acknowledgedAt, acknowledgedBy, snoozedUntil }: IncidentRow,
  action: LinkAction,
  style: string,
  { now, zone }: PageTime,
): string {
  const isSnoozed = action === "snooze" && acknowledgedAt === null;
  const text = isSnoozed
    ? `Nobody is notified again before ${clockText(snoozedUntil ?? now, now, zone)}.`
    : acknowledgedText(acknowledgedBy);
  return page(
    style,
    isSnoozed ? "Snoozed" : "Acknowledged",
    html`<p>${title}</p>
<p>${text}</p>
`,
  );
}

/** A page that says why a link does nothing. */
export function deadLinkHtml(heading: string, text: string, style: string): string {
  return page(
    style,
    heading,
    html`<p>${text}</p>
`,
  );
}
