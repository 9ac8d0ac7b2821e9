import { Bars } from "../../charts/bars.tsx";
import { call } from "../../core/api.ts";
import { DAY_MS, formatNumber } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { Panel } from "../../ui/page.tsx";

const DAYS = 30;

/** The usage of a meter, or without an id of all meters, over the last days; hidden without usage. */
export function MeterUsage({ id }: { id?: string }) {
  const usage = useResource(`usage ${id}`, ["meter"], (signal) =>
    id === undefined
      ? call("meter.usage.project", {}, signal)
      : call("meter.usage", { params: { meterId: id } }, signal),
  );
  const { data } = usage;
  if (data === null || data.data.length === 0) return null;
  const byDay = new Map(data.data.map(({ from, deducted }) => [Date.parse(from), deducted]));
  const most = Math.max(1, ...byDay.values());
  const last = Date.parse(data.to) - DAY_MS;
  const bars = Array.from({ length: DAYS }, (_, at) => {
    const day = last - (DAYS - 1 - at) * DAY_MS;
    const used = byDay.get(day) ?? 0;
    const date = new Date(day).toISOString().slice(0, 10);
    return { height: used / most, tone: "idle", title: `${date}: ${formatNumber(used)}` } as const;
  });
  const total = [...byDay.values()].reduce((sum, used) => sum + used, 0);
  return (
    <Panel title="Usage by day">
      <Bars
        bars={bars}
        places={DAYS}
        label={`Used in ${DAYS} days: ${formatNumber(total)}, at most ${formatNumber(most)} on a day`}
      />
      <p class="quiet">
        {formatNumber(total)} in {DAYS} days, at most {formatNumber(most)} on a day
      </p>
    </Panel>
  );
}
