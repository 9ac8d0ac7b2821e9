import type { FileFacts } from "../../kernel/http/resource-facts.ts";
import { givenHeaders } from "../../kernel/outbound/headers.ts";
import { ANY_TARGET } from "../../kernel/outbound/target.ts";
import { assertClientCertificate } from "./client-certificate.ts";
import { GRACE_MS, PERIOD_MS } from "./heartbeat-fields.ts";
import { mergedTiming } from "./heartbeats/settings.ts";
import { resolveOptions } from "./options.ts";
import { assertResolver } from "./resolver.ts";
import { INTERVAL_MS_MAX } from "./schema.ts";
import { MONITOR_DEFAULTS } from "./settings.ts";
import { assertRegisteredName } from "./targets/registration.ts";
import { assertOfType, assertRequired, type GivenMonitor, splitGiven } from "./type-fields.ts";
import { MONITOR_TYPES, type MonitorType } from "./types.ts";

/** Fields that monitors of a type do not have. */
function fieldsOfOtherTypes(type: MonitorType): readonly string[] {
  const fieldsOfType: readonly string[] = MONITOR_TYPES[type].fields;
  return Object.values(MONITOR_TYPES).flatMap(({ fields }) =>
    fields.filter((field) => !fieldsOfType.includes(field)),
  );
}

/** Checks a new monitor as far as its account and its server do not matter. @throws ApiError `validation_error` naming the field */
function checkNew(body: GivenMonitor): void {
  const { type = "http", timing, common } = splitGiven(body);
  assertRequired(type, body);
  assertOfType(type, body);
  if (body.url !== undefined) ANY_TARGET.assertUrl("url", body.url);
  if (type === "domain" && body.host !== undefined) assertRegisteredName(body.host);
  if (body.host !== undefined) ANY_TARGET.assertHost("host", body.host);
  if (typeof body.resolver === "string") assertResolver(ANY_TARGET, body.resolver);
  if (typeof body.webhook_url === "string")
    ANY_TARGET.assertUrl("webhook_url", body.webhook_url, { requireHttps: true });
  if (type === "heartbeat") mergedTiming(timing, null, 0);
  givenHeaders(body.headers ?? {});
  assertClientCertificate(body.tls_client_certificate ?? null, body.tls_client_key ?? null);
  const { headers, tls_client_key, depends_on, channels, ...options } = common;
  // The tier decides about intervals that are omitted, or raised.
  const settings = { ...MONITOR_DEFAULTS, interval: INTERVAL_MS_MAX, ...options };
  resolveOptions(common, null, settings, 0);
}

/** How monitors stand in a configuration file. */
export const MONITOR_FILE: FileFacts = {
  section: "monitors",
  name: "name",
  defaults: {
    ...MONITOR_DEFAULTS,
    period_ms: PERIOD_MS,
    grace_ms: GRACE_MS,
    start_grace_ms: null,
    max_runs_per_period: null,
    tz: "UTC",
  },
  check: checkNew,
  fixed: { type: "http" },
  unique: "slug",
  onCreation: ["ping_id", "push_token"],
  urls: [
    { field: "ping_url", isSecret: true },
    { field: "ping_slug_url", isSecret: true },
    { field: "push_url", isSecret: true },
  ],
  // Compared with null, unless the operator takes no value.
  meaningfulNulls: ({ json_op: op }) => (op === "==" || op === "!=" ? ["json_value"] : []),
  computed: ({ type }) => fieldsOfOtherTypes(type as MonitorType),
};
