import type { ComponentChildren } from "preact";
import type { MonitorHistory, MonitorSeries, MonitorStatus } from "../../../../client/generated/api.ts";
import { count, duration, instant, percent } from "../../core/format.ts";
import { now } from "../../core/now.ts";
import { Facts } from "../../ui/page.tsx";
import { Ago, ZonedTime } from "../../ui/time.tsx";
import { averageOf, outageText, RANGES } from "./monitor-series.ts";

type Fact = readonly [label: string, value: ComponentChildren];

/** Days before expiry from which a certificate is highlighted. */
const CERTIFICATE_DAYS = 14;

/** The certificate's expiry, if it is soon. */
export function certificateEnd({ certificate }: MonitorStatus): string | null {
  if (certificate === null || certificate.days_left > CERTIFICATE_DAYS) return null;
  const { days_left } = certificate;
  return days_left < 0 ? "certificate expired" : `certificate expires in ${count(days_left, "day")}`;
}

/** Days before expiry from which a registration is highlighted. */
const REGISTRATION_DAYS = 30;

/** The end of a domain's registration, if it is soon. */
export function registrationEnd({ domain }: MonitorStatus): string | null {
  if (domain == null || domain.days_left > REGISTRATION_DAYS) return null;
  const { days_left } = domain;
  return days_left < 0 ? "registration expired" : `registration expires in ${count(days_left, "day")}`;
}

/** Uptime in percent below which a range is highlighted. */
const UPTIME_BAD = 99;
const UPTIME_FAIR = 99.5;

/** Numbers of a monitor: now, uptime and outages of each range, latency, certificate. */
export function MonitorNumbers({
  of: monitor,
  history,
}: {
  of: MonitorStatus;
  history: MonitorHistory | null;
}) {
  const { certificate, domain, icmp, last_duration_ms, started_at } = monitor;
  const isHeartbeat = monitor.interval === null;
  const average = history?.series === undefined ? null : averageOf(history.series);
  const age = now.value - instant(monitor.created_at);
  return (
    <Facts
      of={[
        isHeartbeat
          ? [
              "Last ping",
              number(
                <Ago at={monitor.last_ping_at} />,
                started_at == null ? (
                  <Expected of={monitor} />
                ) : (
                  <>
                    running since <Ago at={started_at} />
                  </>
                ),
              ),
            ]
          : [
              "Now",
              number(
                latencyText(monitor.latency_ms),
                <>
                  <Ago at={monitor.last_checked_at} never="not checked yet" />
                  {monitor.failing ? ", failed" : ""}
                  {monitor.status === "unknown" && monitor.error !== null ? ", not possible" : ""}
                </>,
              ),
            ],
        ...RANGES.map(([range, label]) => {
          const uptime = history?.uptime[range] ?? null;
          const tone = uptime === null || uptime >= UPTIME_FAIR ? "" : uptime < UPTIME_BAD ? "bad" : "warn";
          return [
            `Uptime, ${label}`,
            number(percent(uptime), history === null ? "" : outageText(history, range, age), tone),
          ] as const;
        }),
        isHeartbeat
          ? ["Last run", number(last_duration_ms == null ? "–" : duration(last_duration_ms), "duration")]
          : ["Latency", number(latencyText(average), latencyNote(history?.series))],
        ...(icmp == null
          ? []
          : [["Packets lost", number(`${icmp.loss_percent} %`, packetText(icmp), lossTone(icmp))] as const]),
        ...(domain == null
          ? []
          : [
              [
                "Registration",
                number(count(domain.days_left, "day"), "until it expires", daysTone(domain.days_left)),
              ] as const,
            ]),
        ...(certificate === null
          ? []
          : [
              [
                "Certificate",
                number(
                  count(certificate.days_left, "day"),
                  `by ${certificate.issuer}`,
                  certificateEnd(monitor) === null ? "" : "warn",
                ),
              ] as const,
            ]),
      ]}
    />
  );
}

function daysTone(days: number): string {
  if (days < 0) return "bad";
  return days <= REGISTRATION_DAYS ? "warn" : "";
}

type Icmp = NonNullable<MonitorStatus["icmp"]>;

