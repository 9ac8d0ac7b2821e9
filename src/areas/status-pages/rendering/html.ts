import { mapInSlices } from "../../../kernel/background/time-slices.ts";
import { documentOf, headerOf } from "../../../kernel/data/document.ts";
import type { ShownState } from "../../../kernel/data/incident-words.ts";
import { html, Markup, paragraphs } from "../../../kernel/data/markup.ts";
import {
  endingWith,
  isInProgress,
  omittedText,
  PAST_DAYS,
  type ShownIncident,
  type ShownMaintenance,
  type ShownOutage,
  type ShownUpdate,
} from "../events.ts";
import { IMPACT_LABELS, STATE_LABELS } from "../labels.ts";
import type { PageRow } from "../store.ts";
import { DAYS_SHOWN, HOURS_SHOWN, type ShownGroup, type ShownMonitor, type StatusView } from "../view.ts";
import { barsOf, datesFrom, hourBarsOf, hoursFrom } from "./bars.ts";
import { durationText, weekdayText } from "./dates.ts";
import { type PageTimes, zoneForm } from "./times.ts";

/** Up to so many monitors, all groups of a page are unfolded; on larger pages only those with a problem. */
export const UNFOLDED_MONITORS_MAX = 10;

/** Renders a page as HTML without scripts and third-party content. Links are relative, so they work behind a path prefix. */
export async function statusHtml(view: StatusView, { style, hasMail, times }: PageAssets): Promise<string> {
  const { page, incidents, maintenance, now, state, sentence } = view;
  const { slug, settings } = page;
  const openIncidents = incidents.filter(({ resolvedAt }) => resolvedAt === null);
  const upcoming = maintenance.filter(({ endsAt }) => endsAt > now);
  const groups: Markup[] = [];
  const labels = {
    dates: datesFrom(view.firstDay, DAYS_SHOWN),
    hours: hoursFrom(view.firstHour, HOURS_SHOWN),
  };
  const total = view.groups.reduce((sum, { monitors }) => sum + monitors.length, 0);
  for (const group of view.groups) groups.push(await groupOf(group, total, labels));
  return documentOf({
    title: `${settings.title}: ${sentence}`,
    style,
    icon: `${slug}/icon`,
    index: settings.index,
    head: html`<link rel="alternate" type="application/atom+xml" title="Incidents and maintenance" href="${slug}/feed.atom">
<link rel="alternate" type="application/json" href="${slug}.json">
`,
    body: html`${pageHeader(page, hasMail)}<main>
${settings.description === "" ? null : html`<div class="description">${paragraphs(settings.description)}</div>\n`}<div class="banner ${state}">
<p class="sentence">${sentence}</p>
<p class="checked">${lastCheck(view, times)}refreshes every minute</p>
</div>
${eventsSection(
  "Open incidents",
  openIncidents.map((incident) =>
    openIncident(incident, `${slug}/incidents/${incident.id}${times.query}`, { now, times }),
  ),
)}
${eventsSection(
  "Maintenance",
  upcoming.map((window) => maintenanceOf(window, slug, { now, times })),
)}
${groups}
${pastSection(view, times)}</main>
<footer>
${settings.footer === "" ? null : paragraphs(settings.footer)}
<p>All times are in ${times.zone}${times.zone === "UTC" ? null : ", those of bars in UTC"}. <a href="${slug}/feed.atom">Feed</a> <a href="${slug}.json">JSON</a></p>
${zoneForm(times.zone)}</footer>
`,
  });
}

/** What a page links to besides its own addresses. */
export interface PageAssets {
  /** File name of the stylesheet. */
  readonly style: string;
  /** Whether updates can be subscribed to by e-mail. */
  readonly hasMail: boolean;
  readonly times: PageTimes;
}

/** The time of a page, epoch milliseconds, and its zone. */
interface Clocks {
  readonly now: number;
  readonly times: PageTimes;
}

function pageHeader({ slug, settings: { title, website_url } }: PageRow, hasMail: boolean): Markup {
  const website =
    website_url === null
      ? null
      : html`<a class="website" href="${website_url}" rel="noopener">${new URL(website_url).host}</a>\n`;
  const mail = hasMail ? html`<li><a href="${slug}/subscribe">By e-mail</a></li>\n` : null;
  return headerOf(
    `${slug}/icon`,
    title,
    html`${website}<details class="updates">
<summary>Get updates</summary>
<ul>
${mail}<li><a href="${slug}/feed.atom">Atom feed</a></li>
<li><a href="${slug}/maintenance.ics">Calendar of maintenance</a></li>
</ul>
</details>
`,
  );
}

/** Renders the page for a slug without a published status page. */
export function notFoundHtml(style: string): string {
  const text = "No status page is published at this address. Check the address.";
  return noticeHtml(style, "Status page not found", text);
}

