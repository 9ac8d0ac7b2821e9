import { go } from "../../core/route.ts";
import { DataForm } from "../../ui/form.tsx";

const MISSED = [
  ["once", "run once"],
  ["skip", "skip"],
] as const;
const OVERLAP = [
  ["allow", "run anyway"],
  ["skip", "skip"],
] as const;

/** The form of a new schedule. */
export function ScheduleForm({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  return (
    <DataForm
      title="New schedule"
      submit="Create schedule"
      operation="relay.schedules.create"
      start={{
        cron: "0 9 * * MON-FRI",
        time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        method: "POST",
        payload: {},
      }}
      fields={(get) => [
        { name: "name", placeholder: "nightly" },
        [
          {
            name: "cron",
            label: "Schedule",
            mono: true,
            hint: "Minute, hour, day, month, weekday; or @daily and similar.",
          },
          { name: "time_zone", required: true, hint: "" },
        ],
        [
          {
            name: "target_url",
            label: "URL",
            required: !get("event_type"),
            placeholder: "https://example.com/hook",
            hint: "",
          },
          {
            name: "event_type",
            label: "Or an event type",
            placeholder: "report.due",
            mono: true,
            hint: "Sends a message to all endpoints that subscribe to it.",
          },
        ],
        // A message is sent as its endpoints want it.
        get("event_type") ? null : { name: "method", hint: "" },
        { name: "payload", label: "Body (JSON)", hint: "" },
        get("event_type") ? null : { name: "headers", hint: "One per line." },
        [
          { name: "missed", label: "Runs missed while the server is down", options: MISSED, hint: "" },
          { name: "overlap", label: "While the previous run is in progress", options: OVERLAP, hint: "" },
        ],
      ]}
      done="Schedule created"
      onDone={({ schedule_id }) => {
        onDone();
        go(["relay", "schedules", schedule_id]);
      }}
      onClose={onClose}
    />
  );
}
