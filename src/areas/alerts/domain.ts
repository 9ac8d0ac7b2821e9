import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";
import { localTime } from "../../kernel/time/readable.ts";
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";
import type { Remind } from "./schema.ts";

const codes = registerErrors({
  channel_limit_exceeded: [
    403,
    "The project has the maximum number of channels.",
    "Delete channels that are not used.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Time between reminders; null: there are none. */
export const REMIND_MS: Readonly<Record<Remind, number | null>> = {
  never: null,
  "1h": HOUR_MS,
  "6h": 6 * HOUR_MS,
  "1d": DAY_MS,
};

/** The key of the job of a reminder. */
export function reminderKey(monitorRef: number, channelRef: number): string {
  return `${monitorRef}/${channelRef}`;
}

/**
 * `10:02–10:04 UTC`, with dates if it is not of one day in the time zone: `2026-03-10 10:02–2026-03-11 08:01 UTC`.
 */
export function periodText(from: number, to: number, zone: string): string {
  const [start, end] = [from, to].map((at) => localTime(at, zone).slice(0, 16).replace("T", " "));
  const isOneDay = start?.slice(0, 10) === end?.slice(0, 10);
  return isOneDay ? `${start?.slice(11)}–${end?.slice(11)} ${zone}` : `${start}–${end} ${zone}`;
}
