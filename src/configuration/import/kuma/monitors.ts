import { PACKETS_MAX } from "../../../areas/monitors/options.ts";
import { MONITOR_CHANNELS_MAX } from "../../../areas/monitors/schema.ts";
import { DNS_PORT } from "../../../kernel/outbound/dns/name-servers.ts";
import { canHaveBody, isOwnHeader } from "../../../kernel/outbound/headers.ts";
import { SECRET_NAMES } from "../../../kernel/secrets/secret-names.ts";
import { durationText } from "../../../kernel/time/readable.ts";
import { DAY_MS, SECOND_MS } from "../../../kernel/time/units.ts";
import { type Draft, Secret } from "../draft.ts";
import { type ImportOptions, isObject, parseJson, SourceObject, shown } from "../source.ts";

/** Limits of the fields below, in milliseconds. */
const INTERVAL = [15_000, DAY_MS] as const;
const RETRY = [5_000, 300_000] as const;
const TIMEOUT = [1_000, 30_000] as const;
const PERIOD = [60_000, 31_536_000_000] as const;
const THRESHOLD = [1, 10] as const;
const PACKETS = [1, PACKETS_MAX] as const;

/** Types with a counterpart. */
const TYPES = ["http", "keyword", "json-query", "port", "dns", "ping", "push"];
/** Packets of a ping of Uptime Kuma 1, which has no setting for them. */
const KUMA_PACKETS = 1;
/** Redirects that are followed; Uptime Kuma follows 10 by default. */
const KUMA_REDIRECTS = 10;
/** The server that Uptime Kuma asks by default. */
const KUMA_RESOLVER = "1.1.1.1";

/** Fields of state, and of the address of a push monitor, which others may have. */
const STATE = [
  ...["id", "user_id", "weight", "created_date", "push_token", "path", "path_name", "children_ids"],
  ...[
    "force_inactive",
    "maintenance",
    "include_sensitive_data",
    "dns_last_result",
    "screenshot",
    "path_names",
  ],
];
/** Beginnings of the fields of types without a counterpart. Every monitor has them. */
const OTHER_TYPES = [
  ...["mqtt", "docker", "database", "grpc", "radius", "game", "kafka", "rabbitmq", "snmp", "smtp"],
  ...["packet_size", "remote_browser", "screenshot", "system_service", "ntp_", "ws_", "location", "protocol"],
  ...["subtype", "expected_tls_alert", "manual_", "save_", "response_max_length", "retry_only_on"],
];
/** Fields of one type, which have no effect on others. */
const OWN_FIELDS: readonly (readonly [prefix: string, types: readonly string[]])[] = [
  ["dns_", ["dns"]],
  ["hostname", ["port", "dns", "ping"]],
  // The size of packets, whether names are resolved, and the time for each one are not settings.
  ["ping_", []],
  ["port", ["port"]],
  ["keyword", ["keyword"]],
  ["invert_keyword", ["keyword"]],
  ["json_path", ["json-query"]],
  ["expected_value", ["json-query"]],
  ...["url", "method", "body", "headers", "http_body_encoding", "accepted_statuscodes", "maxredirects"].map(
    (name) => [name, ["http", "keyword", "json-query"]] as const,
  ),
  ...["ignore_tls", "expiry_notification", "auth_", "basic_auth_", "oauth_", "bearer_token", "tls_"].map(
    (name) => [name, ["http", "keyword", "json-query"]] as const,
  ),
  ...["timeout", "ip_family", "cache_bust", "domain_expiry_notification"].map(
    (name) => [name, ["http", "keyword", "json-query", "port", "dns", "ping"]] as const,
  ),
];

/** Content types by encoding of a body. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  json: "application/json",
  form: "application/x-www-form-urlencoded",
  xml: "text/xml; charset=utf-8",
};

/** What monitors refer to. */
export interface Referred extends ImportOptions {
  /** Names of channels by id of their notification; null where it was not carried over. */
  readonly channels: ReadonlyMap<unknown, string | null>;
  /** Names of group monitors by their ids. */
  readonly groups: ReadonlyMap<unknown, string>;
}

/** Names of imported monitors by their ids; null where one was not carried over. */
export type Names = ReadonlyMap<unknown, string | null>;

