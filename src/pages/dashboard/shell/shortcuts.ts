import { go } from "../core/route.ts";
import { session } from "../core/session.ts";
import { shortcutsOn } from "../core/theme.ts";
import { helpOpen, paletteOpen } from "./commands.ts";
import { visiblePages } from "./pages.ts";
import { SHORTCUTS } from "./sitemap.ts";

/** Time in which the letter of a page must follow `g`. */
const SEQUENCE_MS = 1_200;
let goUntil = 0;

/** All shortcuts and their actions. */
export function shortcuts(): readonly (readonly [keys: string, what: string])[] {
  return [
    ...SHORTCUTS,
    ...visiblePages().map(({ letter, title }): readonly [string, string] => [`g ${letter}`, title]),
  ];
}

/** Listens for shortcuts. */
export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (!session.value) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      paletteOpen.value = !paletteOpen.value;
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !shortcutsOn.value) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
    if (pressed(event.key)) event.preventDefault();
  });
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

function pressed(key: string): boolean {
  if (Date.now() < goUntil) {
    goUntil = 0;
    const page = visiblePages().find(({ letter }) => letter === key);
    if (page !== undefined) go([page.path]);
    return page !== undefined;
  }
  switch (key) {
    case "g":
      goUntil = Date.now() + SEQUENCE_MS;
      return true;
    case "?":
      helpOpen.value = true;
      return true;
    case "/":
      document.querySelector<HTMLElement>("[data-search]")?.focus();
      return true;
    case "j":
      return moveRow(1);
    case "k":
      return moveRow(-1);
    default:
      return false;
  }
}

/** Moves the focus between the rows of the page. */
function moveRow(step: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
  next?.focus();
  return next !== undefined;
}
