import { INCIDENT_RETENTION_MS } from "../../../areas/incidents/lifecycle.ts";
import {
  INCIDENT_LENGTHS_MAX,
  INCIDENT_MONITORS_MAX,
  INCIDENT_UPDATES_MAX,
} from "../../../areas/incidents/schema.ts";
import { isoTime, parseDateTime } from "../../../kernel/time/date-time.ts";
import type { Draft } from "../draft.ts";
import { shortened } from "../page-groups.ts";
import { isObject, SourceObject, shown } from "../source.ts";

/** Names of the monitors that components have become. */
export interface KnownComponents {
  readonly byId: Map<string, string>;
  readonly byName: Map<string, string>;
  /** Names that open incidents have. */
  readonly inOpenIncidents: Set<string>;
}

interface Context {
  readonly known: KnownComponents;
  /** Titles that incidents have. */
  readonly titles: Set<string>;
  readonly now: number;
}

const IMPACTS: Readonly<Record<string, "degraded" | "outage">> = {
  none: "degraded",
  minor: "degraded",
  major: "outage",
  critical: "outage",
};
const STATUSES = new Set(["investigating", "identified", "monitoring", "resolved"]);
/** Text of all updates of an incident: a request that creates one has at most 64 KiB, in which a character can take 6 bytes. */
const UPDATE_TEXTS_MAX = 48 * 1024;

/** Fields that are state, repeat others, or say how Statuspage notified people. */
const STATE = [
  ...["id", "page_id", "created_at", "updated_at", "monitoring_at", "shortlink", "metadata", "page"],
  ...[
    "impact_override",
    "backfilled",
    "reminder_intervals",
    "scheduled_reminded_at",
    "scheduled_remind_prior",
  ],
  ...["scheduled_auto_in_progress", "scheduled_auto_completed", "scheduled_auto_transition"],
  ...["auto_transition_to_maintenance_state", "auto_transition_to_operational_state"],
  ...["auto_transition_deliver_notifications_at_start", "auto_transition_deliver_notifications_at_end"],
  ...[
    "auto_tweet_on_creation",
    "auto_tweet_on_completion",
    "auto_tweet_at_beginning",
    "auto_tweet_one_hour_before",
  ],
  ...[
    "postmortem_body_last_updated_at",
    "postmortem_ignored",
    "postmortem_published_at",
    "deliver_notifications",
  ],
  ...["postmortem_notified_subscribers", "postmortem_notified_twitter", "notifications_sent", "user_id"],
];

/** Imports an incident with its times, or a maintenance window that has not ended. */
export function incidentOf(draft: Draft, incident: SourceObject, context: Context): void {
  const name = incident.text("name") ?? "Incident";
  incident.label = `incident ${shown(name)}`;
  const impact = (incident.text("impact") ?? "none").toLowerCase();
  const [from, until] = ["scheduled_for", "scheduled_until"].map((field) => timeOf(incident, field));
  const updates = updatesOf(incident);
  const names = namesOf(incident, context.known);
  const postmortem = incident.text("postmortem_body");
  const status = (incident.text("status") ?? "").toLowerCase();
  const startedAt = timeOf(incident, "started_at") ?? timeOf(incident, "created_at");
  const resolvedAt = timeOf(incident, "resolved_at");
  incident.ignore(...STATE);
  incident.rest();
  if (postmortem !== null) incident.note("postmortem_body", "not carried over");
  if (impact === "maintenance" || from != null) {
    maintenanceOf(draft, incident, {
      name,
      from: from ?? null,
      until: until ?? null,
      names,
      now: context.now,
    });
    return;
  }
  const start = Math.min(startedAt ?? Number.POSITIVE_INFINITY, ...updates.map(({ at }) => at));
  if (!Number.isFinite(start) || start > context.now) {
    incident.noteLoss("started_at", "must be a time of the past");
    return;
  }
  const isResolved = resolvedAt !== null || ["resolved", "postmortem", "completed"].includes(status);
  const last = updates.at(-1)?.at ?? start;
  const end = isResolved ? Math.max(start, Math.min(resolvedAt ?? last, context.now)) : null;
  if (end !== null && end < context.now - INCIDENT_RETENTION_MS) {
    incident.noteLoss("resolved_at", "is more than 400 days ago, after which incidents are deleted");
    return;
  }
  if (end === null) for (const monitor of names) context.known.inOpenIncidents.add(monitor);
  const title = shortened(incident, "name", name, INCIDENT_LENGTHS_MAX.title);
  const day = isoTime(start).slice(0, 10);
  const unique = context.titles.has(title) ? `${title} (${day})` : title;
  context.titles.add(unique);
  draft.add({
    section: "incidents",
    name: unique,
    subject: incident,
    values: {
      impact: IMPACTS[impact] ?? "degraded",
      monitors: incident.limited("components", names, INCIDENT_MONITORS_MAX),
      public: true,
      started_at: isoTime(start),
      resolved_at: end === null ? null : isoTime(end),
      updates: withinLimits(incident, consistent(updates, isResolved)),
    },
  });
}

