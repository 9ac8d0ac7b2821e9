import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";
import { clockText, durationText } from "../../kernel/time/readable.ts";

const codes = registerErrors({
  incident_limit_exceeded: [
    403,
    "The project has reached its limit of open manual incidents. Resolve one first.",
    "Resolve incidents that are over.",
  ],
  incident_update_limit_exceeded: [
    403,
    "The incident has reached its limit of updates.",
    "Resolve the incident, and create a new one if it continues.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** The start of an incident, epoch milliseconds. */
interface Started {
  readonly startedAt: number;
}

/** The cause of an outage, and since when it lasts. `zone`: the time zone of the text. */
export function downText(
  error: string | null,
  incident: Started | null,
  { now, zone }: { readonly now: number; readonly zone: string },
): string {
  const cause = error ?? "no response";
  if (incident === null) return cause;
  const since = `since ${clockText(incident.startedAt, now, zone)}`;
  // Causes that are sentences are those of heartbeats.
  return cause.endsWith(".") ? `${cause} Down ${since}.` : `${cause} · ${since}`;
}

/** The response of a target that has recovered, and how long it was down. */
export function upText(
  {
    at,
    responseStatus,
    latencyMs,
  }: { readonly at: number; readonly responseStatus: number | null; readonly latencyMs: number },
  incident: Started | null,
): string {
  const parts: string[] = [];
  if (responseStatus !== null) parts.push(`responded with ${responseStatus} in ${latencyMs} ms`);
  if (incident !== null) parts.push(`was down for ${durationText(at - incident.startedAt)}`);
  return parts.length === 0 ? "up again" : parts.join(" · ");
}

/** A text of a client without control characters, except line breaks and tabs. */
export function printable(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, "").trimEnd();
}
