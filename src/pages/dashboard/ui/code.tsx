import { CopyButton } from "./button.tsx";

/** Most characters of a text that are shown; the rest can be downloaded. */
const SHOWN_MAX = 256 * 1024;

/** A text, rendered as a text node whatever it contains. */
export function Code({ text, what }: { text: string; what: string }) {
  const long = text.length > SHOWN_MAX;
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>{long ? text.slice(0, SHOWN_MAX) : text}</pre>
      <CopyButton text={text} what={what} />
      {long ? <p class="quiet small">First 256 KiB. Download the body to see all of it.</p> : null}
    </div>
  );
}

/** A value as formatted JSON. */
export function pretty(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
