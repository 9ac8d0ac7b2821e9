import { effect, signal } from "@preact/signals";

const STORED = "ninefold.start";

/** Whether the sidebar shows the first steps. Stored in this browser. */
export const startShown = signal(localStorage.getItem(STORED) !== "hidden");

effect(() => {
  if (startShown.value) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, "hidden");
});
