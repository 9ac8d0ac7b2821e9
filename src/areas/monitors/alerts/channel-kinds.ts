import { SECRET } from "../../../kernel/audit/redaction.ts";
import type { RequestHeaders } from "../../../kernel/outbound/headers.ts";
import type { ChannelConfig, ChannelEvent, ChannelKind } from "./schema.ts";

/** Longest text that is sent, in UTF-16 units: with its heading and in UTF-8 it is within the bound of every provider, the lowest being Discord's 2,000 characters and ntfy's 4,096 bytes. */
export const TEXT_MAX = 1_000;
/** Where bots of Telegram are called, unless a channel has a server of its own. */
const TELEGRAM = "https://api.telegram.org";

/** An event, or a test of a channel. */
export type ChannelMessageEvent = ChannelEvent | "channel.test";

/** What is told, as people read it. */
export interface ChannelMessage {
  readonly event: ChannelMessageEvent;
  /** `[DOWN] Shop`. */
  readonly heading: string;
  readonly text: string;
  /** The page of the console; null where it is not known how the server is reached. */
  readonly link: string | null;
  /** What a webhook's body says. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A request to a channel. */
export interface ChannelRequest {
  readonly url: string;
  readonly headers: RequestHeaders;
  readonly body: string;
}

type Grade = "failure" | "success" | "warning" | "info";

const EVENT_LABELS: Readonly<Record<ChannelMessageEvent, readonly [word: string, grade: Grade]>> = {
  "monitor.down": ["DOWN", "failure"],
  "monitor.up": ["UP", "success"],
  "monitor.degraded": ["DEGRADED", "warning"],
  "monitor.recovered": ["RECOVERED", "success"],
  "monitor.certificate": ["CERTIFICATE", "warning"],
  "monitor.flapping": ["FLAPPING", "warning"],
  "monitor.acknowledged": ["ACKNOWLEDGED", "info"],
  "observer.offline": ["WAS OFFLINE", "warning"],
  "maintenance.started": ["MAINTENANCE", "info"],
  "maintenance.ended": ["MAINTENANCE OVER", "info"],
  "channel.test": ["TEST", "info"],
};
/** Names of emoji that ntfy shows. */
const TAGS: Readonly<Record<Grade, string>> = {
  failure: "rotating_light",
  success: "white_check_mark",
  warning: "warning",
  info: "information_source",
};

/** What a message begins with. */
export function headingOf(event: ChannelMessageEvent, title: string): string {
  return `[${EVENT_LABELS[event][0]}] ${title}`;
}

/** A text that is not too long. */
export function shortened(text: string): string {
  return text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX - 1).toWellFormed()}…`;
}

/** What is sent to a channel of a kind. Webhooks are signed by who sends them; e-mails go another way. */
export function requestOf(
  kind: Exclude<ChannelKind, "email">,
  { url = "", token = "", chat_id }: ChannelConfig,
  told: ChannelMessage,
): ChannelRequest {
  const { heading, facts } = told;
  const grade = EVENT_LABELS[told.event][1];
  const isUrgent = grade === "failure";
  const text = textOf(told);
  const message = `${heading}\n${text}`;
  switch (kind) {
    case "webhook":
      return json(url, facts);
    case "slack":
      return json(url, { text: escaped(message) });
    case "discord":
      return json(url, { content: message, allowed_mentions: { parse: [] } });
    case "telegram":
      return json(below(url || TELEGRAM, `/bot${token}/sendMessage`), { chat_id, text: message });
    case "gotify": {
      const body = { title: heading, message: text, priority: isUrgent ? 8 : 4 };
      return json(below(url, "/message"), body, { "X-Gotify-Key": token });
    }
    case "apprise":
      return json(url, { title: heading, body: text, type: grade });
    case "ntfy": {
      const shown = { Title: headerText(heading), Priority: isUrgent ? "5" : "3", Tags: TAGS[grade] };
      const type = { "Content-Type": "text/plain; charset=utf-8" };
      const authorization: RequestHeaders = token === "" ? {} : { Authorization: `Bearer ${token}` };
      return { url, headers: { ...type, ...shown, ...authorization }, body: text };
    }
  }
}

/** The text with its link. */
export function textOf({ text, link }: ChannelMessage): string {
  return link === null ? text : `${text} · ${link}`;
}

/** A URL whose path and query are secrets of its own. */
export function redactedUrl(url: string): string {
  return `${new URL(url).origin}/${SECRET}`;
}

/** A channel's configuration without what is secret in it. */
export function redactedConfig(kind: ChannelKind, config: ChannelConfig): ChannelConfig {
  const { url, token } = config;
  const isPlain = kind === "webhook" || kind === "gotify" || kind === "telegram";
  return {
    ...config,
    ...(url === undefined || isPlain ? {} : { url: redactedUrl(url) }),
    ...(token === undefined ? {} : { token: SECRET }),
  };
}

function json(url: string, body: object, headers: RequestHeaders = {}): ChannelRequest {
  return { url, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) };
}

function below(base: string, path: string): string {
  const url = new URL(base);
  url.pathname = (url.pathname.endsWith("/") ? url.pathname.slice(0, -1) : url.pathname) + path;
  return url.href;
}

/** Slack reads these three as its own signs, in mentions of everybody for one. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Bytes of one encoded word: with what stands around it, and in base64, at most 75 characters (RFC 2047, section 2). */
const WORD_BYTES = 45;

/** A text as a header's value: what is not ASCII as encoded words of RFC 2047. */
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
  return [...words, word].map((one) => `=?UTF-8?B?${Buffer.from(one).toString("base64")}?=`).join(" ");
}
