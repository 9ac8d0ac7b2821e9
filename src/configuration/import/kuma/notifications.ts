import { type Draft, Secret } from "../draft.ts";
import { parseJson, SourceObject, shown } from "../source.ts";

/** Recipients of a channel. */
const RECIPIENTS_MAX = 5;
const TELEGRAM = "https://api.telegram.org";

/** Settings of a channel by type of notification, without those that are not set. */
const SETTINGS: Readonly<Record<string, (config: SourceObject) => Readonly<Record<string, unknown>>>> = {
  discord: (config) => ({ kind: "discord", url: secret(config, "discordWebhookUrl") }),
  slack: (config) => ({ kind: "slack", url: secret(config, "slackwebhookURL") }),
  webhook: (config) => {
    config.noteChange("body", "of the webhook is another one: see the API's webhook alerts");
    config.ignore("webhookContentType");
    return { kind: "webhook", url: secret(config, "webhookURL") };
  },
  gotify: (config) => ({
    kind: "gotify",
    url: config.text("gotifyserverurl"),
    token: secret(config, "gotifyapplicationToken"),
  }),
  ntfy: (config) => {
    const server = (config.text("ntfyserverurl") ?? "https://ntfy.sh").replace(/\/$/, "");
    const topic = config.text("ntfytopic");
    config.ignore("ntfyAuthenticationMethod");
    return {
      kind: "ntfy",
      url: topic === null ? null : new Secret(`${server}/${encodeURIComponent(topic)}`),
      token: secret(config, "ntfyaccesstoken"),
    };
  },
  telegram: (config) => {
    const server = config.text("telegramServerUrl");
    return {
      kind: "telegram",
      token: secret(config, "telegramBotToken"),
      chat_id: config.text("telegramChatID"),
      url: server === null || server === TELEGRAM ? null : new Secret(server),
    };
  },
  smtp: (config) => {
    const recipients = (config.text("smtpTo") ?? "").split(",").map((recipient) => recipient.trim());
    const to = recipients.filter((recipient) => recipient !== "");
    config.noteChange("smtpHost", "is not used: the mail server is an option of ninefold serve (--smtp-url)");
    config.ignore(...config.names.filter((name) => name.startsWith("smtp")));
    return { kind: "email", to: config.limited("smtpTo", to, RECIPIENTS_MAX) };
  },
};

/** Imports a notification. Returns its id and the name of its channel; null for a type without a counterpart. */
export function notificationOf(draft: Draft, value: unknown): readonly [id: unknown, name: string | null] {
  const notification = new SourceObject(draft, "notification", value);
  const id = notification.any("id");
  const name = notification.text("name") ?? "notification";
  notification.label = `notification ${shown(name)}`;
  const isDefault = notification.flag("is_default") || notification.flag("isDefault");
  const isActive = notification.any("active") === null || notification.flag("active");
  notification.ignore("user_id", "userId");
  const stored = notification.any("config");
  notification.rest();
  const settings = typeof stored === "string" ? parseJson(stored, `${notification.label}: config`) : stored;
  const config = new SourceObject(draft, notification.label, settings ?? {}, notification.noun);
  const type = config.text("type") ?? "";
  const convert = Object.hasOwn(SETTINGS, type) ? SETTINGS[type] : undefined;
  if (convert === undefined || !isActive) {
    config.noteLoss(
      isActive ? "type" : "active",
      isActive ? `${shown(type)} is not supported` : "is disabled: not carried over",
    );
    return [id, null];
  }
  const values = { ...convert(config), default: isDefault };
  config.ignore("name", "isDefault", "applyExisting", "id", "userId", "active");
  config.rest();
  return [id, draft.add({ section: "channels", name, subject: notification, values })];
}

function secret(config: SourceObject, name: string): Secret | null {
  const value = config.text(name);
  return value === null ? null : new Secret(value);
}
