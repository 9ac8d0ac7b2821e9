import { call } from "../core/api.ts";
import { go } from "../core/route.ts";
import { toast } from "../core/toasts.ts";
import { Dialog, Form } from "../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../ui/field.tsx";

const INTERVALS = [
  ["15000", "15 seconds"],
  ["30000", "30 seconds"],
  ["60000", "a minute"],
  ["300000", "5 minutes"],
] as const;
const METHODS = ["GET", "HEAD", "POST"] as const;

/** Makes a monitor. */
export function MonitorForm({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="New monitor" onClose={onClose}>
      <Form
        submit="Create monitor"
        onCancel={onClose}
        onSubmit={async (data) => {
          const webhook = textOf(data, "webhook_url");
          const made = await call("monitors.create", {
            body: {
              url: textOf(data, "url") ?? "",
              interval: Number(textOf(data, "interval")),
              method: METHODS.find((one) => one === data.get("method")) ?? "GET",
              consecutive_threshold: Number(textOf(data, "threshold") ?? "1"),
              ...(webhook === undefined ? {} : { webhook_url: webhook }),
            },
          });
          if (made.warning !== undefined) toast(made.warning);
          go(["monitors", made.id]);
        }}
      >
        <TextField
          name="url"
          label="Address"
          type="url"
          placeholder="https://example.com/health"
          required
          hint="Up is what answers with a status below 400."
        />
        <div class="two">
          <SelectField name="interval" label="Every" value="60000" options={INTERVALS} />
          <SelectField name="method" label="Method" value="GET" options={METHODS.map((one) => [one, one])} />
          <TextField
            name="threshold"
            label="Failures until it is down"
            type="number"
            min={1}
            max={10}
            value="1"
            required
          />
        </div>
        <TextField
          name="webhook_url"
          label="Send alerts to"
          type="url"
          placeholder="https://example.com/alerts"
        />
      </Form>
    </Dialog>
  );
}
