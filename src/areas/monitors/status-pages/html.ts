import { mapInSlices } from "../../../kernel/background/time-slices.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import { html, Markup, paragraphs } from "../incidents/markup.ts";
import { barsOf, datesFrom } from "./bars.ts";
import { timeText } from "./dates.ts";
import {
  isInProgress,
  omittedText,
  PAST_DAYS,
  type ShownIncident,
  type ShownMaintenance,
  type ShownUpdate,
} from "./events.ts";
import { IMPACT_LABELS, STATE_LABELS } from "./labels.ts";
import type { PageRow } from "./store.ts";
import { DAYS_SHOWN, type ShownMonitor, type StatusView } from "./view.ts";

/** Renders a page as HTML without scripts and third-party content. Links are relative, so they work behind a path prefix. */
export async function statusHtml(view: StatusView, style: string): Promise<string> {
  const { page, incidents, maintenance, now, state, sentence } = view;
  const { slug, settings } = page;
  const openIncidents = incidents.filter(({ resolvedAt }) => resolvedAt === null);
  const pastIncidents = incidents.filter(({ resolvedAt }) => resolvedAt !== null);
  const dates = datesFrom(view.firstDay, DAYS_SHOWN);
  const upcoming = maintenance.filter(({ endsAt }) => endsAt > now);
  const groups: Markup[] = [];
  for (const group of view.groups) groups.push(await groupOf(group, dates));
  const incident = (one: ShownIncident) => incidentOf(one, `${slug}/incidents/${one.id}`);
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
${section("Open incidents", openIncidents.map(incident))}
${section(
  "Maintenance",
  upcoming.map((one) => maintenanceOf(one, now)),
)}
${groups}
<section class="past">
<h2>Past incidents</h2>
${pastIncidents.length === 0 ? html`<p>No incidents in the last ${PAST_DAYS} days.</p>` : pastIncidents.map(incident)}
</section>
</main>
<footer>
${settings.footer === "" ? null : paragraphs(settings.footer)}
<p>${lastCheck(view)}All times are in UTC. <a href="${slug}/feed.atom">Feed</a> <a href="${slug}.json">JSON</a></p>
</footer>
</body>
</html>
`;
  return document.text;
}

/** Renders the page for a slug without a published status page. */
export function notFoundHtml(style: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Status page not found</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="stylesheet" href="${style}">
</head>
<body>
<main><h1>Status page not found</h1><p>No status page is published at this address. Check the address.</p></main>
</body>
</html>
`.text;
}

function lastCheck({ checkedAt }: StatusView): Markup | null {
  return checkedAt === null ? null : html`Last check: ${time(checkedAt)}. `;
}

function section(title: string, parts: readonly Markup[]): Markup | null {
  return parts.length === 0 ? null : html`<section>\n<h2>${title}</h2>\n${parts}</section>`;
}

async function groupOf(
  { name, monitors }: StatusView["groups"][number],
  dates: readonly string[],
): Promise<Markup> {
  const items = await mapInSlices(monitors, (one) => monitorItem(one, dates));
  return html`<section class="group">
<h2${name === "" ? new Markup(' class="unnamed"') : null}>${name === "" ? "Systems" : name}</h2>
<ul>
${items}</ul>
</section>
`;
}

function monitorItem(shown: ShownMonitor, dates: readonly string[]): Markup {
  const { name, url, state, uptime, latencyMs, days } = shown;
  const latency = latencyMs === null ? null : html` <span class="latency">${latencyMs} ms</span>`;
  return html`<li>
<div class="name"><strong>${name}</strong> <span class="state ${state}">${STATE_LABELS[state]}</span></div>
${url === null ? null : html`<div class="url">${url}</div>\n`}${days === null ? null : barsOf(days, dates)}
<div class="numbers"><span>${DAYS_SHOWN} days: ${uptime === null ? "no data" : `${uptime}%`}</span>${latency}</div>
</li>
`;
}

/** Renders an incident within a status page. `address` is the relative URL of the incident's own page. */
function incidentOf(incident: ShownIncident, address: string): Markup {
  const omitted = omittedText(incident);
  return html`<article class="incident ${incidentClass(incident)}">
<h3><a href="${address}">${incident.title}</a></h3>
${incidentTimes(incident)}
${incident.updates.map(updateOf)}${omitted && html`<p class="when"><a href="${address}">${omitted}</a></p>\n`}</article>
`;
}

function incidentClass({ impact, resolvedAt }: ShownIncident): string {
  return resolvedAt === null ? impact : "resolved";
}

function incidentTimes({ impact, startedAt, resolvedAt, names }: ShownIncident): Markup {
  const end = resolvedAt === null ? null : html` to ${time(resolvedAt)}`;
  return html`<p class="when">${IMPACT_LABELS[impact]}, ${resolvedAt === null ? "since " : ""}${time(startedAt)}${end}${names}</p>`;
}

/** Renders the page of one incident, with all updates that fit. Links are relative, so they work behind a path prefix. */
export function incidentHtml({ settings, slug }: PageRow, incident: ShownIncident, style: string): string {
  const omitted = omittedText(incident);
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${incident.title}: ${settings.title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${settings.index ? null : new Markup('<meta name="robots" content="noindex">\n')}<link rel="stylesheet" href="../../${style}">
<link rel="alternate" type="application/json" href="${incident.id}.json">
</head>
<body>
<header>
<h1>${incident.title}</h1>
</header>
<main>
<article class="incident ${incidentClass(incident)}">
${incidentTimes(incident)}
${incident.updates.map(updateOf)}${omitted && html`<p class="when">${omitted} not shown</p>\n`}</article>
</main>
<footer>
<p><a href="../../${slug}">${settings.title}</a> All times are in UTC. <a href="${incident.id}.json">JSON</a></p>
</footer>
</body>
</html>
`.text;
}

function updateOf({ at, status, markup }: ShownUpdate): Markup {
  return html`<div class="update"><p class="when"><strong>${status}</strong>, ${time(at)}</p>${markup}</div>
`;
}

function maintenanceOf(maintenance: ShownMaintenance, now: number): Markup {
  const { title, markup, startsAt, endsAt, names } = maintenance;
  return html`<article class="incident maintenance">
<h3>${title}</h3>
<p class="when">${isInProgress(maintenance, now) ? "In progress" : "Scheduled"}, ${time(startsAt)} to ${time(endsAt)}${names}</p>
${markup}</article>
`;
}

function time(epochMs: number): Markup {
  return html`<time datetime="${isoTime(epochMs)}">${timeText(epochMs)}</time>`;
}
