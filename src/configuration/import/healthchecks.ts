import { MONITOR_CHANNELS_MAX } from "../../areas/monitors/schema.ts";
import { StartupError } from "../../kernel/errors.ts";
import { isCron, isTimeZone } from "../../kernel/scheduler/calendar.ts";
import { SECOND_MS } from "../../kernel/time/units.ts";
import { type Draft, Secret } from "./draft.ts";
import { IMPORT_DEFAULTS, type ImportOptions, isObject, SourceObject, shown } from "./source.ts";

/** Fields of a check that are state, or addresses of the other server. */
const STATE = [
  ...["n_pings", "started", "last_ping", "next_ping", "last_duration", "badge_url", "unique_key", "uuid"],
  ...["ping_url", "update_url", "pause_url", "resume_url", "status"],
];

/** Settings by kind of integration: the API tells names and kinds only. The values have the form of real ones. */
const CHANNEL_SETTINGS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  webhook: { kind: "webhook", url: Secret.unknown("https://example.com/") },
  slack: { kind: "slack", url: Secret.unknown("https://example.com/") },
  discord: { kind: "discord", url: Secret.unknown("https://example.com/") },
  telegram: { kind: "telegram", token: Secret.unknown("1:a"), chat_id: Secret.unknown("-1") },
  ntfy: { kind: "ntfy", url: Secret.unknown("https://example.com/") },
  gotify: { kind: "gotify", url: Secret.unknown("https://example.com/"), token: Secret.unknown("a") },
  apprise: { kind: "apprise", url: Secret.unknown("https://example.com/") },
  email: { kind: "email", to: [Secret.unknown("a@example.com")] },
};

/**
 * Imports the checks and integrations of a Healthchecks project: the responses to `GET /api/v3/checks/` and
 * `GET /api/v3/channels/`, or an object with the members of both; also those of versions 1 and 2 of the API.
 * `keepsIds`: heartbeats keep the UUIDs of their ping URLs. @throws StartupError
 */
export function importHealthchecks(
  draft: Draft,
  value: unknown,
  { keepsIds }: ImportOptions = IMPORT_DEFAULTS,
): void {
  const source = Array.isArray(value) ? { checks: value } : value;
  if (!isObject(source) || !Array.isArray(source["checks"]))
    throw new StartupError(
      'The checks of Healthchecks must be {"checks": […]}, as GET /api/v3/checks/ returns them.',
    );
  const all = new SourceObject(draft, "Healthchecks", source);
  const channels = new Map<string, string | null>();
  for (const [index, channel] of all.list("channels").entries()) channelOf(draft, channel, index, channels);
  const slugs = new Set<string>();
  for (const [index, check] of all.list("checks").entries())
    checkOf(draft, check, { index, channels, slugs, keepsIds });
  all.rest();
}

function channelOf(draft: Draft, value: unknown, index: number, channels: Map<string, string | null>): void {
  const channel = new SourceObject(draft, `integration ${index + 1}`, value, "integration");
  const [id, kind] = [channel.text("id"), channel.text("kind") ?? ""];
  const name = channel.text("name") ?? kind;
  channel.label = `integration ${shown(name)}`;
  const settings = Object.hasOwn(CHANNEL_SETTINGS, kind) ? CHANNEL_SETTINGS[kind] : undefined;
  channel.rest();
  if (settings === undefined) channel.noteLoss("kind", `${shown(kind)} is not supported`);
  const added =
    settings === undefined
      ? null
      : draft.add({
          section: "channels",
          name,
          subject: channel,
          values: { ...settings, default: false },
        });
  if (id !== null) channels.set(id, added);
}

interface Context extends ImportOptions {
  readonly index: number;
  readonly channels: ReadonlyMap<string, string | null>;
  readonly slugs: Set<string>;
}

function checkOf(draft: Draft, value: unknown, { index, channels, slugs, keepsIds }: Context): void {
  const check = new SourceObject(draft, `check ${index + 1}`, value, "check");
  const slug = check.text("slug");
  const name = check.text("name") ?? slug ?? check.text("uuid") ?? check.text("unique_key") ?? "check";
  check.label = `check ${shown(name)}`;
  const isPaused = check.text("status") === "paused";
  const isTaken = slug !== null && slugs.has(slug);
  if (isTaken) check.note("slug", `${shown(slug)} belongs to another check: not carried over`);
  if (slug !== null) slugs.add(slug);
  const times = timesOf(check);
  const uuid = check.text("uuid");
  const common = {
    type: "heartbeat",
    ping_id: keepsIds ? uuid : null,
    slug: isTaken ? null : slug,
    grace_ms: milliseconds(check, "grace"),
    group: groupOf(check),
    channels: channelsOf(check, channels),
    active: isPaused ? false : null,
  };
  check.ignore(...STATE);
  check.rest();
  if (times === null) return;
  if (!keepsIds)
    check.noteChange("ping_url", "is new: apply prints it; with --keep-ids, only its host changes");
  else if (uuid === null)
    check.noteChange("ping_url", "is new: a read-only key does not see the UUIDs, use one that may write");
  else check.noteAddress(`/ping/${uuid}`);
  draft.add({ section: "monitors", name, subject: check, values: { ...common, ...times } });
}

/** Null for a schedule that no monitor can have. */
function timesOf(check: SourceObject): Readonly<Record<string, unknown>> | null {
  const schedule = check.text("schedule");
  const tz = check.text("tz");
  if (schedule === null) return { period_ms: milliseconds(check, "timeout") };
  if (isCron(schedule, tz ?? "UTC") && (tz === null || isTimeZone(tz))) return { schedule, tz };
  const zone = tz === null ? "" : ` in ${shown(tz)}`;
  check.noteLoss(
    "schedule",
    `${shown(schedule)}${zone} is no cron expression of five fields: the check is not carried over`,
  );
  return null;
}

function milliseconds(check: SourceObject, name: string): number | null {
  const seconds = check.number(name);
  return seconds === null ? null : seconds * SECOND_MS;
}

/** The first tag. */
function groupOf(check: SourceObject): string | null {
  const [first, ...others] = (check.text("tags") ?? "").split(" ").filter((tag) => tag !== "");
  if (others.length > 0)
    check.note("tags", `only the first, ${shown(first ?? "")}, is carried over, as group`);
  return first ?? null;
}

/** Null where the key could not read them: the monitor then uses the default channels. */
function channelsOf(
  check: SourceObject,
  channels: ReadonlyMap<string, string | null>,
): readonly string[] | null {
  const ids = check.any("channels");
  if (ids === null) {
    check.noteChange("channels", "are the default ones: the key is read-only and does not see them");
    return null;
  }
  if (typeof ids !== "string") throw new StartupError(`${check.label}: channels must be a text.`);
  const names = ids
    .split(",")
    .filter((id) => id !== "")
    .flatMap((id) => {
      const name = channels.get(id);
      if (name === undefined) check.note("channels", `there is no integration ${shown(id)}`);
      else if (name === null) check.note("channels", `integration ${shown(id)} is not carried over`);
      return name ?? [];
    });
  return check.limited("channels", names, MONITOR_CHANNELS_MAX);
}
