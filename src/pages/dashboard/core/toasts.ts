import { signal } from "@preact/signals";

/** A short message at the edge of the page. */
export interface Toast {
  readonly id: number;
  readonly text: string;
  /** Takes back what the message tells of. */
  readonly undo?: (() => void) | undefined;
}

const SHOWN_MS = 4_000;
/** Long enough to read, and to change one's mind. */
const UNDO_MS = 8_000;

/** What is shown. */
export const toasts = signal<readonly Toast[]>([]);
let last = 0;

/** Shows a message for some seconds. */
export function toast(text: string, undo?: () => void): void {
  last += 1;
  const id = last;
  toasts.value = [...toasts.value, { id, text, undo }];
  setTimeout(() => closeToast(id), undo === undefined ? SHOWN_MS : UNDO_MS);
}

/** Takes a message away. */
export function closeToast(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}
