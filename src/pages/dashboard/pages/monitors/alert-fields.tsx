import type { MonitorStatus, MonitorUpdateBody } from "../../../../client/generated/api.ts";
import { TextField, Tick, textOf } from "../../ui/field.tsx";

/** Alerts of a monitor besides its channels: its own webhook and e-mail. */
export function AlertFields({ of: monitor }: { of: MonitorStatus | undefined }) {
  return (
    <>
      <TextField
        name="webhook_url"
        label="Send alerts to"
        type="url"
        value={monitor?.webhook_url ?? undefined}
        placeholder="https://example.com/alerts"
        hint="A signed webhook of this monitor only."
      />
      <Tick name="email_alert" label="Also send e-mail" checked={monitor?.email_alert ?? false} />
      <Tick
        name="notify_recovery"
        label="Webhook and e-mail also report recovery"
        checked={monitor?.notify_recovery ?? false}
      />
    </>
  );
}

/** The values entered. */
export function alertsOf(data: FormData) {
  return {
    webhook_url: textOf(data, "webhook_url") ?? null,
    email_alert: data.has("email_alert"),
    notify_recovery: data.has("notify_recovery"),
  } satisfies MonitorUpdateBody;
}
