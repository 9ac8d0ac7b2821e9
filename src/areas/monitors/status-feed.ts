import { isoTime, isoTimeOrNull } from "../../kernel/date-time.ts";
import { html, type Markup, paragraphs } from "./markup.ts";
import { namesOf } from "./status-html.ts";
import { type ShownIncident, type ShownMaintenance, type StatusView, uptimeOf } from "./status-view.ts";

/** The page as data: what it shows, and nothing besides. */
export function statusJson(view: StatusView): string {
  const { page, groups, incidents, maintenance } = view;
  const { title, description, footer } = page.settings;
  return JSON.stringify({
    ...{ slug: page.slug, title, description, footer },
    ...{ status: view.state, sentence: view.sentence },
    checked_at: isoTimeOrNull(view.checkedAt),
    first_day: isoTime(view.firstDay).slice(0, 10),
    groups: groups.map(({ name, monitors }) => ({ name, monitors: monitors.map(monitorJson) })),
    incidents: incidents.map(
      ({ title: called, impact, status, startedAt, resolvedAt, updates, numbers }) => ({
        ...{ title: called, impact, status, started_at: isoTime(startedAt) },
        ...{ resolved_at: isoTimeOrNull(resolvedAt), monitors: numbers },
        updates: updates.map(({ at, ...update }) => ({ at: isoTime(at), ...update })),
      }),
    ),
    maintenance: maintenance.map(({ title: called, message, startsAt, endsAt, numbers }) => ({
      ...{
        title: called,
        message,
        starts_at: isoTime(startsAt),
        ends_at: isoTime(endsAt),
        monitors: numbers,
      },
    })),
  });
}

function monitorJson(shown: StatusView["groups"][number]["monitors"][number]): object {
  const { number, name, url, state, uptime, latencyMs, days } = shown;
  return {
    ...{ number, name, status: state, uptime_90d: uptime },
    ...(url === null ? {} : { url }),
    ...(latencyMs === null ? {} : { latency_ms: latencyMs }),
    uptime_by_day: days === null ? null : days.map((row) => row && uptimeOf([row])),
  };
}

/** The feed: what happened and what is planned. `address` is the page's own, absolute. */
export function statusFeed(view: StatusView, address: string): string {
  const { page, incidents, maintenance } = view;
  const { title, description } = page.settings;
  const entries = [
    ...incidents.map((one) => incidentEntry(one, view, address)),
    ...maintenance.map((one) => maintenanceEntry(one, view, address)),
  ].sort((one, other) => other.updated - one.updated);
  const updated = Math.max(page.updatedAt, ...entries.map((entry) => entry.updated));
  return html`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${urnOf(page.pageId)}</id>
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

function incidentEntry(incident: ShownIncident, view: StatusView, address: string): Entry {
  const { title, startedAt, resolvedAt, updates, numbers, impact } = incident;
  const updated = Math.max(startedAt, resolvedAt ?? 0, ...updates.map(({ at }) => at));
  const ended = resolvedAt === null ? null : html`<p>Resolved ${isoTime(resolvedAt)}.</p>`;
  const told = [...updates].reverse();
  const content = html`<p>${impact === "outage" ? "Outage" : "Slow"} since ${isoTime(startedAt)}${namesOf(numbers, view)}.</p>
${ended}${told.map(({ at, status, message }) => html`<p><b>${status}</b>, ${isoTime(at)}</p>${paragraphs(message)}`)}`;
  const state = resolvedAt === null ? "" : "Resolved: ";
  return entryOf(
    { id: incident.id, title: `${state}${title}`, published: startedAt, updated, content },
    view,
    address,
  );
}

function maintenanceEntry(maintenance: ShownMaintenance, view: StatusView, address: string): Entry {
  const { id, title, message, startsAt, endsAt, announcedAt, numbers } = maintenance;
  const content = html`<p>From ${isoTime(startsAt)} to ${isoTime(endsAt)}${namesOf(numbers, view)}.</p>${paragraphs(message)}`;
  return entryOf(
    { id, title: `Maintenance: ${title}`, published: announcedAt, updated: announcedAt, content },
    view,
    address,
  );
}

function entryOf(
  { id, title, published, updated, content }: Entryable,
  { page }: StatusView,
  address: string,
): Entry {
  return {
    updated,
    markup: html`<entry>
<id>${urnOf(`${page.pageId} ${id}`)}</id>
<title>${title}</title>
<published>${isoTime(published)}</published>
<updated>${isoTime(updated)}</updated>
<link rel="alternate" type="text/html" href="${address}"/>
<content type="html">${content.text}</content>
</entry>
`,
  };
}

interface Entryable {
  readonly id: string;
  readonly title: string;
  readonly published: number;
  readonly updated: number;
  readonly content: Markup;
}

/** A name that stays the same and tells nothing: a UUID (version 8) of a digest. */
function urnOf(what: string): string {
  const digits = Bun.CryptoHasher.hash("sha256", what, "hex");
  const groups = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `8${digits.slice(17, 20)}`,
  ];
  return `urn:uuid:${[...groups, digits.slice(20, 32)].join("-")}`;
}
