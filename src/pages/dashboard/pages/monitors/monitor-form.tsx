import { useState } from "preact/hooks";
import type {
  MonitorCreateBody,
  MonitorStatus,
  MonitorUpdateBody,
} from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { span } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { go } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";
import { ChannelChoice } from "./channel-choice.tsx";
import { MoreFields, moreOf } from "./monitor-more.tsx";

const INTERVALS = [15_000, 30_000, 60_000, 300_000];
const METHODS = ["GET", "HEAD", "POST"] as const;
type Method = (typeof METHODS)[number];

interface MonitorFormProps {
  /** Undefined for a new monitor. */
  readonly of?: MonitorStatus;
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** The form of a new or existing monitor. */
export function MonitorForm({ of: monitor, onDone, onClose }: MonitorFormProps) {
  const [method, setMethod] = useState<Method>(METHODS.find((one) => one === monitor?.method) ?? "GET");
  const [email_alert, setEmailAlert] = useState(monitor?.email_alert ?? false);
  const [notify_recovery, setNotifyRecovery] = useState(monitor?.notify_recovery ?? false);
  const [notify_degraded, setNotifyDegraded] = useState(monitor?.notify_degraded ?? false);
  const [channels, setChannels] = useState<readonly string[] | null>(monitor?.channels ?? null);
  const submit = async (data: FormData): Promise<void> => {
    const settings = {
      ...settingsOf(data),
      ...moreOf(data),
      method,
      email_alert,
      notify_recovery,
      notify_degraded,
      channels: channels && [...channels],
    };
    if (monitor === undefined) {
      const made = await call("monitors.create", { body: withoutNulls(settings) });
      if (made.warning !== undefined) toast(made.warning);
      go(["monitors", made.id]);
      return;
    }
    const params = { monitorId: monitor.monitor_id };
    const { warning } = await call("monitors.update", { params, body: settings });
    toast(warning ?? "Monitor updated");
    onDone?.();
    onClose();
  };
  return (
    <Dialog title={monitor === undefined ? "New monitor" : `Edit ${monitor.name}`} onClose={onClose}>
      <Form submit={monitor === undefined ? "Create monitor" : "Save"} onCancel={onClose} onSubmit={submit}>
        <CheckFields of={monitor} method={method} onMethod={setMethod} />
        <TextField
          name="webhook_url"
          label="Send alerts to"
          type="url"
          value={monitor?.webhook_url ?? undefined}
          placeholder="https://example.com/alerts"
        />
        <ParentField of={monitor} />
        <CheckField label="Also send e-mail" checked={email_alert} onChange={setEmailAlert} />
        <CheckField label="Also notify on recovery" checked={notify_recovery} onChange={setNotifyRecovery} />
        <ChannelChoice chosen={channels} onChange={setChannels} />
        <MoreFields of={monitor} method={method} notifies={notify_degraded} onNotifies={setNotifyDegraded} />
      </Form>
    </Dialog>
  );
}

/** Most monitors in the list of options. */
const PARENTS_SHOWN = 100;

/** The monitors that this one depends on. */
function ParentField({ of: monitor }: { of: MonitorStatus | undefined }) {
  const list = useResource("monitors to depend on", [], (signal) =>
    call("monitors.list", { query: { limit: PARENTS_SHOWN } }, signal),
  );
  const parent = monitor?.depends_on ?? "";
  const others = (list.data?.monitors ?? []).filter(({ monitor_id }) => monitor_id !== monitor?.monitor_id);
  const known = others.some(({ monitor_id }) => monitor_id === parent);
  return (
    <SelectField
      key={String(list.data === null)}
      name="depends_on"
      label="Depends on"
      value={parent}
      options={[
        ["", "nothing"],
        ...(parent === "" || known ? [] : [[parent, parent] as const]),
        ...others.map(({ monitor_id, name }) => [monitor_id, name] as const),
      ]}
      hint="While the other monitor is down, this one sends no alerts."
    />
  );
}

interface CheckFieldsProps {
  readonly of: MonitorStatus | undefined;
  readonly method: Method;
  readonly onMethod: (method: Method) => void;
}

/** What is requested, how often, and what counts as down. */
function CheckFields({ of: monitor, method, onMethod }: CheckFieldsProps) {
  const interval = monitor?.interval ?? 60_000;
  const intervals = [...new Set([...INTERVALS, interval])].sort((a, b) => a - b);
  const seconds = (monitor?.timeout ?? 10_000) / 1000;
  return (
    <>
      <TextField
        name="url"
        label="URL"
        type="url"
        value={monitor?.url}
        placeholder="https://example.com/health"
        required
        hint="A status below 400 counts as up; change it under More."
      />
      <TextField name="name" label="Name" value={givenName(monitor)} hint="Leave empty to use the host." />
      <div class="two">
        <SelectField
          name="interval"
          label="Interval"
          value={String(interval)}
          options={intervals.map((ms) => [String(ms), span(ms)])}
        />
        <SelectField
          name="method"
          label="Method"
          value={method}
          options={METHODS.map((one) => [one, one])}
          onChange={(value) => onMethod(METHODS.find((one) => one === value) ?? "GET")}
        />
        <TextField
          name="timeout"
          label="Timeout (seconds)"
          type="number"
          min={1}
          max={30}
          step="any"
          value={String(seconds)}
          required
        />
        <TextField
          name="threshold"
          label="Failures until down"
          type="number"
          min={1}
          max={10}
          value={String(monitor?.consecutive_threshold ?? 1)}
          required
        />
      </div>
      {method === "POST" ? (
        <TextField name="body" label="Body" rows={3} mono value={monitor?.body ?? undefined} />
      ) : null}
    </>
  );
}

/** The name that the user entered; a monitor without one is named after its host. */
function givenName(monitor: MonitorStatus | undefined): string | undefined {
  if (monitor === undefined || new URL(monitor.url).host === monitor.name) return undefined;
  return monitor.name;
}

function settingsOf(data: FormData) {
  return {
    url: textOf(data, "url") ?? "",
    name: textOf(data, "name") ?? null,
    interval: Number(textOf(data, "interval")),
    timeout: Math.round(Number(textOf(data, "timeout")) * 1000),
    consecutive_threshold: Number(textOf(data, "threshold")),
    webhook_url: textOf(data, "webhook_url") ?? null,
    body: textOf(data, "body") ?? null,
    depends_on: textOf(data, "depends_on") ?? null,
  } satisfies MonitorUpdateBody;
}

type NewSettings = ReturnType<typeof settingsOf> &
  Omit<MonitorCreateBody, keyof ReturnType<typeof settingsOf>>;

function withoutNulls({ name, webhook_url, body, ...others }: NewSettings): MonitorCreateBody {
  return {
    ...others,
    ...(name === null ? {} : { name }),
    ...(webhook_url === null ? {} : { webhook_url }),
    ...(body === null ? {} : { body }),
  };
}