interface Update {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly status: string;
  readonly message: string;
}

/** Oldest first. */
function updatesOf(incident: SourceObject): readonly Update[] {
  const updates = incident.list("incident_updates").flatMap((value) => {
    const update = new SourceObject(
      incident.draft,
      incident.label,
      isObject(value) ? value : {},
      incident.noun,
    );
    const at = timeOf(update, "display_at") ?? timeOf(update, "created_at");
    const status = (update.text("status") ?? "investigating").toLowerCase();
    const message = shortened(incident, "body", update.text("body") ?? "", INCIDENT_LENGTHS_MAX.message);
    return at === null ? [] : [{ at, status, message }];
  });
  return updates.toReversed().sort((a, b) => a.at - b.at);
}

/** Updates with statuses of ours: what is resolved stays so. An incident that was opened again was not resolved before. */
function consistent(updates: readonly Update[], isResolved: boolean): readonly Update[] {
  const mapped = updates.map(({ status, ...update }) => {
    if (status === "postmortem" || status === "completed") return { ...update, status: "resolved" };
    return { ...update, status: STATUSES.has(status) ? status : "investigating" };
  });
  const lastOpen = isResolved
    ? mapped.findLastIndex(({ status }) => status !== "resolved")
    : mapped.length - 1;
  return mapped.map((update, index) =>
    index <= lastOpen && update.status === "resolved" ? { ...update, status: "monitoring" } : update,
  );
}

/** The newest updates that fit, with times as a file has them. */
function withinLimits(incident: SourceObject, updates: readonly Update[]): readonly object[] {
  let bytes = 0;
  const kept = updates
    .toReversed()
    .slice(0, INCIDENT_UPDATES_MAX)
    .filter(({ message }) => {
      bytes += JSON.stringify(message).length + 100;
      return bytes <= UPDATE_TEXTS_MAX;
    })
    .reverse();
  if (kept.length < updates.length)
    incident.note("incident_updates", `only the newest ${kept.length} of ${updates.length} are carried over`);
  return kept.map(({ at, ...update }) => ({ at: isoTime(at), ...update }));
}

/** The names of the monitors that an incident affects. */
function namesOf(incident: SourceObject, { byId, byName }: KnownComponents): readonly string[] {
  const names = incident.list("components").flatMap((value) => {
    const { id, name } = isObject(value) ? value : { id: value, name: value };
    const found = byId.get(String(id)) ?? byName.get(String(name));
    if (found === undefined)
      incident.note("components", `there is no component ${shown(String(name ?? id))}`);
    return found ?? [];
  });
  return [...new Set(names)];
}

function maintenanceOf(
  draft: Draft,
  incident: SourceObject,
  {
    name,
    from,
    until,
    names,
    now,
  }: {
    readonly name: string;
    readonly from: number | null;
    readonly until: number | null;
    readonly names: readonly string[];
    readonly now: number;
  },
): void {
  if (from === null || until === null || until <= now) {
    incident.noteLoss("scheduled_until", "has passed: past maintenance is not carried over");
    return;
  }
  draft.add({
    section: "maintenance",
    name,
    subject: incident,
    values: {
      starts_at: isoTime(from),
      ends_at: isoTime(until),
      public: true,
      monitors: incident.limited("components", names, INCIDENT_MONITORS_MAX),
    },
  });
}

/** A time as the API or a table has it, `2025-01-31T12:00:00Z` or `2025-01-31 12:00 UTC`; null if there is none. */
function timeOf(source: SourceObject, field: string): number | null {
  const text = source.text(field);
  if (text === null) return null;
  const exact = parseDateTime(text);
  if (exact !== null) return exact;
  const [, day, clock, seconds = ":00"] =
    /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2})(:\d{2})?(?: ?UTC)?$/.exec(text) ?? [];
  const time = parseDateTime(`${day}T${clock}${seconds}Z`);
  if (time === null) source.note(field, `${shown(text)} is no time`);
  return time;
}
