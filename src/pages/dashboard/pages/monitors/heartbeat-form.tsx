import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { HOUR_MS } from "../../core/format.ts";
import { go } from "../../core/route.ts";
import { DataForm } from "../../ui/form.tsx";
import { MINUTES } from "../../ui/kinds.ts";
import { ALERT_DEFAULTS, alertFields } from "./alert-fields.tsx";
import { ChannelChoice } from "./channel-choice.tsx";

const WAYS = [
  ["period", "at an interval"],
  ["schedule", "on a cron schedule"],
] as const;

interface HeartbeatFormProps {
  /** Undefined for a new heartbeat. */
  readonly of?: MonitorStatus;
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** The form of a new or existing heartbeat. */
export function HeartbeatForm({ of: beat, onDone, onClose }: HeartbeatFormProps) {
  const isNew = beat === undefined;
  return (
    <DataForm
      title={isNew ? "New heartbeat" : `Edit ${beat.name}`}
      submit={isNew ? "Create heartbeat" : "Save"}
      operation={isNew ? "monitors.create" : "monitors.update"}
      params={{ monitorId: beat?.monitor_id ?? "" }}
      // Without a name it is shown as "Heartbeat".
      of={beat && { ...beat, name: beat.name === "Heartbeat" ? null : beat.name }}
      start={{
        $way: beat?.schedule ? "schedule" : "period",
        period_ms: 24 * HOUR_MS,
        grace_ms: HOUR_MS,
        schedule: "30 2 * * *",
        tz: Intl.DateTimeFormat().resolvedOptions().timeZone,
        ...ALERT_DEFAULTS,
      }}
      fields={(get) => [
        { name: "name", placeholder: "Nightly backup", hint: "" },
        { name: "slug", mono: true, placeholder: "", hint: "Optional; for readable ping URLs." },
        [
          { name: "$way", label: "Pings are expected", options: WAYS },
          ...(get("$way") === "period"
            ? [
                {
                  name: "period_ms",
                  label: "Time between pings",
                  kind: MINUTES,
                  required: true,
                  hint: "",
                } as const,
              ]
            : ([
                {
                  name: "schedule",
                  mono: true,
                  required: true,
                  group: "schedule",
                  hint: "Minute, hour, day, month, weekday.",
                },
                { name: "tz", label: "Time zone", required: true, group: "schedule", hint: "" },
              ] as const)),
          { name: "grace_ms", label: "Grace period", kind: MINUTES, required: true, hint: "" },
        ],
        { name: "channels", control: ChannelChoice },
        {
          more: [
            {
              name: "start_grace_ms",
              label: "Longest run",
              kind: MINUTES,
              hint: "Time from a start to its end. A run that starts in time is not missed meanwhile. Leave empty for the grace period.",
            },
            {
              name: "max_runs_per_period",
              label: "Runs per period",
              hint: "More are an alert. Leave empty for any number.",
            },
            { name: "group", placeholder: "", hint: "" },
            ...alertFields(get),
          ],
        },
      ]}
      adapt={(body) => (isNew ? { ...body, type: "heartbeat" } : body)}
      done={isNew ? undefined : "Heartbeat updated"}
      onDone={(answer) => {
        if ("id" in answer) go(["monitors", answer.id]);
        onDone?.();
      }}
      onClose={onClose}
    />
  );
}
