import type { Channel, MonitorStatus } from "../../../../client/generated/api.ts";

type Alerts = Pick<MonitorStatus, "channels" | "webhook_url" | "email_alert">;
type Recipient = Pick<Channel, "id" | "name" | "default" | "events">;

/** Who is notified when the target goes down, in one sentence. `channels`: all of the project. */
export function alertText(
  { channels: chosen, webhook_url, email_alert }: Alerts,
  channels: readonly Recipient[],
): string {
  const notified = notifiedOf({ channels: chosen }, channels).map(({ name }) => name);
  const all = [
    ...(notified.length === 0 ? [] : [`${listed(notified)}${chosen === null ? " (default channels)" : ""}`]),
    ...(webhook_url === null ? [] : [webhook_url]),
    ...(email_alert ? ["e-mail"] : []),
  ];
  return all.length === 0 ? "nobody" : listed(all);
}

/** The channels that are notified when the target goes down. */
export function notifiedOf<T extends Recipient>(
  { channels: chosen }: Pick<MonitorStatus, "channels">,
  channels: readonly T[],
): T[] {
  return channels
    .filter(({ id, default: isDefault }) => (chosen === null ? isDefault : chosen.includes(id)))
    .filter(({ events }) => events.includes("monitor.down"));
}

/** `a, b and c`. */
function listed(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} and ${last}`;
}
