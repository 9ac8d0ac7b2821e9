import { computed, signal } from "@preact/signals";
import { MINUTE_MS } from "./format.ts";

const TICK_MS = 1_000;

/** The current time, updated every second while the page is visible. Components that show an age read it. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, TICK_MS);

/** Start of the current minute, for what does not change every second. */
export const minute = computed(() => Math.floor(now.value / MINUTE_MS) * MINUTE_MS);