/** Renders a page that says one thing. */
export function noticeHtml(style: string, title: string, text: string): string {
  const body = html`<main><h1>${title}</h1><p>${text}</p></main>\n`;
  return documentOf({ title, style, icon: null, index: false, body });
}

function lastCheck({ checkedAt }: StatusView, times: PageTimes): Markup | null {
  return checkedAt === null ? null : html`Last check: ${times.time(checkedAt)} ${times.zone} · `;
}

function eventsSection(title: string, parts: readonly Markup[]): Markup | null {
  return parts.length === 0
    ? null
    : html`<section>\n<h2>${title}</h2>\n<div class="events">${parts}</div></section>`;
}

/** A named group of a large page can be folded, and is unless one of its monitors has a problem. */
async function groupOf(
  { name, state, label, monitors }: ShownGroup,
  monitorsOfPage: number,
  labels: BarLabels,
): Promise<Markup> {
  const items = await mapInSlices(monitors, (monitor) => monitorItem(monitor, labels));
  const list = html`<ul>
${items}</ul>
`;
  if (name === "")
    return html`<section class="group">\n<h2 class="unnamed">Systems</h2>\n${list}</section>\n`;
  const isOpen = state !== "up" || monitorsOfPage <= UNFOLDED_MONITORS_MAX;
  return html`<details class="group"${isOpen ? new Markup(" open") : null}>
<summary><h2>${name}</h2> <span class="state ${state}">${label}</span></summary>
${list}</details>
`;
}

interface BarLabels {
  readonly dates: readonly string[];
  readonly hours: readonly string[];
}

function monitorItem(shown: ShownMonitor, { dates, hours }: BarLabels): Markup {
  const { name, url, state, uptime, latencyMs, days } = shown;
  const latency = latencyMs === null ? null : html` <span class="latency">${latencyMs} ms</span>`;
  const bars =
    days === null || shown.hours === null
      ? null
      : html`${barsOf(days, dates)}${barAxis(days, dates)}${hourBarsOf(shown.hours, hours)}<div class="axis"><span>24 hours ago</span><span>now</span></div>
`;
  return html`<li>
<div class="name"><strong>${name}</strong> <span class="state ${state}">${STATE_LABELS[state]}</span></div>
${url === null ? null : html`<div class="url">${url}</div>\n`}${bars}<div class="numbers"><span>${uptime === null ? "No data" : `${uptime}% uptime`} in ${DAYS_SHOWN} days</span>${latency}</div>
</li>
`;
}

function barAxis(days: readonly unknown[], dates: readonly string[]): Markup {
  const first = days.findIndex((day) => day !== null);
  const since = first > 0 ? html`<span>measured since ${dates[first] ?? ""}</span>` : null;
  return html`<div class="axis"><span>${DAYS_SHOWN} days ago</span>${since}<span>today</span></div>\n`;
}

/** Renders an open incident within a status page. `address` is the relative URL of the incident's own page. */
function openIncident(incident: ShownIncident, address: string, { now, times }: Clocks): Markup {
  const { impact, title, names, startedAt } = incident;
  const omitted = omittedText(incident);
  return html`<article class="incident">
<h3><a href="${address}">${title}</a> <span class="state ${IMPACT_STATES[impact]}">${IMPACT_LABELS[impact]} · ${durationText(now - startedAt)}</span></h3>
${names === "" ? null : html`<p class="when">Affects ${names}</p>\n`}<div class="timeline">
${incident.updates.map((update) => updateOf(update, times))}<p class="when">Since ${times.time(startedAt)} ${times.zone}</p>
</div>
${omitted && html`<p class="when"><a href="${address}">${omitted}</a></p>\n`}</article>
`;
}

/** The color of an impact is that of the state that it means for a monitor. */
const IMPACT_STATES: Readonly<Record<ShownIncident["impact"], ShownState>> = {
  degraded: "degraded",
  outage: "down",
};

