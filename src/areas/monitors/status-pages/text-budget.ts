import { html, type Markup } from "../incidents/markup.ts";

/** Bytes of what people wrote that one public page, its data or its feed contains: about a hundred pages of a book. */
export const TEXT_BYTES_MAX = 256 * 1024;

/** How much text a page still has space for, in bytes. */
export class TextBudget {
  private left = TEXT_BYTES_MAX;

  /** Takes the space of a text. Returns false, and takes nothing, where it does not fit. */
  reserve(bytes: number): boolean {
    if (bytes > this.left) return false;
    this.left -= bytes;
    return true;
  }
}

/** Bytes of a text in the form in which it is largest: the markup in a feed, which is escaped once more, or JSON. */
export function bytesOf(text: string, markup: Markup = html`${text}`): number {
  return Math.max(Buffer.byteLength(html`${markup.text}`.text), Buffer.byteLength(JSON.stringify(text)));
}
