import { errorToast, toast } from "./toasts.ts";

/** Copies text to the clipboard. Over plain HTTP browsers offer no clipboard API; there it copies a selection. */
export async function copyText(text: string, what: string): Promise<void> {
  const done = await byClipboard(text).catch(() => bySelection(text));
  if (done) toast(`${what} copied`);
  else errorToast(`Could not copy ${what}. Select it and copy it manually.`);
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
  // Inside the open dialog, since elements outside it cannot be selected.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
