import { useState } from "preact/hooks";
import type { MonitorCreateBody, MonitorStatus } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { go } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { AlertFields, alertsOf } from "./alert-fields.tsx";
import { ChannelChoice } from "./channel-choice.tsx";

const MINUTE = 60_000;
const YEAR_MINUTES = 365 * 24 * 60;
const WAYS = [
  ["period", "at an interval"],
  ["schedule", "on a cron schedule"],
] as const;
type Way = (typeof WAYS)[number][0];

interface HeartbeatFormProps {
  /** Undefined for a new heartbeat. */
  readonly of?: MonitorStatus;
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** The form of a new or existing heartbeat. */
export function HeartbeatForm({ of: beat, onDone, onClose }: HeartbeatFormProps) {
  const [way, setWay] = useState<Way>(beat?.schedule ? "schedule" : "period");
  const [channels, setChannels] = useState<readonly string[] | null>(beat?.channels ?? null);
  const submit = async (data: FormData): Promise<void> => {
    const [name, slug] = ["name", "slug"].map((field) => textOf(data, field));
    const { webhook_url, ...alerts } = alertsOf(data);
    const common = { ...timingOf(data, way), ...alerts, channels: channels && [...channels] };
    if (beat === undefined) {
      const fields = {
        ...(name && { name }),
        ...(slug && { slug }),
        ...(webhook_url && { webhook_url }),
      };
      const body: MonitorCreateBody = { type: "heartbeat", ...common, ...fields };
      go(["monitors", (await call("monitors.create", { body })).id]);
      return;
    }
    const fields = { name: name ?? null, slug: slug ?? null, webhook_url };
    const params = { monitorId: beat.monitor_id };
    await call("monitors.update", { params, body: { ...common, ...fields } });
    toast("Heartbeat updated");
    onDone?.();
    onClose();
  };
  return (
    <Dialog title={beat === undefined ? "New heartbeat" : `Edit ${beat.name}`} onClose={onClose}>
      <Form submit={beat === undefined ? "Create heartbeat" : "Save"} onCancel={onClose} onSubmit={submit}>
        <TextField
          name="name"
          label="Name"
          value={beat?.name === "Heartbeat" ? undefined : beat?.name}
          placeholder="Nightly backup"
        />
        <TextField
          name="slug"
          label="Slug"
          value={beat?.slug ?? undefined}
          mono
          pattern="[a-z0-9_\-]{1,64}"
          hint="Optional; for readable ping URLs."
        />
        <TimingFields of={beat} way={way} onWay={setWay} />
        <ChannelChoice chosen={channels} onChange={setChannels} />
        <details>
          <summary>More</summary>
          <AlertFields of={beat} />
        </details>
      </Form>
    </Dialog>
  );
}

interface TimingProps {
  readonly of: MonitorStatus | undefined;
  readonly way: Way;
  readonly onWay: (way: Way) => void;
}

/** When pings are expected, and the grace period. */
function TimingFields({ of: beat, way, onWay }: TimingProps) {
  const minutes = (name: string, label: string, ms: number) => (
    <TextField
      name={name}
      label={label}
      type="number"
      min={1}
      max={YEAR_MINUTES}
      required
      value={String(ms / MINUTE)}
    />
  );
  return (
    <div class="two">
      <SelectField
        name="way"
        label="Pings are expected"
        value={way}
        options={WAYS}
        onChange={(value) => onWay(value === "schedule" ? "schedule" : "period")}
      />
      {way === "period" ? (
        minutes("period", "Minutes between pings", beat?.period_ms ?? 24 * 60 * MINUTE)
      ) : (
        <>
          <TextField
            name="schedule"
            label="Schedule"
            value={beat?.schedule ?? "30 2 * * *"}
            mono
            required
            hint="Minute, hour, day, month, weekday."
          />
          <TextField
            name="tz"
            label="Time zone"
            value={beat?.tz ?? Intl.DateTimeFormat().resolvedOptions().timeZone}
            required
          />
        </>
      )}
      {minutes("grace", "Grace period (minutes)", beat?.grace_ms ?? 60 * MINUTE)}
    </div>
  );
}

function timingOf(data: FormData, way: Way) {
  const minutes = (field: string): number => Math.round(Number(textOf(data, field)) * MINUTE);
  const grace_ms = minutes("grace");
  if (way === "period") return { grace_ms, period_ms: minutes("period") };
  return { grace_ms, schedule: textOf(data, "schedule") ?? "", tz: textOf(data, "tz") ?? "UTC" };
}
