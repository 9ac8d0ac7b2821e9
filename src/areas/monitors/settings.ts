import { ApiError, invalidField } from "../../kernel/errors.ts";
import { givenHeaders } from "../../kernel/outbound/headers.ts";
import type { TargetPolicy } from "../../kernel/outbound/target.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import { TIER_NAMES, type TierName, type Tiers } from "../../kernel/tiers.ts";
import { sealContext } from "./checks.ts";
import type { MonitorUpdateBody } from "./schema.ts";
import type { MonitorSettings } from "./store.ts";

/** What settings are checked against. */
export interface SettingsRules {
  readonly policy: TargetPolicy;
  readonly vault: Vault;
  readonly tiers: Tiers;
  /** Whether e-mails can be sent. */
  readonly canMail: boolean;
}

/** What a monitor has where its user sets nothing. */
const DEFAULTS: Omit<MonitorSettings, "url" | "interval"> = {
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
};

/** The lowest tier that has a feature; every higher one has it as well. */
const FEATURE_TIERS = { headers: "pro", email_alert: "pro", webhook_url: "starter" } as const;

/**
 * Checks what a user sets, whatever the monitor. Comes before any charge.
 * @throws ApiError `validation_error` naming the field, `forbidden` naming the tier that a feature needs.
 */
export function assertSettings(rules: SettingsRules, given: MonitorUpdateBody, tier: TierName): void {
  const { url, headers, webhook_url: webhookUrl, email_alert: emailAlert } = given;
  const hasWebhook = typeof webhookUrl === "string";
  if (url !== undefined) rules.policy.assertUrl("url", url);
  if (hasWebhook) rules.policy.assertUrl("webhook_url", webhookUrl);
  if (Object.keys(givenHeaders(headers ?? {})).length > 0) assertFeature("headers", tier);
  if (emailAlert === true) assertFeature("email_alert", tier);
  if (hasWebhook) assertFeature("webhook_url", tier);
  if (emailAlert === true && !rules.canMail) {
    throw invalidField("email_alert", "must be false: this server has no mail server to send with");
  }
}

/**
 * A monitor's settings with what a user sets, and a warning when the interval had to be raised. `before`: null for a new
 * monitor, for which a URL and an interval are given.
 */
export function mergedSettings(
  rules: SettingsRules,
  given: MonitorUpdateBody,
  monitorId: string,
  tier: TierName,
  before: MonitorSettings | null,
): { settings: MonitorSettings; warning?: string } {
  const base = before ?? { ...DEFAULTS, url: "", interval: 0 };
  const minimum = rules.tiers[tier].monitorIntervalMinMs;
  const asked = given.interval ?? minimum;
  const settings: MonitorSettings = {
    url: given.url ?? base.url,
    method: given.method ?? base.method,
    headers: given.headers === undefined ? base.headers : sealed(rules.vault, given.headers, monitorId),
    body: given.body === undefined ? base.body : given.body,
    timeout: given.timeout ?? base.timeout,
    interval: given.interval === undefined ? base.interval : Math.max(asked, minimum),
    consecutive_threshold: given.consecutive_threshold ?? base.consecutive_threshold,
    cooldown_ms: given.cooldown_ms ?? base.cooldown_ms,
    webhook_url: given.webhook_url === undefined ? base.webhook_url : given.webhook_url,
    email_alert: given.email_alert ?? base.email_alert,
    notify_recovery: given.notify_recovery ?? base.notify_recovery,
    active: given.active ?? base.active,
  };
  if (asked >= minimum) return { settings };
  const warning = `interval was raised from ${asked} to ${minimum} ms, the minimum of the tier ${tier}.`;
  return { settings, warning };
}

function assertFeature(field: keyof typeof FEATURE_TIERS, tier: TierName): void {
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
