import type { ComponentChildren } from "preact";
import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { count } from "../../core/format.ts";
import { Status } from "../../ui/status.tsx";

type Fact = readonly [label: string, value: ComponentChildren];

/** A certificate that ends within so many days is looked at twice. */
const CERTIFICATE_DAYS = 14;

/** What it says of its target; a monitor that is paused says nothing. */
export function stateOf({ active, status, degraded }: MonitorStatus): string {
  if (!active) return "paused";
  return degraded ? "degraded" : status;
}

/** When a certificate ends, if that is soon. */
export function certificateEnd({ certificate }: MonitorStatus): string | null {
  if (certificate === null || certificate.days_left > CERTIFICATE_DAYS) return null;
  const { days_left } = certificate;
  return days_left < 0 ? "certificate has ended" : `certificate ends in ${count(days_left, "day")}`;
}

/** The certificate that a monitor has met. */
export function certificateFact(monitor: MonitorStatus): Fact[] {
  const { certificate } = monitor;
  if (certificate === null) return [];
  const end = certificateEnd(monitor);
  const shown =
    end === null ? `${count(certificate.days_left, "day")} left` : <Status key="s" state={end} tone="warn" />;
  return [[`Certificate by ${certificate.issuer}`, shown]];
}

/** What its answer must be like, beyond what is so for all. */
export function assertionFacts(monitor: MonitorStatus): Fact[] {
  const { accept_status, keyword, keyword_absent, json_path, json_op, json_value, degraded_ms } = monitor;
  const code = (text: string) => <code key={text}>{text}</code>;
  return [
    ...(accept_status === null ? [] : [["Statuses that are up", accept_status.join(", ")] as const]),
    ...(keyword === null ? [] : [["The answer contains", code(keyword)] as const]),
    ...(keyword_absent === null ? [] : [["It does not contain", code(keyword_absent)] as const]),
    ...(json_path === null ? [] : [["In its JSON", code(jsonText(json_path, json_op, json_value))] as const]),
    ...(degraded_ms === null ? [] : [["Slow above", `${degraded_ms} ms`] as const]),
  ];
}

function jsonText(path: string, op: string | null, value: unknown): string {
  return op === "exists" ? `${path} exists` : `${path} ${op} ${JSON.stringify(value)}`;
}