/** The names of the monitors of an object; those that were not carried over are noted. */
export function namesOf(object: SourceObject, ids: readonly unknown[], names: Names): string[] {
  return ids.flatMap((id) => {
    const name = names.get(id) ?? null;
    if (name === null) object.note("monitors", `monitor ${shown(String(id))} is not carried over`);
    return name ?? [];
  });
}

/** A monitor with names of one form: backups have `retryInterval`, and the database has `retry_interval`. */
export function normalized(value: unknown): unknown {
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([name, member]) => [
    name.replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase(),
    member,
  ]);
  return Object.fromEntries(entries);
}

/** Imports a normalized monitor. Returns its id and its name in the file; null without a counterpart. */
export function monitorOf(
  draft: Draft,
  value: unknown,
  referred: Referred,
): readonly [id: unknown, name: string | null] {
  const monitor = new SourceObject(draft, "monitor", value);
  const id = monitor.any("id");
  const name = monitor.text("name") ?? "monitor";
  monitor.label = `monitor ${shown(name)}`;
  const type = monitor.text("type") ?? "";
  if (type === "group") return [id, null];
  if (!TYPES.includes(type)) {
    monitor.noteLoss("type", `${shown(type)} is not supported`);
    return [id, null];
  }
  if (monitor.flag("upside_down")) {
    monitor.noteLoss("upside_down", "a monitor with the opposite meaning is not supported");
    return [id, null];
  }
  const values = {
    ...commonOf(monitor, referred),
    ...(type === "push" ? heartbeatOf(monitor, referred) : checkOf(monitor, type)),
  };
  const others = OWN_FIELDS.flatMap(([prefix, types]) => (types.includes(type) ? [] : [prefix]));
  const foreign = [...OTHER_TYPES, ...others];
  monitor.ignore(
    ...STATE,
    ...monitor.names.filter((name) => foreign.some((prefix) => name.startsWith(prefix))),
  );
  monitor.rest({ conditions: ["[]"] });
  return [id, draft.add({ section: "monitors", name, subject: monitor, values })];
}

function commonOf(monitor: SourceObject, { channels, groups }: Referred): Readonly<Record<string, unknown>> {
  const isActive = monitor.any("active") === null || monitor.flag("active");
  const parent = monitor.any("parent");
  const tags = monitor.list("tags").flatMap((tag) => (isObject(tag) ? [String(tag["name"])] : []));
  const group = parent === null ? null : (groups.get(parent) ?? null);
  const [first] = tags;
  if (tags.length > (group === null ? 1 : 0))
    monitor.note(
      "tags",
      `a monitor has one group: ${tags.map(shown).slice(0, 10).join(", ")} are not all carried over`,
    );
  return {
    active: isActive ? null : false,
    group: group ?? first ?? null,
    channels: channelsOf(monitor, channels),
  };
}

/** Backups have `{"1": true}`. */
function channelsOf(monitor: SourceObject, channels: ReadonlyMap<unknown, string | null>): readonly string[] {
  const selected = monitor.any("notification_idlist");
  const ids = isObject(selected)
    ? Object.entries(selected).flatMap(([id, isOn]) => (isOn === true ? [Number(id)] : []))
    : monitor.list("notification_idlist");
  const names = ids.flatMap((id) => {
    const name = channels.get(id);
    if (name === undefined || name === null)
      monitor.note("notificationIDList", `notification ${shown(String(id))} is not carried over`);
    return name ?? [];
  });
  return monitor.limited("notificationIDList", names, MONITOR_CHANNELS_MAX);
}

function heartbeatOf(monitor: SourceObject, { keepsIds }: ImportOptions): Readonly<Record<string, unknown>> {
  const retries = monitor.number("maxretries") ?? 0;
  const pause = (monitor.number("retry_interval") ?? 0) * SECOND_MS;
  const token = monitor.text("push_token");
  if (!keepsIds)
    monitor.noteChange("ping_url", "is new: apply prints it; with --keep-ids, only its host changes");
  else if (token === null) monitor.noteChange("ping_url", "is new: apply prints it, there is no push token");
  else monitor.noteAddress(`/api/push/${token}`);
  return {
    type: "heartbeat",
    push_token: keepsIds ? token : null,
    period_ms: within(monitor, "period_ms", (monitor.number("interval") ?? 60) * SECOND_MS, PERIOD),
    grace_ms: within(monitor, "grace_ms", retries * pause, PERIOD),
  };
}

