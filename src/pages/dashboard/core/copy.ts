import { toast } from "./toasts.ts";

/** Copies a text. Over plain HTTP from another machine browsers have no clipboard: there it goes by a selection. */
export async function copyText(text: string, what: string): Promise<void> {
  const done = await byClipboard(text).catch(() => bySelection(text));
  toast(done ? `${what} copied` : `${what} could not be copied: select it and copy it by hand`);
}

async function byClipboard(text: string): Promise<boolean> {
  await navigator.clipboard.writeText(text);
  return true;
}

function bySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  const focused = document.activeElement;
  // Inside the open dialog: what is outside cannot be selected.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
