import { ago, instant } from "../core/format.ts";
import { now } from "../core/now.ts";

/** A relative time, with the exact time as a tooltip. */
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

/** An exact time in the user's time zone. */
export function DateTime({ at }: { at: string | number | null | undefined }) {
  if (at === null || at === undefined) return <span class="quiet">–</span>;
  const date = new Date(instant(at));
  return (
    <time dateTime={date.toISOString()} title={date.toISOString()}>
      {date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" })}
    </time>
  );
}
