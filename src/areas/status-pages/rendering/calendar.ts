import { isoTime } from "../../../kernel/time/date-time.ts";
import type { PageEvents, ShownMaintenance } from "../events.ts";

/** Maximum length of a line in octets, without its end (RFC 5545, section 3.1). */
const LINE_OCTETS_MAX = 75;

/** Renders the maintenance windows of a page as an iCalendar object (RFC 5545). `address` is the absolute URL of the page. */
export function maintenanceCalendar({ page, maintenance }: PageEvents, address: string): string {
  const lines = [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Ninefold//Status pages//EN",
    `X-WR-CALNAME:${escaped(page.settings.title)}`,
    ...maintenance.flatMap((window) => eventOf(window, page.id, address)),
    "END:VCALENDAR",
  ];
  return lines.map((line) => `${folded(line)}\r\n`).join("");
}

function eventOf(window: ShownMaintenance, pageId: string, address: string): string[] {
  const { id, title, message, names, startsAt, endsAt, announcedAt } = window;
  const text = [names, message].filter((part) => part !== "").join("\n\n");
  return [
    "BEGIN:VEVENT",
    // A digest, since ids are not shown.
    `UID:${Bun.CryptoHasher.hash("sha256", `${pageId} ${id}`, "hex").slice(0, 32)}@ninefold`,
    `DTSTAMP:${utc(announcedAt)}`,
    `DTSTART:${utc(startsAt)}`,
    `DTEND:${utc(endsAt)}`,
    `SUMMARY:${escaped(title)}`,
    ...(text === "" ? [] : [`DESCRIPTION:${escaped(text)}`]),
    `URL:${address}`,
    "END:VEVENT",
  ];
}

/** A time in the form `20260310T120000Z`. */
function utc(epochMs: number): string {
  return `${isoTime(epochMs).slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
}

/** Escapes a text (RFC 5545, section 3.3.11); other control characters are not allowed in it. */
function escaped(text: string): string {
  return text
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[\\;,]/g, (character) => `\\${character}`)
    .replaceAll("\n", "\\n")
    .replaceAll("\t", " ")
    .replaceAll(/\p{Cc}/gu, "\ufffd");
}

/** Splits a line into lines of at most {@link LINE_OCTETS_MAX} octets, each but the first after a space. */
function folded(line: string): string {
  let result = "";
  let octets = 0;
  for (const character of line) {
    const size = Buffer.byteLength(character);
    if (octets + size > LINE_OCTETS_MAX) {
      result += "\r\n ";
      octets = 1;
    }
    result += character;
    octets += size;
  }
  return result;
}
