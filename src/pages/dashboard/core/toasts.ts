import { signal } from "@preact/signals";

/** A short message at the edge of the page. */
export interface Toast {
  readonly id: number;
  readonly text: string;
  /** Undoes the change that the message describes. */
  readonly undo?: (() => void) | undefined;
}

const SHOWN_MS = 4_000;
/** Enough time to read the message and to undo. */
const UNDO_MS = 8_000;

/** The visible messages. */
export const toasts = signal<readonly Toast[]>([]);
let last = 0;

/** Shows a message for a few seconds. */
export function toast(text: string, undo?: () => void): void {
  last += 1;
  const id = last;
  toasts.value = [...toasts.value, { id, text, undo }];
  setTimeout(() => closeToast(id), undo === undefined ? SHOWN_MS : UNDO_MS);
}

/** Removes a message. */
export function closeToast(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}
