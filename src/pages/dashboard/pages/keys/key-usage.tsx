import { useState } from "preact/hooks";
import type { KeyUsage } from "../../../../client/generated/api.ts";
import type { Bar } from "../../charts/bar.ts";
import { Bars } from "../../charts/bars.tsx";
import { call } from "../../core/api.ts";
import { count, formatNumber, HOUR_MS } from "../../core/format.ts";
import { now } from "../../core/now.ts";
import { useResource } from "../../core/resource.ts";
import { shortTime } from "../../core/times.ts";
import { Loaded } from "../../ui/feedback.tsx";
import { Choice } from "../../ui/field.tsx";
import { Facts, Panel } from "../../ui/page.tsx";

const SPANS = {
  hours: { granularity: "hour", stepMs: HOUR_MS, places: 24, words: "24 hours" },
  days: { granularity: "day", stepMs: 24 * HOUR_MS, places: 14, words: "14 days" },
} as const;
type Span = keyof typeof SPANS;
const CHOICES: readonly (readonly [Span, string])[] = [
  ["hours", "24 hours"],
  ["days", "14 days"],
];

/** Uses of a key, and rejected verifications. */
export function Usage({ id }: { id: string }) {
  const [span, setSpan] = useState<Span>("hours");
  const { granularity, stepMs, places, words } = SPANS[span];
  const usage = useResource(`key usage ${id} ${span}`, ["keys"], (signal) => {
    const from = new Date(firstOf(stepMs, places)).toISOString();
    return call("keys.usage", { params: { id }, query: { from, granularity } }, signal);
  });
  return (
    <Panel title="Usage" actions={<Choice label="Span" options={CHOICES} value={span} onChange={setSpan} />}>
      <Loaded of={usage}>
        {({ data }) => {
          const total = data.reduce((sum, period) => sum + period.total, 0);
          const rejected = total - data.reduce((sum, period) => sum + period.valid, 0);
          const label = `${count(total, "use")} in ${words}, ${formatNumber(rejected)} rejected`;
          return (
            <>
              <Bars bars={barsOf(data, stepMs, places)} places={places} label={label} />
              <Facts
                of={[["Uses", formatNumber(total)], ["Rejected", formatNumber(rejected)], ...reasonsOf(data)]}
              />
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

/** Start of the first bar; the last one contains now. */
function firstOf(stepMs: number, places: number): number {
  return (Math.floor(now.value / stepMs) - places + 1) * stepMs;
}

function barsOf(data: KeyUsage["data"], stepMs: number, places: number): Bar[] {
  const most = Math.max(1, ...data.map(({ total }) => total));
  const byBegin = new Map(data.map((period) => [Date.parse(period.from), period]));
  const first = firstOf(stepMs, places);
  return Array.from({ length: places }, (_, place) => {
    const begin = first + place * stepMs;
    const { total = 0, valid = 0 } = byBegin.get(begin) ?? {};
    const when = shortTime(begin);
    const tone = total === 0 ? "idle" : valid === total ? "good" : valid === 0 ? "bad" : "warn";
    return {
      height: total / most,
      tone,
      title: `${when}: ${count(total, "use")}, ${total - valid} rejected`,
    };
  });
}

/** Reasons for rejections, most frequent first. */
function reasonsOf(data: KeyUsage["data"]): (readonly [string, string])[] {
  const sums = new Map<string, number>();
  for (const [reason, times] of data.flatMap(({ errors }) => Object.entries(errors)))
    sums.set(reason, (sums.get(reason) ?? 0) + times);
  return [...sums]
    .sort(([, a], [, b]) => b - a)
    .map(([reason, times]) => [`Rejected: ${reason.replaceAll("_", " ")}`, formatNumber(times)]);
}
