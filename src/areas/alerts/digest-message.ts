import { ALERT_EVENTS, type AlertEvent } from "../../kernel/data/incident-words.ts";
import { clockText, durationText } from "../../kernel/time/readable.ts";
import { secondsOf } from "../../kernel/time/units.ts";
import {
  type ChannelMessage,
  headingOf,
  labelOf,
  SEVERITIES,
  type Severity,
  severityOf,
  shortened,
  TEXT_MAX,
} from "./channel-kinds.ts";
import type { QuietHours } from "./schema.ts";
import type { HeldAlertRow } from "./store.ts";

/** Alerts that one message shows; it counts the others. */
export const DIGEST_ALERTS_MAX = 100;
/** Size of the alerts in the body of a webhook, as servers accept it. The message counts the others. */
const DIGEST_BYTES_MAX = 256 * 1024;
/** Length of the line of an alert. */
const LINE_MAX = 240;
const EVENT = "monitor.group";

/** An alert that a channel gets later. */
export interface HeldAlert extends Pick<HeldAlertRow, "monitorRef" | "incidentRef" | "event"> {
  readonly message: ChannelMessage;
}

/** An alert of a digest. */
export interface DigestAlert extends HeldAlert {
  /** Ascending in time. */
  readonly ref: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** URL of the page that acknowledges or snoozes its incident; null without one. */
  readonly actionLink: string | null;
}

/** What a channel has missed. */
export interface Digest {
  /** Those that are shown before others come first. */
  readonly alerts: readonly DigestAlert[];
  /** The numbers of all alerts by their events. */
  readonly counts: readonly { readonly event: AlertEvent; readonly n: number }[];
  /** Quiet hours in which they were held; null: they are of a short time, `groupMs`. */
  readonly quietHours: QuietHours | null;
  readonly groupMs: number;
  /** URL of the page with the incidents; null if the public URL is not configured. */
  readonly link: string | null;
  readonly now: number;
  /** Time zone of the times in the text. */
  readonly zone: string;
}

/** The message with what a channel has missed. `isMail`: a long one, with the links of each alert. */
export function digestMessage(digest: Digest, isMail: boolean): ChannelMessage {
  const { alerts, counts, link } = digest;
  const total = totalOf(counts);
  const heading = headingOf(EVENT, titleOf(counts));
  const text = reasonOf(digest, total);
  const facts = factsOf(digest, total, text);
  const linesOf = (alert: DigestAlert) => (isMail ? mailLinesOf(alert, digest) : lineOf(alert, digest));
  const lengthMax = isMail ? Number.POSITIVE_INFINITY : TEXT_MAX - text.length;
  const shown = fitting(alerts, (alert) => linesOf(alert).length + 1, lengthMax);
  const more = total === shown.length ? [] : [`and ${total - shown.length} more`];
  const detail = [...shown.map(linesOf), ...more].join(isMail ? "\n\n" : "\n");
  const severity = severityOfAll(alerts);
  const links = { url: null, link, incidentLink: null, actionLink: null };
  return { event: EVENT, heading, text, detail, severity, ...links, facts };
}

/** The number of all alerts of a digest. */
export function totalOf(counts: Digest["counts"]): number {
  return counts.reduce((sum, { n }) => sum + n, 0);
}

/** `2 down, 1 up`. */
function titleOf(counts: Digest["counts"]): string {
  return [...counts]
    .sort((left, right) => ALERT_EVENTS.indexOf(left.event) - ALERT_EVENTS.indexOf(right.event))
    .map(({ event, n }) => `${n} ${labelOf(event).toLowerCase()}`)
    .join(", ");
}

function reasonOf({ quietHours, groupMs }: Digest, total: number): string {
  const alerts = total === 1 ? "1 alert" : `${total} alerts`;
  if (quietHours === null) return groupMs === 0 ? alerts : `${alerts} within ${durationText(groupMs)}`;
  const { from, to, time_zone } = quietHours;
  return `${alerts} in quiet hours, ${from}–${to} ${time_zone}`;
}

function factsOf({ alerts, now }: Digest, total: number, text: string): ChannelMessage["facts"] {
  const sizeOf = ({ message }: DigestAlert) => Buffer.byteLength(JSON.stringify(message.facts));
  const shown = fitting(alerts, sizeOf, DIGEST_BYTES_MAX).map(({ message }) => message.facts);
  return { event: EVENT, alerts: shown, omitted: total - shown.length, text, timestamp: secondsOf(now) };
}

/** The first alerts that fit, in the order of time. */
function fitting(
  alerts: readonly DigestAlert[],
  sizeOf: (alert: DigestAlert) => number,
  sizeMax: number,
): DigestAlert[] {
  let size = 0;
  const end = alerts.findIndex((alert) => {
    size += sizeOf(alert);
    return size > sizeMax;
  });
  return inOrder(end === -1 ? alerts : alerts.slice(0, end));
}

/** Alerts in the order in which they happened. */
function inOrder(alerts: readonly DigestAlert[]): DigestAlert[] {
  return [...alerts].sort((left, right) => left.ref - right.ref);
}

type TextTime = Pick<Digest, "now" | "zone">;

function lineOf({ at, message: { heading, text } }: DigestAlert, { now, zone }: TextTime): string {
  return shortened(`${clockText(at, now, zone)} ${heading}: ${text}`, LINE_MAX);
}

function mailLinesOf(alert: DigestAlert, time: TextTime): string {
  const { actionLink, message } = alert;
  const link = message.incidentLink ?? message.link;
  return [
    lineOf(alert, time),
    ...(link === null ? [] : [link]),
    ...(actionLink === null ? [] : [`Acknowledge or snooze: ${actionLink}`]),
  ].join("\n");
}

/** The worst of the alerts, without outages that were over before the message. */
function severityOfAll(alerts: readonly DigestAlert[]): Severity {
  const severities = new Set(
    alerts.filter((alert) => isOngoing(alerts, alert)).map(({ message }) => severityOf(message)),
  );
  return SEVERITIES.find((severity) => severities.has(severity)) ?? "info";
}

/** Whether no recovery among some alerts followed one of them. */
export function isOngoing(
  alerts: readonly Pick<DigestAlert, "ref" | "event" | "monitorRef">[],
  alert: Pick<DigestAlert, "ref" | "event" | "monitorRef">,
): boolean {
  const { ref, event, monitorRef } = alert;
  if (event !== "monitor.down") return true;
  return !alerts.some(
    (later) => later.event === "monitor.up" && later.monitorRef === monitorRef && later.ref > ref,
  );
}
