import { Type } from "@sinclair/typebox";
import { textDuration } from "../data/duration.ts";

/** Longest `retry_schedule`. */
export const RETRIES_MAX = 20;

/** Its form is checked with the limits, by `readWaits`. */
const { pattern: _, ...Wait } = textDuration({
  errorMessage: 'must be a text such as "5s", "5m" or "2h", or whole seconds in milliseconds such as 5000',
});

/** The schema of a `retry_schedule`. Check its delays with `readWaits`. `fallback`: a sentence about its default. */
export function retrySchedule(fallback: string) {
  return Type.Array(Wait, {
    maxItems: RETRIES_MAX,
    errorMessage: `must be a list of at most ${RETRIES_MAX} waits such as 5s, 5m or 2h`,
    description: `Delay before each retry, such as \`5m\`: at most \`24h\` each and \`7d\` in total; \`[]\` for no retries. ${fallback}`,
    examples: [["5s", "5m", "2h"]],
  });
}