/** Past incidents and outages by day. Beside bars with failures, a day without any is left out, and an empty list as a whole. */
function pastSection({ page, incidents, outages, groups, now }: StatusView, times: PageTimes): Markup | null {
  const { slug, settings } = page;
  const resolved = incidents.filter(({ resolvedAt }) => resolvedAt !== null);
  const past = [
    ...resolved.map((incident) => ({
      at: incident.startedAt,
      item: pastIncident(incident, `${slug}/incidents/${incident.id}${times.query}`, times),
    })),
    // With `all`, each outage is an incident.
    ...(settings.publish_incidents === "outages" ? outages : []).map((outage) => ({
      at: outage.startedAt,
      item: outageOf(outage, { now, times }),
    })),
  ].sort((a, b) => b.at - a.at);
  const byDay = Map.groupBy(past, ({ at }) => times.dayOf(at));
  const hasFailures = groups.some(({ monitors }) =>
    monitors.some(({ state, uptime }) => state === "down" || (uptime !== null && uptime < 100)),
  );
  if (hasFailures && past.length === 0) return null;
  const usual = times.daysUpTo(now, PAST_DAYS);
  const empty = hasFailures ? [] : usual.filter((day) => !byDay.has(day));
  const days = [...byDay.keys(), ...empty].sort((a, b) => b - a);
  return html`<section class="past">
<h2>Past incidents</h2>
${days.map((day) => {
  const items = byDay.get(day)?.map(({ item }) => item);
  return html`<h3 class="day">${weekdayText(day)}</h3>
${items ?? new Markup('<p class="when">No incidents.</p>\n')}`;
})}</section>
`;
}

function outageOf({ name, startedAt, endedAt }: ShownOutage, { now, times }: Clocks): Markup {
  const duration = durationText((endedAt ?? now) - startedAt);
  const period =
    endedAt === null
      ? html`since ${times.time(startedAt)} ${times.zone}`
      : html`${times.time(startedAt)} to ${times.endOf(startedAt, endedAt)} ${times.zone}`;
  return html`<article class="incident">
<h4>${name} ${endedAt === null ? "is" : "was"} down</h4>
<p class="when">Down for <strong>${duration}</strong>, ${period}</p>
</article>
`;
}

function pastIncident(incident: ShownIncident, address: string, times: PageTimes): Markup {
  const { title, startedAt, resolvedAt, names, updates, impact } = incident;
  const end = resolvedAt ?? startedAt;
  const last = updates[0];
  const omitted = omittedText(incident);
  return html`<article class="incident">
<h4><a href="${address}">${title}</a></h4>
<p class="when">${IMPACT_LABELS[impact]} for <strong>${durationText(end - startedAt)}</strong>, ${times.time(startedAt)} to ${times.endOf(startedAt, end)} ${times.zone}${endingWith(names)}</p>
${last?.markup ?? null}${omitted && html`<p class="when"><a href="${address}">${omitted}</a></p>\n`}</article>
`;
}

function incidentTimes({ impact, startedAt, resolvedAt, names }: ShownIncident, times: PageTimes): Markup {
  const end = resolvedAt === null ? null : html` to ${times.time(resolvedAt)}`;
  const duration = resolvedAt === null ? "" : ` (${durationText(resolvedAt - startedAt)})`;
  return html`<p class="when">${IMPACT_LABELS[impact]}, ${resolvedAt === null ? "since " : ""}${times.time(startedAt)}${end}${duration}${endingWith(names)}</p>`;
}

/** Renders the page of one incident, with all updates that fit. Links are relative, so they work behind a path prefix. */
export function incidentHtml(
  { settings, slug }: PageRow,
  incident: ShownIncident,
  { style, times }: Pick<PageAssets, "style" | "times">,
): string {
  const omitted = omittedText(incident);
  return documentOf({
    title: `${incident.title}: ${settings.title}`,
    style: `../../${style}`,
    icon: "../icon",
    index: settings.index,
    head: html`<link rel="alternate" type="application/json" href="${incident.id}.json">\n`,
    body: html`${headerOf("../icon", incident.title)}<main>
<div class="events"><article class="incident">
${incidentTimes(incident, times)}
${incident.updates.map((update) => updateOf(update, times))}${omitted && html`<p class="when">${omitted} not shown</p>\n`}</article></div>
</main>
<footer>
<p><a href="../../${slug}${times.query}">${settings.title}</a> All times are in ${times.zone}. <a href="${incident.id}.json">JSON</a></p>
</footer>
`,
  });
}

function updateOf({ at, status, markup }: ShownUpdate, times: PageTimes): Markup {
  return html`<div class="update"><p class="when"><strong>${status}</strong> ${times.time(at)} ${times.zone}</p>${markup}</div>
`;
}

function maintenanceOf(maintenance: ShownMaintenance, slug: string, { now, times }: Clocks): Markup {
  const { title, markup, startsAt, endsAt, names } = maintenance;
  const isNow = isInProgress(maintenance, now);
  const state = isNow ? "In progress" : `Scheduled, in ${durationText(startsAt - now)}`;
  return html`<article class="incident">
<h3>${title} <span class="state maintenance">${state}</span></h3>
<p class="when">${times.weekday(startsAt)}, ${times.clock(startsAt)} to ${times.endOf(startsAt, endsAt)} ${times.zone}${endingWith(names)} · <a href="${slug}/maintenance.ics">Add to calendar</a></p>
${markup}</article>
`;
}
