import { signal } from "@preact/signals";

/** A short message at the edge of the page. */
export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
  /** Label and effect of its button, such as an undo. */
  readonly action?: readonly [label: string, run: () => void] | undefined;
}

type Content = Pick<Toast, "text" | "action"> & { readonly isError?: boolean };

const SHOWN_MS = 4_000;
/** Enough time to read the message and to undo. */
const UNDO_MS = 8_000;

/** The visible messages. */
export const toasts = signal<readonly Toast[]>([]);
let last = 0;

/** Shows a message for a few seconds. */
export function toast(text: string, undo?: () => void): void {
  const id = show({ text, action: undo && ["Undo", undo] });
  setTimeout(() => closeToast(id), undo === undefined ? SHOWN_MS : UNDO_MS);
}

/** Shows an error until the user closes it: it may be needed for a report. The same error is shown once. */
export function errorToast(text: string): void {
  if (!toasts.value.some((toast) => toast.isError && toast.text === text)) show({ text, isError: true });
}

/** Shows the state of work that is running. Returns a function that replaces the text; null removes the message. */
export function progressToast(text: string, action?: Toast["action"]): (text: string | null) => void {
  const id = show({ text, action });
  return (next) => {
    if (next === null) closeToast(id);
    else toasts.value = toasts.value.map((toast) => (toast.id === id ? { ...toast, text: next } : toast));
  };
}

/** Removes a message. */
export function closeToast(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

function show({ text, action, isError = false }: Content): number {
  last += 1;
  toasts.value = [...toasts.value, { id: last, text, action, isError }];
  return last;
}
