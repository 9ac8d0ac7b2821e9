import type { FlagEvaluations } from "../../../../client/generated/api.ts";
import type { Bar } from "../../charts/bar.ts";
import { Bars } from "../../charts/bars.tsx";
import { call } from "../../core/api.ts";
import { count, DAY_MS, formatNumber } from "../../core/format.ts";
import { now } from "../../core/now.ts";
import { useResource } from "../../core/resource.ts";
import { shortTime } from "../../core/times.ts";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Panel } from "../../ui/page.tsx";

/** Days of the chart. */
const DAYS = 30;

/** Individual evaluations of a flag, and their variants. */
export function Evaluations({ id }: { id: string }) {
  const first = (Math.floor(now.value / DAY_MS) - DAYS + 1) * DAY_MS;
  const evaluations = useResource(`evaluations ${id}`, ["gate"], (signal) =>
    call(
      "gate.evaluations",
      { params: { flagKey: id }, query: { from: new Date(first).toISOString(), granularity: "day" } },
      signal,
    ),
  );
  return (
    <Panel title="Evaluations">
      <Loaded of={evaluations}>
        {({ data }) => {
          const total = data.reduce((sum, day) => sum + day.total, 0);
          const label = `${count(total, "evaluation")} in ${DAYS} days`;
          return (
            <>
              <Bars bars={barsOf(data, first)} places={DAYS} label={label} />
              <Facts of={[["Last 30 days", formatNumber(total)], ...variantsOf(data)]} />
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function barsOf(data: FlagEvaluations["data"], first: number): Bar[] {
  const most = Math.max(1, ...data.map(({ total }) => total));
  const byDay = new Map(data.map((day) => [Date.parse(day.from), day.total]));
  return Array.from({ length: DAYS }, (_, place) => {
    const begin = first + place * DAY_MS;
    const total = byDay.get(begin) ?? 0;
    const title = `${shortTime(begin)}: ${count(total, "evaluation")}`;
    return { height: total / most, tone: total === 0 ? "idle" : "good", title };
  });
}

/** Numbers by variant, largest first, and those without one. */
function variantsOf(data: FlagEvaluations["data"]): (readonly [string, string])[] {
  const sums = new Map<string, number>();
  const add = (name: string, times: number) => {
    if (times > 0) sums.set(name, (sums.get(name) ?? 0) + times);
  };
  for (const { variants, no_value, switch_reads } of data) {
    for (const [variant, times] of Object.entries(variants)) add(`Variant ${variant}`, times);
    add("No value", no_value);
    add("Switch only", switch_reads);
  }
  return [...sums].sort(([, a], [, b]) => b - a).map(([name, times]) => [name, formatNumber(times)]);
}
