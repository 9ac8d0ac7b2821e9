import { HOUR_MS, percent } from "../core/format.ts";
import { shortTime } from "../core/times.ts";
import { type Bar, STATE_HEIGHTS } from "./bar.ts";

/** Hours of a day, oldest first, as bars: the share of each that was up, in percent. An hour with an outage is red. */
export function hourBars(hours: readonly (number | null)[], now: number): Bar[] {
  const current = now - (now % HOUR_MS);
  return hours.map((share, at) => {
    const tone = share === null ? "none" : share === 100 ? "good" : "bad";
    const when = shortTime(current - (hours.length - 1 - at) * HOUR_MS);
    return {
      tone,
      height: STATE_HEIGHTS[tone],
      title: `${when}: ${share === null ? "no checks" : `${percent(share)} up`}`,
    };
  });
}
