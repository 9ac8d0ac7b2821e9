import { computed, signal } from "@preact/signals";

const TICK_MS = 1_000;
const MINUTE_MS = 60_000;

/** The time, to the second: what shows an age reads it and is drawn again. It stands still while nobody looks. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, TICK_MS);

/** The minute's beginning: for what need not be drawn every second. */
export const minute = computed(() => Math.floor(now.value / MINUTE_MS) * MINUTE_MS);
