import { go } from "../../core/route.ts";
import { DataForm } from "../../ui/form.tsx";

/** The form of a new delivery, with the request that it sends. */
export function RelayForm({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  return (
    <DataForm
      title="Schedule a delivery"
      submit="Schedule"
      operation="relay.schedule"
      start={{ method: "POST", delay: "10s", payload: { hello: "world" } }}
      fields={[
        { name: "target_url", label: "URL", placeholder: "https://example.com/hook", hint: "" },
        [
          { name: "method", hint: "" },
          { name: "delay", hint: "For example 0s, 90s, 5m, 2h or 30d." },
        ],
        { name: "payload", label: "Body (JSON)", rows: 6, hint: "" },
        { name: "headers", hint: "One per line." },
        {
          more: [
            { name: "callback_url", label: "Callback URL" },
            { name: "failure_callback_url", label: "Callback URL for failures" },
          ],
        },
      ]}
      preview
      done="Delivery scheduled"
      onDone={({ relay_id }) => {
        onDone();
        go(["relay", relay_id]);
      }}
      onClose={onClose}
    />
  );
}
