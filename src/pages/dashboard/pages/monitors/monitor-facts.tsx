import type { ComponentChildren } from "preact";
import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { count } from "../../core/format.ts";
import { Status } from "../../ui/status.tsx";

type Fact = readonly [label: string, value: ComponentChildren];

/** Days before expiry from which a certificate is highlighted. */
const CERTIFICATE_DAYS = 14;

/** The state of the target; a paused monitor has none. */
export function stateOf({ active, status, degraded }: MonitorStatus): string {
  if (!active) return "paused";
  return degraded ? "degraded" : status;
}

/** The certificate's expiry, if it is soon. */
export function certificateEnd({ certificate }: MonitorStatus): string | null {
  if (certificate === null || certificate.days_left > CERTIFICATE_DAYS) return null;
  const { days_left } = certificate;
  return days_left < 0 ? "certificate expired" : `certificate expires in ${count(days_left, "day")}`;
}

/** The certificate that the last check received. */
export function certificateFact(monitor: MonitorStatus): Fact[] {
  const { certificate } = monitor;
  if (certificate === null) return [];
  const end = certificateEnd(monitor);
  const expiry =
    end === null ? `${count(certificate.days_left, "day")} left` : <Status key="s" state={end} tone="warn" />;
  return [[`Certificate by ${certificate.issuer}`, expiry]];
}

/** Conditions for a successful check, other than the defaults. */
export function assertionFacts(monitor: MonitorStatus): Fact[] {
  const { accept_status, keyword, keyword_absent, json_path, json_op, json_value, degraded_ms } = monitor;
  const code = (text: string) => <code key={text}>{text}</code>;
  const { record_value } = monitor;
  return [
    ...(record_value === null ? [] : [["Expected value", code(record_value)] as const]),
    ...(accept_status === null ? [] : [["Accepted statuses", accept_status.join(", ")] as const]),
    ...(keyword === null ? [] : [["Response contains", code(keyword)] as const]),
    ...(keyword_absent === null ? [] : [["Response does not contain", code(keyword_absent)] as const]),
    ...(json_path === null
      ? []
      : [["JSON conditions", code(jsonText(json_path, json_op, json_value))] as const]),
    ...(degraded_ms === null ? [] : [["Slow above", `${degraded_ms} ms`] as const]),
  ];
}

function jsonText(path: string, op: string | null, value: unknown): string {
  return op === "exists" ? `${path} exists` : `${path} ${op} ${JSON.stringify(value)}`;
}
