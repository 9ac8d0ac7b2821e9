import { ApiError, invalidField } from "../../kernel/errors.ts";
import { TIER_NAMES, type TierName } from "../../kernel/limits/tiers.ts";
import { givenHeaders } from "../../kernel/outbound/headers.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import { sealContext } from "./checks/checks.ts";
import { optionsOf, resolvedOptions, retryMsMin } from "./options.ts";
import type { MonitorParts } from "./ports.ts";
import type { MonitorUpdateBody } from "./schema.ts";
import type { MonitorSettings } from "./store.ts";

/** What a monitor has where its user sets nothing. */
const DEFAULTS: Omit<MonitorSettings, "url" | "interval"> = {
  type: "http",
  name: null,
  method: "GET",
  headers: null,
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

/** The lowest tier that has a feature; every higher one has it as well. */
const FEATURE_TIERS = {
  ...({ headers: "pro", email_alert: "pro", webhook_url: "starter" } as const),
  ...({ "a channel": "starter", "a channel of kind email": "pro" } as const),
};

/**
 * Checks what a user sets, whatever the monitor. Comes before any charge.
 * @throws ApiError `validation_error` naming the field, `forbidden` naming the tier that a feature needs.
 */
export function assertSettings(parts: MonitorParts, given: MonitorUpdateBody, tier: TierName): void {
  const { url, headers, webhook_url: webhookUrl, email_alert: emailAlert } = given;
  const { policy } = parts.outbound;
  const hasWebhook = typeof webhookUrl === "string";
  if (url !== undefined) policy.assertUrl("url", url);
  if (hasWebhook) policy.assertUrl("webhook_url", webhookUrl, { requireHttps: true });
  if (Object.keys(givenHeaders(headers ?? {})).length > 0) assertFeature("headers", tier);
  if (emailAlert === true) assertFeature("email_alert", tier);
  if (hasWebhook) assertFeature("webhook_url", tier);
  if (emailAlert === true && !parts.outbox.available) {
    throw invalidField("email_alert", "must be false: this server has no mail server to send with");
  }
}

/**
 * A monitor's settings with what a user sets, and a warning when the interval had to be raised. `before`: null for a new
 * monitor, for which a URL and an interval are given.
 */
export function mergedSettings(
  parts: MonitorParts,
  given: MonitorUpdateBody,
  monitorId: string,
  tier: TierName,
  before: MonitorSettings | null,
): { settings: MonitorSettings; warning?: string } {
  const { headers, interval, depends_on, channels, ...others } = given;
  const minimum = parts.tiers[tier].monitorIntervalMinMs;
  const asked = interval ?? minimum;
  const plain: MonitorSettings = {
    ...(before ?? { ...DEFAULTS, url: "", interval: minimum }),
    ...others,
    ...(headers === undefined ? {} : { headers: sealed(parts.vault, headers, monitorId) }),
    ...(interval === undefined ? {} : { interval: Math.max(asked, minimum) }),
  };
  const settings = { ...plain, ...resolvedOptions(given, before, plain, minimum) };
  const warning = [
    raised("interval", asked, minimum, tier),
    raised("retry_interval", given.retry_interval ?? Number.POSITIVE_INFINITY, retryMsMin(minimum), tier),
  ].filter((one) => one !== null);
  return { settings, ...(warning.length === 0 ? {} : { warning: warning.join(" ") }) };
}

function raised(field: string, asked: number, minimum: number, tier: TierName): string | null {
  if (asked >= minimum) return null;
  return `${field} was raised from ${asked} to ${minimum} ms, the minimum of the tier ${tier}.`;
}

/** @throws ApiError `forbidden` naming the tier that a feature needs. */
export function assertFeature(field: keyof typeof FEATURE_TIERS, tier: TierName): void {
  const needed = FEATURE_TIERS[field];
  if (TIER_NAMES.indexOf(tier) >= TIER_NAMES.indexOf(needed)) return;
  throw new ApiError(
    "forbidden",
    `${field} needs the tier ${needed} or a higher one; this account's tier is ${tier}.`,
  );
}

function sealed(
  vault: Vault,
  headers: Readonly<Record<string, string>> | null,
  monitorId: string,
): Uint8Array | null {
  if (headers === null || Object.keys(headers).length === 0) return null;
  return vault.seal(JSON.stringify(givenHeaders(headers)), sealContext(monitorId));
}
