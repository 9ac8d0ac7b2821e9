/** Characters that end a line, or that no line should have. */
const BREAKS_LINE = /[\p{Cc}\u2028\u2029]/u;
const BREAKS = /[\p{Cc}\u2028\u2029]/gu;

/** Whether a text is one line without control characters. */
export function isOneLine(text: string): boolean {
  return !BREAKS_LINE.test(text);
}

/** A text on one line: what would break it is replaced. */
export function onOneLine(text: string, replacement: string): string {
  return text.replaceAll(BREAKS, replacement);
}
