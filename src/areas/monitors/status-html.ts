import { isoTime } from "../../kernel/date-time.ts";
import { html, Markup, paragraphs } from "./markup.ts";
import { barsOf, datesFrom } from "./status-bars.ts";
import { momentText } from "./status-dates.ts";
import {
  DAYS_SHOWN,
  isUnderWay,
  PAST_DAYS,
  type ShownIncident,
  type ShownMaintenance,
  type ShownMonitor,
  type ShownState,
  type StatusView,
} from "./status-view.ts";

/** A state in a word. */
export const WORDS: Readonly<Record<ShownState, string>> = {
  up: "Works",
  degraded: "Slow",
  down: "Down",
  maintenance: "Maintenance",
  paused: "Paused",
  unknown: "No data",
};

/** The page as HTML: no script, nothing of another host. Its links are relative, so that it holds behind a prefix. */
export function statusHtml(view: StatusView, style: string): string {
  const { page, incidents, maintenance, now, state, sentence } = view;
  const { slug, settings } = page;
  const open = incidents.filter(({ resolvedAt }) => resolvedAt === null);
  const past = incidents.filter(({ resolvedAt }) => resolvedAt !== null);
  const dates = datesFrom(view.firstDay, DAYS_SHOWN);
  const ahead = maintenance.filter(({ endsAt }) => endsAt > now);
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${settings.title}: ${sentence}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${settings.index ? null : new Markup('<meta name="robots" content="noindex">\n')}<link rel="stylesheet" href="${style}">
<link rel="alternate" type="application/atom+xml" title="Incidents and maintenance" href="${slug}/feed.atom">
<link rel="alternate" type="application/json" href="${slug}.json">
</head>
<body>
<header>
<h1>${settings.title}</h1>
${settings.description === "" ? null : paragraphs(settings.description)}
</header>
<main>
<p class="sentence ${state}">${sentence}</p>
${section(
  "Open incidents",
  open.map((one) => incidentOf(one, view)),
)}
${section(
  "Maintenance",
  ahead.map((one) => maintenanceOf(one, view)),
)}
${view.groups.map((group) => groupOf(group, dates))}
<section class="past">
<h2>Past incidents</h2>
${past.length === 0 ? html`<p>None in the last ${PAST_DAYS} days.</p>` : past.map((one) => incidentOf(one, view))}
</section>
</main>
<footer>
${settings.footer === "" ? null : paragraphs(settings.footer)}
<p>${lastCheck(view)}Days and times are in UTC. <a href="${slug}/feed.atom">Feed</a> <a href="${slug}.json">JSON</a></p>
</footer>
</body>
</html>
`;
  return document.text;
}

/** What stands where there is no page, or none that is published. */
export function missingHtml(style: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>No status page here</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="stylesheet" href="${style}">
</head>
<body>
<main><h1>No status page here</h1><p>There is none at this address, or it is not published.</p></main>
</body>
</html>
`.text;
}

function lastCheck({ checkedAt }: StatusView): Markup | null {
  return checkedAt === null ? null : html`Last check ${time(checkedAt)}. `;
}

function section(title: string, parts: readonly Markup[]): Markup | null {
  return parts.length === 0 ? null : html`<section>\n<h2>${title}</h2>\n${parts}</section>`;
}

function groupOf({ name, monitors }: StatusView["groups"][number], dates: readonly string[]): Markup {
  return html`<section class="group">
<h2${name === "" ? new Markup(' class="unnamed"') : null}>${name === "" ? "Systems" : name}</h2>
<ul>
${monitors.map((one) => monitorItem(one, dates))}</ul>
</section>
`;
}

function monitorItem(shown: ShownMonitor, dates: readonly string[]): Markup {
  const { name, url, state, uptime, latencyMs, days } = shown;
  const latency = latencyMs === null ? null : html` <span class="latency">${latencyMs} ms</span>`;
  return html`<li>
<div class="name"><strong>${name}</strong> <span class="state ${state}">${WORDS[state]}</span></div>
${url === null ? null : html`<div class="url">${url}</div>\n`}${days === null ? null : barsOf(days, dates)}
<div class="figures"><span>${DAYS_SHOWN} days: ${uptime === null ? "no data" : `${uptime}%`}</span>${latency}</div>
</li>
`;
}

function incidentOf(incident: ShownIncident, view: StatusView): Markup {
  const { title, impact, startedAt, resolvedAt, updates, numbers } = incident;
  const end = resolvedAt === null ? null : html` to ${time(resolvedAt)}`;
  return html`<article class="incident ${resolvedAt === null ? impact : "over"}">
<h3>${title}</h3>
<p class="when">${impact === "outage" ? "Outage" : "Slow"}, ${resolvedAt === null ? "since " : ""}${time(startedAt)}${end}${namesOf(numbers, view)}</p>
${[...updates].reverse().map(updateOf)}</article>
`;
}

function updateOf({ at, status, message }: ShownIncident["updates"][number]): Markup {
  return html`<div class="update"><p class="when"><strong>${status}</strong>, ${time(at)}</p>${paragraphs(message)}</div>
`;
}

function maintenanceOf(maintenance: ShownMaintenance, view: StatusView): Markup {
  const { title, message, startsAt, endsAt, numbers } = maintenance;
  return html`<article class="incident maintenance">
<h3>${title}</h3>
<p class="when">${isUnderWay(maintenance, view.now) ? "Under way" : "Planned"}, ${time(startsAt)} to ${time(endsAt)}${namesOf(numbers, view)}</p>
${paragraphs(message)}</article>
`;
}

/** The names of what it is about, in the order of the page; of what stands there more than once, the first. */
export function namesOf(numbers: readonly number[], { groups }: StatusView): string | null {
  const wanted = new Set(numbers);
  const names = new Map<number, string>();
  for (const { number, name, row } of groups.flatMap((group) => group.monitors))
    if (wanted.has(number) && !names.has(row.ref)) names.set(row.ref, name);
  return names.size === 0 ? null : `. ${[...names.values()].join(", ")}`;
}

function time(epochMs: number): Markup {
  return html`<time datetime="${isoTime(epochMs)}">${momentText(epochMs)}</time>`;
}
