import { SECRET } from "../../kernel/audit/redaction.ts";
import type { AlertEvent } from "../../kernel/data/incident-words.ts";
import type { RequestHeaders } from "../../kernel/outbound/headers.ts";
import { type ChannelConfig, type ChannelKind, SECRET_URL_KINDS } from "./schema.ts";

/**
 * Maximum length of a text, in UTF-16 units. With its heading, in UTF-8, it is within the limits of all providers; the
 * lowest are 2,000 characters of Discord and 4,096 bytes of ntfy.
 */
export const TEXT_MAX = 1_000;
/** The API of Telegram, unless a channel has its own server. */
const TELEGRAM = "https://api.telegram.org";

/** An event, several in one message, a test of a channel, or the alert of a meter, which goes to its own webhook only. */
export type ChannelMessageEvent = AlertEvent | "monitor.group" | "channel.test" | "meter.low";

/** A message to a channel. */
export interface ChannelMessage {
  readonly event: ChannelMessageEvent;
  /** That of the event by default. */
  readonly severity?: Severity;
  /** Such as `[DOWN] Shop`. */
  readonly heading: string;
  readonly text: string;
  /** More about the event, in lines of its own; null for none. */
  readonly detail: string | null;
  /** URL of the target; null without one. */
  readonly url: string | null;
  /** URL of the page in the console; null if the public URL is not configured. */
  readonly link: string | null;
  /** URL of the incident in the console, which e-mails link to instead; null without one. */
  readonly incidentLink: string | null;
  /** URL of the page that acknowledges or snoozes the incident, without a login; null without one. Not for webhooks. */
  readonly actionLink: string | null;
  /** Body of a webhook. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A request to a channel, always a POST. */
interface ChannelRequest {
  readonly url: string;
  readonly headers: RequestHeaders;
  readonly body: string;
}

type Field = keyof ChannelConfig;

/** Messages as requests, which the relay sends and retries. */
export interface HttpTransport {
  readonly transport: "http";
  /** Whether requests are signed as webhooks. Then their URL is not secret. */
  readonly isSigned?: true;
  /** Delays before retries; null: four attempts within 21 s. */
  readonly retries: readonly string[] | null;
  /** Makes the request of a message. */
  readonly request: (config: ChannelConfig, message: ChannelMessage) => ChannelRequest;
}

/** Messages as e-mails, which the outbox sends and retries. */
interface MailTransport {
  readonly transport: "mail";
}

/** How messages reach a recipient. */
export type Transport = HttpTransport | MailTransport;

/** What a kind of channel needs. */
interface KindInfo {
  readonly requiredFields: readonly Field[];
  readonly optionalFields?: readonly Field[];
  /** Format of `token`, if it is not any printable ASCII text. */
  readonly tokenFormat?: RegExp;
  /** The feature that the tier of the account must have. */
  readonly feature: "channels" | "email_channels";
}

/** What a kind of channel needs and does. */
type ChannelKindInfo = KindInfo & Transport;

/** 24 hours in total, as for endpoints: an alert must survive an outage of a chat service. */
const CHANNEL_RETRIES = ["5s", "5m", "30m", "2h", "5h", "10h", "6h"] as const;
const HTTP = { transport: "http", retries: CHANNEL_RETRIES, feature: "channels" } as const;

/** A Telegram token: a part of the path of a URL. */
const TELEGRAM_TOKEN = /^[0-9]{1,20}:[A-Za-z0-9_-]{1,128}$/;
/** Any other token: the value of a header. */
const TOKEN = /^[\x21-\x7e]+$/;

/** All kinds of channels that projects have. */
export const CHANNEL_KINDS: Readonly<Record<ChannelKind, ChannelKindInfo>> = {
  webhook: {
    ...HTTP,
    requiredFields: ["url"],
    isSigned: true,
    request: ({ url = "" }, { facts }) => json(url, facts),
  },
  slack: {
    ...HTTP,
    requiredFields: ["url"],
    request: ({ url = "" }, message) => json(url, { text: escapedForSlack(linesOf(message)) }),
  },
  discord: {
    ...HTTP,
    requiredFields: ["url"],
    request: ({ url = "" }, message) =>
      json(url, { content: linesOf(message), allowed_mentions: { parse: [] } }),
  },
  telegram: {
    ...HTTP,
    requiredFields: ["token", "chat_id"],
    optionalFields: ["url"],
    tokenFormat: TELEGRAM_TOKEN,
    request: ({ url, token = "", chat_id }, message) =>
      json(withPath(url ?? TELEGRAM, `/bot${token}/sendMessage`), { chat_id, text: linesOf(message) }),
  },
  ntfy: {
    ...HTTP,
    requiredFields: ["url"],
    optionalFields: ["token"],
    request({ url = "", token }, message) {
      const severity = severityOf(message);
      const authorization: RequestHeaders = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      const headers = {
        "Content-Type": "text/plain; charset=utf-8",
        Title: headerText(message.heading),
        Priority: severity === "failure" ? "5" : "3",
        Tags: NTFY_TAGS[severity],
        ...authorization,
      };
      return { url, headers, body: textOf(message) };
    },
  },
  gotify: {
    ...HTTP,
    requiredFields: ["url", "token"],
    request({ url = "", token = "" }, message) {
      const priority = severityOf(message) === "failure" ? 8 : 4;
      const body = { title: message.heading, message: textOf(message), priority };
      return json(withPath(url, "/message"), body, { "X-Gotify-Key": token });
    },
  },
  apprise: {
    ...HTTP,
    requiredFields: ["url"],
    request: ({ url = "" }, message) =>
      json(url, { title: message.heading, body: textOf(message), type: severityOf(message) }),
  },
  email: {
    transport: "mail",
    requiredFields: ["to"],
    feature: "email_channels",
  },
};

/** How what has no channel of a project is alerted: it is a channel inside, with settings of its own. */
export const INNER_CHANNELS = {
  /** The `webhook_url` of a monitor. Its body has no text, and no ping of a client. */
  monitorWebhook: {
    transport: "http",
    isSigned: true,
    retries: null,
    request({ url = "" }, { facts: { incident_id, text, last_ping_body, ...body } }) {
      return json(url, body);
    },
  },
  /** The `email_alert` of a monitor. */
  accountMail: { transport: "mail" },
  /** The `webhook_url` of a meter's alert. */
  meterWebhook: {
    transport: "http",
    isSigned: true,
    retries: null,
    request: ({ url = "" }, { facts }) => json(url, facts),
  },
} as const satisfies Readonly<Record<string, Transport>>;

/** Severities of messages, the worst first. */
export const SEVERITIES = ["failure", "warning", "success", "info"] as const;
/** One of {@link SEVERITIES}. */
export type Severity = (typeof SEVERITIES)[number];

const EVENT_LABELS: Readonly<Record<ChannelMessageEvent, readonly [label: string, severity: Severity]>> = {
  "monitor.down": ["DOWN", "failure"],
  "monitor.up": ["UP", "success"],
  "monitor.degraded": ["DEGRADED", "warning"],
  "monitor.recovered": ["RECOVERED", "success"],
  "monitor.certificate": ["CERTIFICATE", "warning"],
  "monitor.domain": ["DOMAIN", "warning"],
  "monitor.flapping": ["FLAPPING", "warning"],
  "monitor.acknowledged": ["ACKNOWLEDGED", "info"],
  "monitor.overdue": ["OVERDUE", "warning"],
  "monitor.runs_exceeded": ["TOO MANY RUNS", "warning"],
  "monitor.unknown": ["UNKNOWN", "warning"],
  "probe.offline": ["PROBE OFFLINE", "warning"],
  "probe.online": ["PROBE ONLINE", "success"],
  "observer.offline": ["WAS OFFLINE", "warning"],
  "maintenance.started": ["MAINTENANCE", "info"],
  "maintenance.ended": ["MAINTENANCE OVER", "info"],
  "catch.failed": ["WEBHOOK FAILED", "failure"],
  "monitor.group": ["GROUP", "info"],
  "channel.test": ["TEST", "info"],
  "meter.low": ["LOW", "warning"],
};
/** Names of emoji that ntfy shows. */
const NTFY_TAGS: Readonly<Record<Severity, string>> = {
  failure: "rotating_light",
  success: "white_check_mark",
  warning: "warning",
  info: "information_source",
};

/** The name of an event in headings. */
export function labelOf(event: ChannelMessageEvent): string {
  return EVENT_LABELS[event][0];
}

/** The heading of a message. */
export function headingOf(event: ChannelMessageEvent, title: string): string {
  return `[${labelOf(event)}] ${title}`;
}

/** A text, cut to a length. */
export function shortened(text: string, lengthMax: number = TEXT_MAX): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1).toWellFormed()}…`;
}

/** The request of a message to a channel. Not for e-mails. The sender signs webhooks. */
export function requestOf(kind: ChannelKind, config: ChannelConfig, message: ChannelMessage): ChannelRequest {
  const info = CHANNEL_KINDS[kind];
  if (info.transport !== "http") throw new Error(`channels of the kind ${kind} send no requests`);
  return info.request(config, message);
}

/** The text with its link, and below it the link of actions and the detail. */
function textOf({ text, link, actionLink, detail }: ChannelMessage): string {
  const line = link === null ? text : `${text} · ${link}`;
  const action = actionLink === null ? [] : [`Acknowledge or snooze: ${actionLink}`];
  return [line, ...action, ...(detail === null ? [] : [detail])].join("\n");
}

/** The text of an e-mail. */
export function mailTextOf(message: ChannelMessage): string {
  const { text, detail, url, link, incidentLink, actionLink } = message;
  const about = [
    ...(url === null ? [] : [`URL: ${url}`]),
    ...(incidentLink === null ? [] : [`Incident: ${incidentLink}`]),
    ...(actionLink === null ? [] : [`Acknowledge or snooze: ${actionLink}`]),
    ...(incidentLink === null && link !== null ? [`Details: ${link}`] : []),
  ];
  const parts = [text.replaceAll(" · ", "\n"), ...(detail === null ? [] : [detail])];
  return [...parts, ...(about.length === 0 ? [] : [about.join("\n")])].join("\n\n");
}

/** Whether a token has the format of its kind. */
export function isToken(kind: ChannelKind, token: string): boolean {
  return (CHANNEL_KINDS[kind].tokenFormat ?? TOKEN).test(token);
}

/** A URL without its path and query, which are secret. */
export function redactedUrl(url: string): string {
  return `${new URL(url).origin}/${SECRET}`;
}

/** Whether the URL of a kind is a secret. */
function hasSecretUrl(kind: ChannelKind): boolean {
  return SECRET_URL_KINDS.includes(kind);
}

/** The secrets of a channel's configuration by field. */
export function secretsIn(
  kind: ChannelKind,
  { url, token }: ChannelConfig,
): Record<string, string | undefined> {
  return { token, ...(hasSecretUrl(kind) ? { url } : {}) };
}

/** A channel's configuration without its secrets. */
export function redactedConfig(kind: ChannelKind, config: ChannelConfig): ChannelConfig {
  const { url, token } = config;
  return {
    ...config,
    ...(url === undefined || !hasSecretUrl(kind) ? {} : { url: redactedUrl(url) }),
    ...(token === undefined ? {} : { token: SECRET }),
  };
}

/** The severity of a message. */
export function severityOf({ event, severity }: ChannelMessage): Severity {
  return severity ?? EVENT_LABELS[event][1];
}

function linesOf(message: ChannelMessage): string {
  return `${message.heading}\n${textOf(message)}`;
}

function json(url: string, body: object, headers: RequestHeaders = {}): ChannelRequest {
  return { url, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) };
}

function withPath(base: string, path: string): string {
  const url = new URL(base);
  url.pathname = (url.pathname.endsWith("/") ? url.pathname.slice(0, -1) : url.pathname) + path;
  return url.href;
}

/** Slack interprets these three characters, for example in mentions of everyone. */
function escapedForSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Bytes of one encoded word: in base64 with its delimiters, at most 75 characters (RFC 2047, section 2). */
const WORD_BYTES = 45;

/** A text as a header value: text that is not ASCII as encoded words of RFC 2047. */
function headerText(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  const words: string[] = [];
  let word = "";
  for (const character of text) {
    if (Buffer.byteLength(word + character) > WORD_BYTES) {
      words.push(word);
      word = "";
    }
    word += character;
  }
  return [...words, word].map((text) => `=?UTF-8?B?${Buffer.from(text).toString("base64")}?=`).join(" ");
}
