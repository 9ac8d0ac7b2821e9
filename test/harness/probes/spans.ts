import type { Span } from "./record.ts";

/** The parts of spans that lie in another span. All lists of spans are in order. */
export function within(spans: readonly Span[], { from, to }: Span): Span[] {
  return spans
    .map((span) => ({ from: Math.max(span.from, from), to: Math.min(span.to, to) }))
    .filter((span) => span.to > span.from);
}

/** The parts of a span that lie in none of the others. */
export function outside(spans: readonly Span[], { from, to }: Span): Span[] {
  const free: Span[] = [];
  let at = from;
  for (const span of within(spans, { from, to })) {
    if (span.from > at) free.push({ from: at, to: span.from });
    at = Math.max(at, span.to);
  }
  if (to > at) free.push({ from: at, to });
  return free;
}

/** How long spans are together, in milliseconds. */
export function lengthOf(spans: readonly Span[]): number {
  return spans.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** The latest time before the end of a span from which on so much of `spans` lies in it; its start if there is less. */
export function lastWith(spans: readonly Span[], span: Span, length: number): number {
  let missing = length;
  for (const { from, to } of within(spans, span).reverse()) {
    if (to - from >= missing) return to - missing;
    missing -= to - from;
  }
  return span.from;
}
