import type { Channel } from "../../../../client/generated/api.ts";
import { toast } from "../../core/toasts.ts";
import type { RowOf } from "../../ui/data-form.tsx";
import { DataForm } from "../../ui/form.tsx";
import { LINES, SECONDS, SECRET } from "../../ui/kinds.ts";
import { Escalation } from "./escalation.tsx";
import { QuietHours } from "./quiet-hours.tsx";

type Setting = "url" | "token" | "chat_id" | "to";

const KINDS: readonly (readonly [kind: Channel["kind"], label: string, settings: readonly Setting[]])[] = [
  ["slack", "Slack, Mattermost, Rocket.Chat", ["url"]],
  ["discord", "Discord", ["url"]],
  ["telegram", "Telegram", ["token", "chat_id"]],
  ["ntfy", "ntfy", ["url", "token"]],
  ["gotify", "Gotify", ["url", "token"]],
  ["email", "E-mail", ["to"]],
  ["webhook", "Signed webhook", ["url"]],
  ["apprise", "Apprise", ["url"]],
];

const EVENTS = [
  ["monitor.down", "goes down"],
  ["monitor.up", "recovers"],
  ["monitor.degraded", "becomes slow"],
  ["monitor.recovered", "is fast again"],
  ["monitor.certificate", "has a certificate that expires soon"],
  ["monitor.domain", "has a registration that expires soon"],
  ["monitor.flapping", "is flapping"],
  ["monitor.acknowledged", "is acknowledged"],
  ["monitor.overdue", "was never pinged"],
  ["monitor.runs_exceeded", "runs more often than allowed"],
  ["monitor.unknown", "cannot be checked any more"],
  ["probe.offline", "has a probe that is offline"],
  ["probe.online", "has its probe back"],
  ["observer.offline", "could not be checked (the server was offline)"],
  ["maintenance.started", "is under maintenance"],
  ["maintenance.ended", "is out of maintenance"],
  ["catch.failed", "fails all retries of a webhook"],
] as const;
const REMIND = [
  ["never", "never"],
  ["1h", "every hour"],
  ["6h", "every 6 hours"],
  ["1d", "every day"],
] as const;

interface ChannelFormProps {
  /** Undefined for a new channel. */
  readonly of?: Channel;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** The form of a new or existing channel. Stored settings are secret and not shown. */
export function ChannelForm({ of: channel, onDone, onClose }: ChannelFormProps) {
  const isNew = channel === undefined;
  return (
    <DataForm
      title={isNew ? "New channel" : `Edit ${channel.name}`}
      submit={isNew ? "Create channel" : "Save"}
      operation={isNew ? "monitors.channels.create" : "monitors.channels.change"}
      params={{ channel_id: channel?.id ?? "" }}
      of={channel && { ...channel, config: {} }}
      start={({ events }) =>
        isNew ? { kind: "slack", events: events?.choice, remind: "never", default: true, group_ms: 0 } : {}
      }
      fields={(get) => [
        [
          { name: "name", placeholder: "Team chat", hint: "" },
          isNew ? { name: "kind", options: KINDS.map(([kind, label]) => [kind, label] as const) } : null,
        ],
        ...settingFields(String(get("kind")), isNew),
        { name: "events", label: "Notify when a target…", options: EVENTS },
        { name: "remind", label: "Remind while a target is down", options: REMIND, hint: "" },
        { name: "default", label: "Default for monitors without channels" },
        {
          more: [
            { name: "escalate", control: Escalation },
            { name: "quiet_hours", control: QuietHours },
            {
              name: "group_ms",
              label: "Collect alerts for",
              kind: SECONDS,
              hint: "One message for several monitors. 0: each is sent immediately.",
            },
          ],
        },
      ]}
      onDone={() => {
        toast(isNew ? "Channel created. Send a test." : "Channel updated");
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}

/** The settings of a kind. */
function settingFields(
  kind: string,
  isNew: boolean,
): readonly (RowOf<"monitors.channels.create"> & RowOf<"monitors.channels.change">)[] {
  const [, , settings = []] = KINDS.find(([name]) => name === kind) ?? [];
  const hint = isNew ? "" : "Leave empty to keep the current settings.";
  const fields = {
    url: {
      name: "config.url",
      label: kind === "ntfy" ? "URL with the topic" : "URL",
      placeholder: "https://example.com/hooks",
      required: isNew,
      hint,
    },
    token: { name: "config.token", label: "Token", kind: SECRET, required: isNew && kind !== "ntfy", hint },
    chat_id: { name: "config.chat_id", label: "Chat ID", placeholder: "-1001234", required: isNew, hint },
    to: {
      name: "config.to",
      label: "Addresses",
      kind: LINES,
      required: isNew,
      hint: hint || "Your account's address, or those of its people. One per line.",
    },
  } as const;
  return settings.map((setting) => fields[setting]);
}
