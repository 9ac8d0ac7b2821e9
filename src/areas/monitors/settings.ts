import { invalidField } from "../../kernel/errors.ts";
import { assertFeature, type Feature } from "../../kernel/limits/feature.ts";
import type { TierName } from "../../kernel/limits/tiers.ts";
import { givenHeaders } from "../../kernel/outbound/headers.ts";
import { ANY_TARGET } from "../../kernel/outbound/target.ts";
import { assertClientCertificate } from "./client-certificate.ts";
import { optionsOf, resolveOptions, retryMsMin } from "./options.ts";
import type { AreaDeps } from "./ports.ts";
import { assertResolver } from "./resolver.ts";
import type { MonitorUpdateBody } from "./schema.ts";
import type { MonitorSettings } from "./store.ts";
import { MONITOR_CLIENT_KEY, MONITOR_HEADERS } from "./targets/http.ts";

const FEATURES = {
  headers: { tier: "pro", noun: "headers" },
  email_alert: { tier: "pro", noun: "email_alert" },
  webhook_url: { tier: "starter", noun: "webhook_url" },
} as const satisfies Readonly<Record<string, Feature>>;

/** Defaults of a new monitor. */
export const MONITOR_DEFAULTS: Omit<MonitorSettings, "url" | "interval"> = {
  type: "http",
  name: null,
  method: "GET",
  headers: null,
  tls_client_key: null,
  body: null,
  timeout: 10_000,
  consecutive_threshold: 1,
  cooldown_ms: 300_000,
  webhook_url: null,
  email_alert: false,
  notify_recovery: false,
  active: true,
  ...optionsOf(null),
};

/**
 * Checks given settings before anything is charged.
 * @throws ApiError `validation_error` naming the field, `forbidden` naming the tier that a feature needs.
 */
export function assertSettings(
  deps: Pick<AreaDeps, "outbound" | "outbox">,
  body: MonitorUpdateBody,
  tier: TierName,
  isLocal: boolean,
): void {
  const { url, host, resolver, headers, webhook_url: webhookUrl, email_alert: emailAlert } = body;
  const { policy } = deps.outbound;
  const hasWebhook = typeof webhookUrl === "string";
  // A probe decides itself where it may go.
  const targets = isLocal ? policy : ANY_TARGET;
  if (url !== undefined) targets.assertUrl("url", url);
  if (host !== undefined) targets.assertHost("host", host);
  if (typeof resolver === "string") assertResolver(targets, resolver);
  if (hasWebhook) policy.assertUrl("webhook_url", webhookUrl, { requireHttps: true });
  if (Object.keys(givenHeaders(headers ?? {})).length > 0) assertFeature(FEATURES.headers, tier);
  if (emailAlert === true) assertFeature(FEATURES.email_alert, tier);
  if (hasWebhook) assertFeature(FEATURES.webhook_url, tier);
  if (emailAlert === true && !deps.outbox.available) {
    throw invalidField("email_alert", "must be false: this server has no mail server configured");
  }
}

/**
 * Merges given settings into those of a monitor, with a warning if an interval had to be raised. `before`: null for a new
 * monitor, which has a URL and an interval.
 */
export function mergedSettings(
  deps: Pick<AreaDeps, "tiers" | "vault">,
  body: MonitorUpdateBody,
  monitorId: string,
  tier: TierName,
  before: MonitorSettings | null,
): { settings: MonitorSettings; warning?: string } {
  const { headers, tls_client_key, interval, depends_on, channels, ...others } = body;
  const minimum = deps.tiers[tier].monitorIntervalMinMs;
  const requested = interval ?? minimum;
  const plain = {
    ...(before ?? { ...MONITOR_DEFAULTS, url: "", interval: minimum }),
    ...others,
    ...(headers === undefined
      ? {}
      : { headers: MONITOR_HEADERS.sealOrNull(deps.vault, monitorId, headers && givenHeaders(headers)) }),
    tls_client_key: clientKeyOf(deps, body, monitorId, before),
    ...(interval === undefined ? {} : { interval: Math.max(requested, minimum) }),
  };
  const settings = { ...plain, ...resolveOptions(body, before, plain, minimum) };
  const warning = [
    raisedWarning("interval", requested, minimum, tier),
    ...(["retry_interval", "down_interval"] as const).map((field) =>
      raisedWarning(field, body[field] ?? Number.POSITIVE_INFINITY, retryMsMin(minimum), tier),
    ),
  ].filter((text) => text !== null);
  return { settings, ...(warning.length === 0 ? {} : { warning: warning.join(" ") }) };
}

/**
 * The sealed key of the client certificate after a change, which is checked with it. Without a certificate there is none.
 * @throws ApiError `validation_error`
 */
function clientKeyOf(
  { vault }: Pick<AreaDeps, "vault">,
  { tls_client_certificate: given, tls_client_key: key }: MonitorUpdateBody,
  monitorId: string,
  before: MonitorSettings | null,
): Uint8Array | null {
  const stored = before?.tls_client_key ?? null;
  if (given === undefined && key === undefined) return stored;
  const certificate = given === undefined ? (before?.tls_client_certificate ?? null) : given;
  if (certificate === null && typeof key !== "string") return null;
  const after = key === undefined ? MONITOR_CLIENT_KEY.openOrNull(vault, monitorId, stored) : key;
  assertClientCertificate(certificate, after);
  return key === undefined ? stored : MONITOR_CLIENT_KEY.sealOrNull(vault, monitorId, after);
}

function raisedWarning(field: string, requested: number, minimum: number, tier: TierName): string | null {
  if (requested >= minimum) return null;
  return `${field} was raised from ${requested} to ${minimum} ms, the minimum of the tier ${tier}.`;
}
