import { effect, signal } from "@preact/signals";
import { inUtc } from "./times.ts";

/** Colour theme: that of the system, or always the same. */
export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];

const KEPT_THEME = "ninefold.theme";
const KEPT_SHORTCUTS = "ninefold.shortcuts";
const KEPT_UTC = "ninefold.utc";

/** Stored in this browser. */
export const theme = signal<Theme>(
  THEMES.find((theme) => theme === localStorage.getItem(KEPT_THEME)) ?? "system",
);
/** Whether single-key shortcuts are enabled. */
export const shortcutsOn = signal(localStorage.getItem(KEPT_SHORTCUTS) !== "off");

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  if (theme.value === "system") localStorage.removeItem(KEPT_THEME);
  else localStorage.setItem(KEPT_THEME, theme.value);
});
inUtc.value = localStorage.getItem(KEPT_UTC) === "on";
effect(() => {
  if (inUtc.value) localStorage.setItem(KEPT_UTC, "on");
  else localStorage.removeItem(KEPT_UTC);
});
effect(() => {
  if (shortcutsOn.value) localStorage.removeItem(KEPT_SHORTCUTS);
  else localStorage.setItem(KEPT_SHORTCUTS, "off");
});