function checkOf(monitor: SourceObject, type: string): Readonly<Record<string, unknown>> {
  const interval = within(monitor, "interval", (monitor.number("interval") ?? 60) * SECOND_MS, INTERVAL);
  const retries = monitor.number("maxretries") ?? 0;
  const pause = monitor.number("retry_interval") ?? 0;
  const timeout = monitor.number("timeout") ?? 0;
  const hasRetries = retries > 0 && pause > 0 && pause * SECOND_MS !== interval;
  return {
    interval,
    consecutive_threshold: within(monitor, "consecutive_threshold", retries + 1, THRESHOLD, String),
    retry_interval: hasRetries
      ? Math.min(interval, within(monitor, "retry_interval", pause * SECOND_MS, RETRY))
      : null,
    timeout: timeout === 0 ? null : within(monitor, "timeout", Math.round(timeout * SECOND_MS), TIMEOUT),
    ...targetOf(monitor, type),
  };
}

function targetOf(monitor: SourceObject, type: string): Readonly<Record<string, unknown>> {
  if (type === "port") return { type: "tcp", host: monitor.text("hostname"), port: monitor.number("port") };
  if (type === "ping")
    return {
      type: "icmp",
      host: monitor.text("hostname"),
      packets: within(monitor, "packets", monitor.number("ping_count") ?? KUMA_PACKETS, PACKETS, String),
    };
  if (type === "dns") {
    const server = monitor.text("dns_resolve_server");
    const port = monitor.number("port");
    return {
      type: "dns",
      host: monitor.text("hostname"),
      record_type: monitor.text("dns_resolve_type") ?? "A",
      resolver: server === null || server === KUMA_RESOLVER ? null : resolverText(server, port),
    };
  }
  return { ...requestOf(monitor), ...expectationOf(monitor, type) };
}

/** Kuma accepts several name servers; the first one is used first. */
function resolverText(servers: string, port: number | null): string | null {
  const [server = ""] = servers.split(",").map((server) => server.trim());
  if (port === null || port === DNS_PORT || server === "") return server === "" ? null : server;
  return server.includes(":") ? `[${server}]:${port}` : `${server}:${port}`;
}

function requestOf(monitor: SourceObject): Readonly<Record<string, unknown>> {
  const { url, authorization } = splitUrl(monitor);
  const method = monitor.text("method") ?? "GET";
  const body = monitor.text("body");
  const encoding = monitor.text("http_body_encoding") ?? "json";
  const headers = { ...headersOf(monitor), ...credentials(monitor, authorization) };
  const sendsBody = body !== null && canHaveBody(method);
  if (body !== null && method === "HEAD") monitor.note("body", "not carried over");
  const isTyped = Object.keys(headers).some((name) => name.toLowerCase() === "content-type");
  if (sendsBody && !isTyped) headers["Content-Type"] = CONTENT_TYPES[encoding] ?? "application/json";
  const redirects = monitor.number("maxredirects") ?? KUMA_REDIRECTS;
  if (redirects !== KUMA_REDIRECTS) monitor.note("maxredirects", "not carried over: at most 5 are followed");
  const expires = monitor.flag("expiry_notification");
  return {
    url,
    method: method === "GET" ? null : method,
    body: sendsBody ? body : null,
    headers: Object.keys(headers).length === 0 ? null : headers,
    accept_status: acceptedOf(monitor),
    tls_verify: monitor.flag("ignore_tls") ? false : null,
    ...clientCertificateOf(monitor),
    tls_expiry_days: expires || url?.startsWith("https:") !== true ? null : 0,
  };
}

/** The URL without a user and a password. */
function splitUrl(monitor: SourceObject): {
  readonly url: string | null;
  readonly authorization: string | null;
} {
  const text = monitor.text("url");
  const url = text === null ? null : URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    monitor.note("url", "must be a URL with http or https");
    return { url: null, authorization: null };
  }
  if (`${url.username}${url.password}` === "") return { url: text, authorization: null };
  const authorization = basic(safeDecoded(url.username), safeDecoded(url.password));
  url.username = "";
  url.password = "";
  return { url: url.href, authorization };
}

function safeDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

function credentials(monitor: SourceObject, fromUrl: string | null): Record<string, unknown> {
  const method = monitor.text("auth_method");
  const user = monitor.text("basic_auth_user");
  const password = monitor.text("basic_auth_pass") ?? "";
  const token = monitor.text("bearer_token");
  const isBasic = user !== null && (method === null || method === "basic");
  if (isBasic) return { Authorization: new Secret(basic(user, password)) };
  if (method === "bearer" && token !== null) return { Authorization: new Secret(`Bearer ${token}`) };
  if (method !== null && method !== "basic" && method !== "mtls")
    monitor.note("auth_method", `${shown(method)} is not supported`);
  return fromUrl === null ? {} : { Authorization: new Secret(fromUrl) };
}

function clientCertificateOf(monitor: SourceObject): Readonly<Record<string, unknown>> {
  const certificate = monitor.text("tls_cert");
  const key = monitor.text("tls_key");
  if (monitor.text("auth_method") !== "mtls" || certificate === null || key === null) return {};
  return { tls_client_certificate: certificate, tls_client_key: new Secret(key) };
}

function headersOf(monitor: SourceObject): Record<string, unknown> {
  const text = monitor.text("headers");
  const headers = text === null ? {} : parseJson(text, `${monitor.label}: headers`);
  if (!isObject(headers)) {
    monitor.note("headers", "must be an object: not carried over");
    return {};
  }
  const entries = Object.entries(headers);
  for (const [name] of entries.filter(([name]) => isOwnHeader(name)))
    monitor.note("headers", `${shown(name)} is set by the server itself: not carried over`);
  const sent = entries.filter(([name]) => !isOwnHeader(name));
  return Object.fromEntries(
    sent.map(([name, value]) => {
      const plain = typeof value === "string" ? value : JSON.stringify(value);
      return [name, SECRET_NAMES.has(name.toLowerCase()) ? new Secret(plain) : plain];
    }),
  );
}

/** The database has them as the text of a list. */
function acceptedOf(monitor: SourceObject): readonly string[] | null {
  const text = monitor.text("accepted_statuscodes_json");
  const accepted =
    text === null
      ? monitor.list("accepted_statuscodes")
      : parseJson(text, `${monitor.label}: accepted_statuscodes`);
  const codes = Array.isArray(accepted)
    ? accepted.filter((code): code is string => typeof code === "string")
    : [];
  return codes.length === 0 ? null : codes;
}

function expectationOf(monitor: SourceObject, type: string): Readonly<Record<string, unknown>> {
  if (type === "keyword") {
    const keyword = monitor.text("keyword");
    return monitor.flag("invert_keyword") ? { keyword_absent: keyword } : { keyword };
  }
  if (type !== "json-query") return {};
  const path = monitor.text("json_path") ?? "$";
  const expected = monitor.text("expected_value");
  const operator = monitor.text("json_path_operator") ?? "==";
  // JSONata has far more than paths.
  const isPath = /^\$?\.?[A-Za-z_]\w*(\.[A-Za-z_]\w*|\[\d+\])*$/.test(path) && path.length <= 256;
  if (!isPath || expected === null) {
    monitor.note("json_path", `${shown(path)} is no path of members: only the status is checked`);
    return {};
  }
  const plain = path.replace(/^\$?\.?/, "");
  return { json_path: `$.${plain}`, json_op: operator, json_value: jsonValue(operator, expected) };
}

/** Uptime Kuma compares texts, but orders numbers. */
function jsonValue(operator: string, text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  const isNumber = text.length <= 15 && /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text);
  return isNumber && /^[<>]/.test(operator) ? Number(text) : text;
}

/** The nearest value within limits, with a note in the words of `shownAs` if that is another one. */
function within(
  monitor: SourceObject,
  field: string,
  value: number,
  [minimum, maximum]: readonly [number, number],
  shownAs: (value: number) => string = durationText,
): number {
  const fitting = Math.min(Math.max(Math.round(value), minimum), maximum);
  if (fitting !== value)
    monitor.noteChange(field, `${fitting < value ? "lowered" : "raised"} to ${shownAs(fitting)}`);
  return fitting;
}
