import { computed, signal } from "@preact/signals";
import { MINUTE_MS, SECOND_MS } from "./format.ts";

const TICK_MS = SECOND_MS;
/** A smaller difference to the server's clock may be the way of its response. */
const TOLERANCE_MS = 2 * SECOND_MS;

let offsetMs = 0;

/** The time of the server: a clock of this machine that is wrong changes no age. */
export function serverNow(): number {
  return Date.now() + offsetMs;
}

/** The current time of the server, updated every second while the page is visible. Components that show an age read it. */
export const now = signal(Date.now());

/** Records the time of the server, epoch milliseconds, from a response that has just arrived. */
export function setServerTime(at: number): void {
  if (Math.abs(at - serverNow()) < TOLERANCE_MS) return;
  offsetMs = at - Date.now();
  now.value = at;
}

setInterval(() => {
  if (!document.hidden) now.value = serverNow();
}, TICK_MS);

/** Start of the current minute, for what does not change every second. */
export const minute = computed(() => Math.floor(now.value / MINUTE_MS) * MINUTE_MS);
