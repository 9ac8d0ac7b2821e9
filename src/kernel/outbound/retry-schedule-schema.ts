import { Type } from "@sinclair/typebox";

/** Longest `retry_schedule`. */
export const RETRIES_MAX = 20;

/** The schema of a `retry_schedule`. Check its delays with `readWaits`. `fallback`: a sentence about its default. */
export function retrySchedule(fallback: string) {
  return Type.Array(Type.String(), {
    maxItems: RETRIES_MAX,
    errorMessage: `must be a list of at most ${RETRIES_MAX} waits such as 5s, 5m or 2h`,
    description: `Delay before each retry, such as \`5m\`: at most \`24h\` each and \`7d\` in total; \`[]\` for no retries. ${fallback}`,
    examples: [["5s", "5m", "2h"]],
  });
}
