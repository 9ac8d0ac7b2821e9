import type { RowOf } from "../../ui/data-form.tsx";

/** Alerts of a monitor besides its channels: its own webhook and e-mail. */
export const ALERT_FIELDS: readonly (RowOf<"monitors.create"> & RowOf<"monitors.update">)[] = [
  {
    name: "webhook_url",
    label: "Send alerts to",
    placeholder: "https://example.com/alerts",
    hint: "A signed webhook of this monitor only.",
  },
  { name: "email_alert", label: "Also send e-mail" },
  { name: "notify_recovery", label: "Webhook and e-mail also report recovery" },
];
