import { html, type Markup } from "../../kernel/data/markup.ts";

/** Maximum size of the user-written texts in one public page, its data or its feed, in bytes: about a hundred pages of a book. */
export const TEXT_BYTES_MAX = 256 * 1024;

/** Counts the user-written text of one page against {@link TEXT_BYTES_MAX}. */
export class TextBudget {
  private left = TEXT_BYTES_MAX;

  /** Reserves space for a text. Returns false, and reserves nothing, if it does not fit. */
  reserve(bytes: number): boolean {
    if (bytes > this.left) return false;
    this.left -= bytes;
    return true;
  }
}

/** Size of a text in its largest form: markup in a feed, which is escaped twice, or JSON. */
export function bytesOf(text: string, markup: Markup = html`${text}`): number {
  return Math.max(Buffer.byteLength(html`${markup.text}`.text), Buffer.byteLength(JSON.stringify(text)));
}
