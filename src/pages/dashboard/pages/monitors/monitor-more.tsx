import type { MonitorStatus, MonitorUpdateBody } from "../../../../client/generated/api.ts";
import { SelectField, TextField, Tick, textOf } from "../../ui/field.tsx";
import { AlertFields } from "./alert-fields.tsx";

/** Comparison operators and their labels. */
const OPS = [
  ["==", "is"],
  ["!=", "is not"],
  ["<", "is below"],
  ["<=", "is at most"],
  [">", "is above"],
  [">=", "is at least"],
  ["contains", "contains"],
  ["exists", "exists"],
] as const;

interface MoreFieldsProps {
  readonly of: MonitorStatus | undefined;
  readonly type: string;
  readonly method: string;
}

/** Settings that few monitors need, collapsed by default. */
export function MoreFields({ of: monitor, type, method }: MoreFieldsProps) {
  return (
    <details>
      <summary>More</summary>
      <TextField name="group" label="Group" value={monitor?.group ?? undefined} />
      {type === "http" ? <AnswerFields of={monitor} hasBody={method !== "HEAD"} /> : null}
      <PaceFields of={monitor} hasCertificate={type === "http"} />
      <Tick name="notify_degraded" label="Notify when slow" checked={monitor?.notify_degraded ?? false} />
      <AlertFields of={monitor} />
    </details>
  );
}

/** Conditions for a successful check. */
function AnswerFields({ of: monitor, hasBody }: { of: MonitorStatus | undefined; hasBody: boolean }) {
  const { accept_status, keyword, keyword_absent, json_path, json_op } = monitor ?? {};
  return (
    <>
      <TextField
        name="accept_status"
        label="Accepted statuses"
        value={accept_status?.join(", ")}
        placeholder="200-299, 401"
        hint="Leave empty for all below 400."
      />
      {hasBody ? (
        <>
          <TextField name="keyword" label="Response contains" value={keyword ?? undefined} />
          <TextField
            name="keyword_absent"
            label="Response does not contain"
            value={keyword_absent ?? undefined}
          />
          <TextField
            name="json_path"
            label="JSON path"
            value={json_path ?? undefined}
            placeholder="$.status"
            mono
          />
          <div class="two">
            <SelectField name="json_op" label="Comparison" value={json_op ?? "=="} options={OPS} />
            <TextField
              name="json_value"
              label="Expected value"
              value={literalOf(monitor)}
              placeholder="UP"
              mono
            />
          </div>
        </>
      ) : null}
    </>
  );
}

/** Check intervals, latency threshold and certificate warning. */
function PaceFields(props: { of: MonitorStatus | undefined; hasCertificate: boolean }) {
  const { of: monitor, hasCertificate } = props;
  const { retry_interval, degraded_ms } = monitor ?? {};
  return (
    <div class="two">
      <TextField
        name="retry_interval"
        label="Interval after a failed check (seconds)"
        type="number"
        min={5}
        max={300}
        step="any"
        value={
          retry_interval === null || retry_interval === undefined ? undefined : String(retry_interval / 1000)
        }
        hint="Leave empty to keep the normal interval."
      />
      <TextField
        name="recovery_threshold"
        label="Successes until up"
        type="number"
        min={1}
        max={10}
        value={String(monitor?.recovery_threshold ?? 1)}
        required
      />
      <TextField
        name="degraded_ms"
        label="Slow above (milliseconds)"
        type="number"
        min={1}
        max={30_000}
        value={degraded_ms === null ? undefined : degraded_ms?.toString()}
      />
      {hasCertificate ? (
        <TextField
          name="tls_expiry_days"
          label="Certificate warning (days before expiry)"
          type="number"
          min={0}
          max={90}
          value={String(monitor?.tls_expiry_days ?? 14)}
          hint="0: never."
          required
        />
      ) : null}
    </div>
  );
}

/** A value as entered: a string needs quotes only where it would be read as another type. */
function literalOf(monitor: MonitorStatus | undefined): string | undefined {
  if (monitor === undefined || monitor.json_path === null || monitor.json_op === "exists") return undefined;
  const { json_value: value } = monitor;
  return typeof value === "string" && typedValue(value) === value ? value : JSON.stringify(value);
}

function typedValue(typed: string): string | number | boolean | null {
  try {
    const value: unknown = JSON.parse(typed);
    if (value === null || typeof value === "string" || typeof value === "boolean") return value;
    return typeof value === "number" ? value : typed;
  } catch {
    return typed;
  }
}

const orNull = (data: FormData, name: string): string | null => textOf(data, name) ?? null;

/** The values entered. */
export function moreOf(data: FormData, type: string) {
  const [retry, slow] = ["retry_interval", "degraded_ms"].map((name) => orNull(data, name));
  return {
    ...(type === "http" ? assertionsOf(data) : {}),
    group: orNull(data, "group"),
    notify_degraded: data.has("notify_degraded"),
    retry_interval: retry == null ? null : Math.round(Number(retry) * 1000),
    recovery_threshold: Number(textOf(data, "recovery_threshold")),
    degraded_ms: slow == null ? null : Number(slow),
  } satisfies MonitorUpdateBody;
}

/** What a response must have. */
function assertionsOf(data: FormData) {
  return {
    accept_status:
      orNull(data, "accept_status")
        ?.split(",")
        .map((status) => status.trim()) ?? null,
    keyword: orNull(data, "keyword"),
    keyword_absent: orNull(data, "keyword_absent"),
    ...jsonOf(data),
    tls_expiry_days: Number(textOf(data, "tls_expiry_days")),
  } satisfies MonitorUpdateBody;
}

function jsonOf(data: FormData) {
  const json_path = orNull(data, "json_path");
  const json_op = OPS.find(([op]) => op === data.get("json_op"))?.[0] ?? "==";
  if (json_path === null || json_op === "exists") {
    return { json_path, ...(json_path === null ? {} : { json_op }) };
  }
  return { json_path, json_op, json_value: typedValue(textOf(data, "json_value") ?? "") };
}
