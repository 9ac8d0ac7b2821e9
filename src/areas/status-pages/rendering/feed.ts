import { mapInSlices } from "../../../kernel/background/time-slices.ts";
import { html, type Markup } from "../../../kernel/data/markup.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import { uptimeOf } from "../domain.ts";
import {
  endingWith,
  omittedText,
  type PageEvents,
  type ShownIncident,
  type ShownMaintenance,
  type ShownOutage,
} from "../events.ts";
import { IMPACT_LABELS } from "../labels.ts";
import type { PageRow } from "../store.ts";
import type { GroupView, ShownGroup, ShownMonitor, StatusView } from "../view.ts";
import { durationText } from "./dates.ts";

/** Renders the page as JSON: the same content as the HTML page. */
export async function statusJson(view: StatusView): Promise<string> {
  const { page, groups, incidents, maintenance, outages, now } = view;
  const { title, description, footer } = page.settings;
  const shown: object[] = [];
  for (const group of groups) shown.push(await groupObject(group));
  return JSON.stringify({
    slug: page.slug,
    title,
    description,
    footer,
    status: view.state,
    sentence: view.sentence,
    checked_at: isoTimeOrNull(view.checkedAt),
    first_day: isoTime(view.firstDay).slice(0, 10),
    groups: shown,
    incidents: incidents.map(incidentObject),
    outages: outages.map(({ number, name, startedAt, endedAt }) => ({
      monitor: number,
      name,
      started_at: isoTime(startedAt),
      ended_at: isoTimeOrNull(endedAt),
      duration_ms: (endedAt ?? now) - startedAt,
    })),
    maintenance: maintenance.map((window) => ({
      title: window.title,
      message: window.message,
      starts_at: isoTime(window.startsAt),
      ends_at: isoTime(window.endsAt),
      monitors: window.numbers,
    })),
  });
}

/** Renders a group as JSON, with the same content as in the JSON of its page. */
export async function groupJson({ group, firstDay, checkedAt }: GroupView): Promise<string> {
  const { monitors, ...head } = await groupObject(group);
  return JSON.stringify({
    ...head,
    checked_at: isoTimeOrNull(checkedAt),
    first_day: isoTime(firstDay).slice(0, 10),
    monitors,
  });
}

async function groupObject({ number, name, state, sentence, monitors }: ShownGroup) {
  return { number, name, status: state, sentence, monitors: await mapInSlices(monitors, monitorJson) };
}

/** Renders an incident as JSON, with the same updates as its HTML page. */
export function incidentJson(incident: ShownIncident): string {
  return JSON.stringify(incidentObject(incident));
}

function incidentObject(incident: ShownIncident): object {
  return {
    id: incident.id,
    title: incident.title,
    impact: incident.impact,
    status: incident.status,
    started_at: isoTime(incident.startedAt),
    resolved_at: isoTimeOrNull(incident.resolvedAt),
    monitors: incident.numbers,
    updates_count: incident.updatesCount,
    updates: incident.updates
      .map(({ at, status, message }) => ({ at: isoTime(at), status, message }))
      .reverse(),
  };
}

function monitorJson({ number, name, url, state, uptime, latencyMs, days }: ShownMonitor): object {
  return {
    number,
    name,
    status: state,
    uptime_90d: uptime,
    ...(url === null ? {} : { url }),
    ...(latencyMs === null ? {} : { latency_ms: latencyMs }),
    uptime_by_day: days === null ? null : days.map((row) => row && uptimeOf([row])),
  };
}