/** The packets of the last check. */
function packetText({ sent, received, min_ms, max_ms }: Icmp): string {
  const counts = `${received} of ${count(sent, "packet")} returned`;
  return min_ms === null ? counts : `${counts}, in ${min_ms} to ${max_ms} ms`;
}

function lossTone({ received, loss_percent }: Icmp): string {
  if (loss_percent === 0) return "";
  return received === 0 ? "bad" : "warn";
}

/** When the next ping is expected; of a schedule in its time zone. */
function Expected({ of: { expected_at, schedule, tz } }: { of: MonitorStatus }) {
  if (expected_at == null) return <>expected after the first success</>;
  return schedule && tz ? (
    <>
      Expected <ZonedTime at={expected_at} zone={tz} />
    </>
  ) : (
    <>
      expected <Ago at={expected_at} />
    </>
  );
}

/** What the average of a range hides: how long the slowest checks took. */
function latencyNote(series: MonitorSeries | undefined): string {
  const { p95_ms = null, p99_ms = null } = series?.latency ?? {};
  if (p95_ms === null || p99_ms === null) return "average of the range";
  return `average; 95 % below ${p95_ms} ms, 99 % below ${p99_ms} ms`;
}

function latencyText(ms: number | null): string {
  return ms === null ? "–" : `${ms} ms`;
}

function number(value: ComponentChildren, note: ComponentChildren, tone = "") {
  return (
    <>
      <strong class={`number ${tone}`}>{value}</strong>
      <span class="sub">{note}</span>
    </>
  );
}

/** How it works, in one line. */
export function workOf(monitor: MonitorStatus): string {
  const { type, host, packets, method, url, interval, schedule, tz, period_ms } = monitor;
  if (type === "domain") return `Registration of ${host}, asked once a day`;
  if (type === "icmp") return `${count(packets, "packet")} to ${host}, every ${duration(interval ?? 0)}`;
  if (interval !== null) return `${method} ${url}, every ${duration(interval)}`;
  return schedule ? `Pinged at ${schedule}, ${tz}` : `Pinged every ${duration(period_ms ?? 0)}`;
}

/** Conditions for a successful check, other than the defaults. */
export function assertionFacts(monitor: MonitorStatus): Fact[] {
  const { accept_status, keyword, keyword_absent, json_path, json_op, json_value, degraded_ms } = monitor;
  const code = (text: string) => <code key={text}>{text}</code>;
  const list = (texts: readonly string[]) => code(texts.map((text) => JSON.stringify(text)).join(", "));
  const { record_value, record_values, match, resolver } = monitor;
  const { type, max_loss_percent } = monitor;
  const { keywords_all, keywords_any, tls, tls_verify, tls_client_certificate } = monitor;
  const expected = match === "contains" ? "A record contains" : "Expected value";
  return [
    ...(record_value === null ? [] : [[expected, code(record_value)] as const]),
    ...(record_values === null ? [] : [["Expected values", list(record_values)] as const]),
    ...(resolver === null ? [] : [["Name server", code(resolver)] as const]),
    ...(accept_status === null ? [] : [["Accepted statuses", accept_status.join(", ")] as const]),
    ...(keyword === null ? [] : [["Response contains", code(keyword)] as const]),
    ...(keyword_absent === null ? [] : [["Response does not contain", code(keyword_absent)] as const]),
    ...(keywords_all === null ? [] : [["Response contains all of", list(keywords_all)] as const]),
    ...(keywords_any === null ? [] : [["Response contains one of", list(keywords_any)] as const]),
    ...(tls === null ? [] : [["TLS", tls] as const]),
    ...(tls_verify ? [] : [["Certificate", "not verified"] as const]),
    ...(tls_client_certificate === null ? [] : [["Client certificate", "presented"] as const]),
    ...(json_path === null
      ? []
      : [["JSON conditions", code(jsonText(json_path, json_op, json_value))] as const]),
    ...(type === "icmp" ? [["Down when", lossText(max_loss_percent)] as const] : []),
    ...(degraded_ms === null ? [] : [["Slow above", `${degraded_ms} ms`] as const]),
  ];
}

function lossText(max: number): string {
  return max === 99 ? "all packets are lost" : `more than ${max} % of the packets are lost`;
}

function jsonText(path: string, op: string | null, value: unknown): string {
  return op === "exists" ? `${path} exists` : `${path} ${op} ${JSON.stringify(value)}`;
}
