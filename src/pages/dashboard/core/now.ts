import { signal } from "@preact/signals";

const TICK_MS = 1_000;

/** The time, to the second: what shows an age reads it and is drawn again. It stands still while nobody looks. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, TICK_MS);