/** Renders incidents and maintenance as an Atom feed. `address` is the absolute URL of the page. */
export async function statusFeed(events: PageEvents, address: string): Promise<string> {
  const { page, incidents, maintenance, outages } = events;
  // Automatic incidents have entries of their own.
  const ownOutages = page.settings.publish_incidents === "outages" ? outages : [];
  const { title, description } = page.settings;
  const entries = [
    ...(await mapInSlices(incidents, (incident) => incidentEntry(incident, page, address))),
    ...(await mapInSlices(maintenance, (window) => maintenanceEntry(window, page, address))),
    ...(await mapInSlices(ownOutages, (outage) => outageEntry(outage, page, address))),
  ].sort((a, b) => b.updated - a.updated);
  const updated = Math.max(page.updatedAt, ...entries.map((entry) => entry.updated));
  return html`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${urn(page.id)}</id>
<title>${title}</title>
${description === "" ? null : html`<subtitle>${description}</subtitle>\n`}<updated>${isoTime(updated)}</updated>
<author><name>${title}</name></author>
<link rel="self" type="application/atom+xml" href="${address}/feed.atom"/>
<link rel="alternate" type="text/html" href="${address}"/>
${entries.map((entry) => entry.markup)}</feed>
`.text;
}

interface Entry {
  readonly updated: number;
  readonly markup: Markup;
}

function incidentEntry(incident: ShownIncident, page: PageRow, address: string): Entry {
  const { title, startedAt, resolvedAt, updates, names, impact } = incident;
  const updated = Math.max(startedAt, resolvedAt ?? 0, ...updates.map(({ at }) => at));
  const resolution = resolvedAt === null ? null : html`<p>Resolved ${isoTime(resolvedAt)}.</p>`;
  const omitted = omittedText(incident);
  const content = html`<p>${IMPACT_LABELS[impact]} since ${isoTime(startedAt)}${endingWith(names)}.</p>
${resolution}${updates.map(({ at, status, markup }) => html`<p><b>${status}</b>, ${isoTime(at)}</p>${markup}`)}${omitted && html`<p>${omitted}.</p>`}`;
  const prefix = resolvedAt === null ? "" : "Resolved: ";
  return entryOf(
    { id: incident.id, title: `${prefix}${title}`, published: startedAt, updated, content },
    page,
    address,
  );
}

function outageEntry({ id, name, startedAt, endedAt }: ShownOutage, page: PageRow, address: string): Entry {
  const end = endedAt === null ? "" : ` to ${isoTime(endedAt)} (${durationText(endedAt - startedAt)})`;
  return entryOf(
    {
      id,
      title: `${name} ${endedAt === null ? "is" : "was"} down`,
      published: startedAt,
      updated: endedAt ?? startedAt,
      content: html`<p>${endedAt === null ? "Down since" : "Down from"} ${isoTime(startedAt)}${end}.</p>`,
    },
    page,
    address,
  );
}

function maintenanceEntry(maintenance: ShownMaintenance, page: PageRow, address: string): Entry {
  const { id, title, markup, startsAt, endsAt, announcedAt, names } = maintenance;
  const content = html`<p>From ${isoTime(startsAt)} to ${isoTime(endsAt)}${endingWith(names)}.</p>${markup}`;
  return entryOf(
    { id, title: `Maintenance: ${title}`, published: announcedAt, updated: announcedAt, content },
    page,
    address,
  );
}

function entryOf(
  { id, title, published, updated, content }: EntryContent,
  page: PageRow,
  address: string,
): Entry {
  return {
    updated,
    markup: html`<entry>
<id>${urn(`${page.id} ${id}`)}</id>
<title>${title}</title>
<published>${isoTime(published)}</published>
<updated>${isoTime(updated)}</updated>
<link rel="alternate" type="text/html" href="${address}"/>
<content type="html">${content.text}</content>
</entry>
`,
  };
}

interface EntryContent {
  readonly id: string;
  readonly title: string;
  readonly published: number;
  readonly updated: number;
  readonly content: Markup;
}

/** Derives a stable name that reveals nothing about its input: a UUID (version 8) from a digest. */
function urn(input: string): string {
  const digits = Bun.CryptoHasher.hash("sha256", input, "hex");
  const groups = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `8${digits.slice(17, 20)}`,
  ];
  return `urn:uuid:${[...groups, digits.slice(20, 32)].join("-")}`;
}
