import type { Entered, RowOf } from "../../ui/data-form.tsx";
import { SECONDS } from "../../ui/kinds.ts";

/** The values of {@link alertFields} in the form of a new monitor. */
export const ALERT_DEFAULTS = { notify_after_ms: 0 };

/** Alerts of a monitor besides its channels: its own webhook and e-mail, and what concerns these alone. */
export function alertFields(get: Entered): readonly (RowOf<"monitors.create"> & RowOf<"monitors.update">)[] {
  const hasOwn = (get("webhook_url") ?? "") !== "" || get("email_alert") === true;
  return [
    {
      name: "notify_after_ms",
      label: "Notify after",
      kind: SECONDS,
      required: true,
      hint: "Nobody is notified of an outage that is shorter. 0: immediately.",
    },
    {
      name: "webhook_url",
      label: "Send alerts to",
      placeholder: "https://example.com/alerts",
      hint: "A signed webhook of this monitor only.",
    },
    { name: "email_alert", label: "Also send e-mail" },
    hasOwn ? { name: "notify_recovery", label: "Webhook and e-mail also report recovery" } : null,
  ];
}
