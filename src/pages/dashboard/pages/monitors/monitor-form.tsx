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
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { alertsOf } from "./alert-fields.tsx";
import { ChannelChoice } from "./channel-choice.tsx";
import { MoreFields, moreOf } from "./monitor-more.tsx";

const INTERVALS = [15_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000];
const TYPES = [
  ["http", "Request a URL"],
  ["tcp", "Connect to a port"],
  ["dns", "Look up DNS records"],
] as const;
type CheckedType = (typeof TYPES)[number][0];
const RECORD_TYPES = ["A", "AAAA", "CNAME", "MX", "NS", "TXT"] as const;
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
  const [type, setType] = useState<CheckedType>(checkedType(monitor?.type));
  const [channels, setChannels] = useState<readonly string[] | null>(monitor?.channels ?? null);
  const submit = async (data: FormData): Promise<void> => {
    const settings = {
      ...settingsOf(data),
      ...targetOf(data, type),
      ...moreOf(data, type),
      ...alertsOf(data),
      ...(type === "http" ? { method } : {}),
      channels: channels && [...channels],
    };
    if (monitor === undefined) {
      const made = await call("monitors.create", { body: { ...withoutNulls(settings), type } });
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
        {monitor === undefined ? (
          <SelectField
            name="type"
            label="Check"
            value={type}
            options={TYPES}
            onChange={(value) => setType(checkedType(value))}
          />
        ) : null}
        <CheckFields of={monitor} type={type} method={method} onMethod={setMethod} />
        <ChannelChoice chosen={channels} onChange={setChannels} />
        <ParentField of={monitor} />
        <MoreFields of={monitor} type={type} method={method} />
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
  readonly type: CheckedType;
  readonly method: Method;
  readonly onMethod: (method: Method) => void;
}

/** What is requested, how often, and what counts as down. */
function CheckFields({ of: monitor, type, method, onMethod }: CheckFieldsProps) {
  const interval = monitor?.interval ?? 60_000;
  const intervals = [...new Set([...INTERVALS, interval])].sort((a, b) => a - b);
  const seconds = (monitor?.timeout ?? 10_000) / 1000;
  return (
    <>
      <TargetFields key={type} of={monitor} type={type} />
      <TextField name="name" label="Name" value={givenName(monitor)} hint="Leave empty to use the host." />
      <div class="two">
        <SelectField
          name="interval"
          label="Interval"
          value={String(interval)}
          options={intervals.map((ms) => [String(ms), span(ms)])}
        />
        {type === "http" ? (
          <SelectField
            name="method"
            label="Method"
            value={method}
            options={METHODS.map((one) => [one, one])}
            onChange={(value) => onMethod(METHODS.find((one) => one === value) ?? "GET")}
          />
        ) : null}
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
      {type === "http" && method === "POST" ? (
        <TextField name="body" label="Body" rows={3} mono value={monitor?.body ?? undefined} />
      ) : null}
    </>
  );
}

/** The target of a check, and what counts as up. */
function TargetFields({ of: monitor, type }: { of: MonitorStatus | undefined; type: CheckedType }) {
  if (type === "http")
    return (
      <TextField
        name="url"
        label="URL"
        type="url"
        value={monitor?.url}
        placeholder="https://example.com/health"
        required
        hint="A status below 400 counts as up; change it under More."
      />
    );
  const host = (
    <TextField
      name="host"
      label="Host"
      value={monitor?.host ?? undefined}
      placeholder={type === "tcp" ? "db.example.com" : "example.com"}
      required
    />
  );
  if (type === "tcp")
    return (
      <>
        <div class="two">
          {host}
          <TextField
            name="port"
            label="Port"
            type="number"
            min={1}
            max={65_535}
            value={monitor?.port?.toString()}
            required
          />
        </div>
        <TextField
          name="keyword"
          label="Expected text"
          value={monitor?.keyword ?? undefined}
          placeholder="ESMTP"
          hint="Optional: must appear in what the server sends first."
        />
      </>
    );
  return (
    <>
      <div class="two">
        {host}
        <SelectField
          name="record_type"
          label="Record type"
          value={monitor?.record_type ?? "A"}
          options={RECORD_TYPES.map((one) => [one, one])}
        />
      </div>
      <TextField
        name="record_value"
        label="Expected value"
        value={monitor?.record_value ?? undefined}
        placeholder="192.0.2.10"
        hint="Optional: one of the records must have it."
      />
    </>
  );
}

/** The name that the user entered; a monitor without one is named after its host. */
function givenName(monitor: MonitorStatus | undefined): string | undefined {
  if (monitor === undefined || hostOf(monitor) === monitor.name) return undefined;
  return monitor.name;
}

/** The name of a monitor that has none of its own. */
function hostOf({ type, url, host }: MonitorStatus): string | null {
  return type === "dns" ? host : new URL(url).host;
}

function checkedType(type: string | undefined): CheckedType {
  return TYPES.find(([one]) => one === type)?.[0] ?? "http";
}

/** The fields of the type. */
function targetOf(data: FormData, type: CheckedType) {
  if (type === "http") return { url: textOf(data, "url") ?? "", body: textOf(data, "body") ?? null };
  const host = textOf(data, "host") ?? "";
  if (type === "tcp")
    return { host, port: Number(textOf(data, "port")), keyword: textOf(data, "keyword") ?? null };
  return {
    host,
    record_type: RECORD_TYPES.find((one) => one === textOf(data, "record_type")) ?? "A",
    record_value: textOf(data, "record_value") ?? null,
  };
}

function settingsOf(data: FormData) {
  return {
    name: textOf(data, "name") ?? null,
    interval: Number(textOf(data, "interval")),
    timeout: Math.round(Number(textOf(data, "timeout")) * 1000),
    consecutive_threshold: Number(textOf(data, "threshold")),
    depends_on: textOf(data, "depends_on") ?? null,
  } satisfies MonitorUpdateBody;
}

type Clearable = "name" | "webhook_url" | "body";

/** A new monitor has no values to clear. */
function withoutNulls({
  name,
  webhook_url,
  body,
  ...others
}: Omit<MonitorCreateBody, Clearable> & Pick<MonitorUpdateBody, Clearable>): MonitorCreateBody {
  return {
    ...others,
    ...(name ? { name } : {}),
    ...(webhook_url ? { webhook_url } : {}),
    ...(body ? { body } : {}),
  };
}
