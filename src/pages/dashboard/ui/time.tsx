import { ago, instant } from "../core/format.ts";
import { now } from "../core/now.ts";

/** A moment by its distance; the exact one on hovering. */
export function Ago({ at, never = "never" }: { at: string | number | null | undefined; never?: string }) {
  if (at === null || at === undefined) return <span class="quiet">{never}</span>;
  const moment = instant(at);
  const exact = new Date(moment).toISOString();
  return (
    <time dateTime={exact} title={exact.replace("T", " ").replace("Z", " UTC")}>
      {ago(moment, now.value)}
    </time>
  );
}

/** A moment exactly, in the reader's own time. */
export function Moment({ at }: { at: string | number | null | undefined }) {
  if (at === null || at === undefined) return <span class="quiet">–</span>;
  const date = new Date(instant(at));
  return (
    <time dateTime={date.toISOString()} title={date.toISOString()}>
      {date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" })}
    </time>
  );
}
