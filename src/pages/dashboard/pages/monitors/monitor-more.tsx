import type { MonitorStatus, MonitorUpdateBody } from "../../../../client/generated/api.ts";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";

/** Comparisons, and how they are read. */
const OPS = [
  ["==", "is"],
  ["!=", "is not"],
  ["<", "is below"],
  ["<=", "is at most"],
  [">", "is above"],
  [">=", "is at least"],
  ["contains", "contains"],
  ["exists", "is there"],
] as const;

interface MoreFieldsProps {
  readonly of: MonitorStatus | undefined;
  readonly method: string;
  readonly notifies: boolean;
  readonly onNotifies: (notifies: boolean) => void;
}

/** What few monitors need, folded away. */
export function MoreFields({ of: monitor, method, notifies, onNotifies }: MoreFieldsProps) {
  return (
    <details>
      <summary>More</summary>
      <TextField name="group" label="Group" value={monitor?.group ?? undefined} />
      <AnswerFields of={monitor} hasBody={method !== "HEAD"} />
      <PaceFields of={monitor} />
      <CheckField label="Tell channels when it is slow" checked={notifies} onChange={onNotifies} />
    </details>
  );
}

/** What its answer must be like. */
function AnswerFields({ of: monitor, hasBody }: { of: MonitorStatus | undefined; hasBody: boolean }) {
  const { accept_status, keyword, keyword_absent, json_path, json_op } = monitor ?? {};
  return (
    <>
      <TextField
        name="accept_status"
        label="Statuses that are up"
        value={accept_status?.join(", ")}
        placeholder="200-299, 401"
        hint="All below 400, unless entered."
      />
      {hasBody ? (
        <>
          <TextField name="keyword" label="The answer contains" value={keyword ?? undefined} />
          <TextField name="keyword_absent" label="It does not contain" value={keyword_absent ?? undefined} />
          <TextField
            name="json_path"
            label="In a JSON answer"
            value={json_path ?? undefined}
            placeholder="$.status"
            mono
          />
          <div class="two">
            <SelectField name="json_op" label="The value" value={json_op ?? "=="} options={OPS} />
            <TextField
              name="json_value"
              label="Compared with"
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

/** When it is asked again, what is slow, and when its certificate is spoken of. */
function PaceFields({ of: monitor }: { of: MonitorStatus | undefined }) {
  const { retry_interval, degraded_ms } = monitor ?? {};
  return (
    <div class="two">
      <TextField
        name="retry_interval"
        label="Seconds between checks once one failed"
        type="number"
        min={5}
        max={300}
        step="any"
        value={
          retry_interval === null || retry_interval === undefined ? undefined : String(retry_interval / 1000)
        }
        hint="As always, unless entered."
      />
      <TextField
        name="recovery_threshold"
        label="Successes until it is up again"
        type="number"
        min={1}
        max={10}
        value={String(monitor?.recovery_threshold ?? 1)}
        required
      />
      <TextField
        name="degraded_ms"
        label="Milliseconds above which it is slow"
        type="number"
        min={1}
        max={30_000}
        value={degraded_ms === null ? undefined : degraded_ms?.toString()}
      />
      <TextField
        name="tls_expiry_days"
        label="Days before its certificate ends to tell channels"
        type="number"
        min={0}
        max={90}
        value={String(monitor?.tls_expiry_days ?? 14)}
        hint="0: never."
        required
      />
    </div>
  );
}

/** A value as it is typed: a text needs quotes only where it would be read as something else. */
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

/** What was entered. */
export function moreOf(data: FormData) {
  const [statuses, retry, slow] = ["accept_status", "retry_interval", "degraded_ms"].map((name) =>
    orNull(data, name),
  );
  return {
    group: orNull(data, "group"),
    accept_status: statuses?.split(",").map((status) => status.trim()) ?? null,
    keyword: orNull(data, "keyword"),
    keyword_absent: orNull(data, "keyword_absent"),
    ...jsonOf(data),
    retry_interval: retry == null ? null : Math.round(Number(retry) * 1000),
    recovery_threshold: Number(textOf(data, "recovery_threshold")),
    degraded_ms: slow == null ? null : Number(slow),
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
