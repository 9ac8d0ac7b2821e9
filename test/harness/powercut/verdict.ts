import type { ImageResult } from "./simulation.ts";

/** The consequence of a problem for a client with a response. */
export type Loss = "lost" | "doubled" | "refused but applied" | "wrong";

/** Text in the descriptions of problems that identifies each kind; a problem without any is of kind `wrong`. */
const WORDS: readonly (readonly [loss: Loss, words: RegExp])[] = [
  ["lost", /is lost|not there|is gone|did not become ready|instead of being replayed/],
  ["doubled", /has happened \d+ times|is there twice|listed twice/],
  ["refused but applied", /and has happened|for no reason|was not requested|no request of its own/],
];

/** The kind of a problem. */
export function lossOf(problem: string): Loss {
  return WORDS.find(([, words]) => words.test(problem))?.[0] ?? "wrong";
}

/** Problems of one image that are listed; the others are only counted. */
const LISTED_MAX = 5;

/** An image as a few lines. */
export function describeImage({ number, kind, story, acknowledged, problems }: ImageResult): string {
  const head = `image ${number} (${kind}): ${story}; ${acknowledged} acknowledged`;
  if (problems.length === 0) return `${head}: ok`;
  const listed = problems.slice(0, LISTED_MAX).map((problem) => `  ${problem}`);
  const more = problems.length > LISTED_MAX ? [`  … and ${problems.length - LISTED_MAX} more`] : [];
  return [`${head}: ${problems.length} PROBLEMS`, ...listed, ...more].join("\n");
}

/** The whole run as one line, and whether there was no problem. */
export function summaryOf(results: readonly ImageResult[]): { line: string; isGood: boolean } {
  const acknowledged = results.reduce((sum, result) => sum + result.acknowledged, 0);
  const counts = new Map<Loss, number>();
  for (const { problems } of results)
    for (const problem of problems) counts.set(lossOf(problem), (counts.get(lossOf(problem)) ?? 0) + 1);
  const failed = results.filter(({ problems }) => problems.length > 0).length;
  const count = (loss: Loss): string => `${counts.get(loss) ?? 0} ${loss}`;
  const losses = (["lost", "doubled", "refused but applied", "wrong"] as const).map(count).join(", ");
  const verdict = failed === 0 ? "" : `; ${failed} images FAILED`;
  return {
    line: `${results.length} images, ${acknowledged} acknowledged: ${losses}${verdict}`,
    isGood: failed === 0 && results.length > 0,
  };
}
