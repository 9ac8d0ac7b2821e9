import type { Static } from "@sinclair/typebox";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import { givenHeaders } from "../../kernel/outbound/given-headers.ts";
import type { TargetPolicy } from "../../kernel/outbound/target.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import { TIER_NAMES, type TierName, type Tiers } from "../../kernel/tiers.ts";
import { sealContext } from "./checks.ts";
import type { MonitorUpdateBody } from "./schema.ts";
import type { MonitorSettings } from "./store.ts";

/** What a user sets, in a creation or a change. */
export type GivenSettings = Static<typeof MonitorUpdateBody>;

/** Settings that were checked, and whether the interval had to be raised. */
export interface CheckedSettings {
  readonly settings: MonitorSettings;
  readonly warning: string | null;
}

/** What settings are checked against. */
export interface SettingsRules {
  readonly policy: TargetPolicy;
  readonly vault: Vault;
  readonly tiers: Tiers;
  /** Whether e-mails can be sent. */
  readonly canMail: boolean;
}

/** What a monitor has where its user sets nothing. */
const DEFAULTS: Omit<MonitorSettings, "url" | "intervalMs"> = {
  method: "GET",
  headers: null,
  body: null,
  timeoutMs: 10_000,
  threshold: 1,
  cooldownMs: 300_000,
  webhookUrl: null,
  emailAlert: false,
  notifyRecovery: false,
  active: true,
};

/** The lowest tier that has a feature; every higher one has it as well. */
const FEATURE_TIERS = { headers: "pro", email_alert: "pro", webhook_url: "starter" } as const;

/**
 * Checks what a user sets, whatever the monitor. Comes before any charge.
 * @throws ApiError `validation_error` naming the field, `forbidden` naming the tier that a feature needs.
 */
export function assertSettings(rules: SettingsRules, given: GivenSettings, tier: TierName): void {
  if (given.url !== undefined) rules.policy.assertUrl("url", given.url);
  if (isText(given.webhook_url)) rules.policy.assertUrl("webhook_url", given.webhook_url);
  const headers = given.headers ?? {};
  givenHeaders(headers);
  if (Object.keys(headers).length > 0) assertFeature("headers", tier);
  if (given.email_alert === true) assertFeature("email_alert", tier);
  if (isText(given.webhook_url)) assertFeature("webhook_url", tier);
  if (given.email_alert === true && !rules.canMail) {
    throw invalidField("email_alert", "must be false: this server has no mail server to send with");
  }
}

/** Lays what a user sets over what a monitor has. `before`: null for a new one, which then needs a URL and an interval. */
export function mergedSettings(
  rules: SettingsRules,
  given: GivenSettings,
  monitorId: string,
  tier: TierName,
  before: MonitorSettings | null,
): CheckedSettings {
  const base = before ?? { ...DEFAULTS, url: given.url ?? "", intervalMs: given.interval ?? 0 };
  const minimum = rules.tiers[tier].monitorIntervalMinMs;
  const asked = given.interval;
  const isRaised = asked !== undefined && asked < minimum;
  const settings: MonitorSettings = {
    url: given.url ?? base.url,
    method: given.method ?? base.method,
    headers: given.headers === undefined ? base.headers : sealed(rules.vault, given.headers, monitorId),
    body: given.body === undefined ? base.body : given.body,
    timeoutMs: given.timeout ?? base.timeoutMs,
    intervalMs: isRaised ? minimum : (asked ?? base.intervalMs),
    threshold: given.consecutive_threshold ?? base.threshold,
    cooldownMs: given.cooldown_ms ?? base.cooldownMs,
    webhookUrl: given.webhook_url === undefined ? base.webhookUrl : given.webhook_url,
    emailAlert: given.email_alert ?? base.emailAlert,
    notifyRecovery: given.notify_recovery ?? base.notifyRecovery,
    active: given.active ?? base.active,
  };
  const warning = `interval was raised from ${asked} to ${minimum} ms, the minimum of the tier ${tier}.`;
  return { settings, warning: isRaised ? warning : null };
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

function isText(value: string | null | undefined): value is string {
  return typeof value === "string";
}
