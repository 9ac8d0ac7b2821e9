import type { Overview } from "../../../client/generated/api.ts";
import { Bars } from "../charts/bars.tsx";
import { hourBars } from "../charts/hours.ts";
import { requestOf } from "../core/api.ts";
import { percent } from "../core/format.ts";
import { minute } from "../core/now.ts";
import { useOverview } from "../core/overview.tsx";
import { href, setQuery } from "../core/route.ts";
import { session } from "../core/session.ts";
import { Empty, Loaded } from "../ui/feedback.tsx";
import { Choice } from "../ui/field.tsx";
import { filterValue } from "../ui/list.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { AuditList } from "./audit-list.tsx";
import { Attention } from "./overview-attention.tsx";
import { Tiles } from "./overview-tiles.tsx";

const NEW = { new: "1" };
const PERIOD = {
  name: "period",
  label: "Period",
  options: [
    ["24h", "24 h"],
    ["1h", "1 h"],
    ["7d", "7 d"],
  ],
} as const;

/** The overview of all services: what needs attention, numbers, the worst monitors and the latest changes. */
export function OverviewPage() {
  const overview = useOverview();
  const period = filterValue(PERIOD) as "24h" | "1h" | "7d";
  const [day, hour, week] = PERIOD.options;
  return (
    <Page
      title="Overview"
      request={requestOf("overview.read", { query: { details: true } })}
      actions={
        <Choice
          label={PERIOD.label}
          options={[hour, day, week]}
          value={period}
          onChange={(period) => setQuery({ period: period === "24h" ? undefined : period })}
        />
      }
    >
      <Loaded of={overview} missing={<NoOverview />}>
        {(data) => (
          <div class="stack">
            {isUntouched(data) ? <FirstSteps /> : <Attention of={data} onDone={overview.reload} />}
            <Tiles of={data} period={period} />
            <div class="halves">
              {(data.pulse?.worst ?? []).length === 0 ? null : <WorstMonitors of={data.pulse} />}
              {data.recent.length === 0 ? null : (
                <Panel title="Recent changes" actions={<a href={href(["audit"])}>Audit log</a>}>
                  <AuditList entries={data.recent} />
                </Panel>
              )}
            </div>
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function NoOverview() {
  return (
    <Empty icon="overview" title={`Welcome${session.value?.email ? `, ${session.value.email}` : ""}`}>
      Choose a service in the sidebar.
    </Empty>
  );
}

/** Whether the services that most users start with are readable and empty. */
function isUntouched({ keys, gate, pulse, meter }: Overview): boolean {
  return keys?.total === 0 && gate?.total === 0 && pulse?.total === 0 && meter?.meters === 0;
}

function FirstSteps() {
  return (
    <Empty icon="overview" title="Get started">
      Create <a href={href(["keys"], NEW)}>a key</a> for your program,{" "}
      <a href={href(["flags"], NEW)}>a flag</a>, <a href={href(["monitors"], NEW)}>a monitor</a> for a URL, or{" "}
      <a href={href(["catch"], NEW)}>a bucket</a> that receives webhooks. Alerts, e-mail and backups are set
      in <a href={href(["start"])}>a few steps</a>.
    </Empty>
  );
}

/** Uptime in percent below which it is highlighted. */
const UPTIME_BAD = 99;

/** The monitors with the lowest uptime, with a bar for each hour of the last day. */
function WorstMonitors({ of: pulse }: { of: Overview["pulse"] }) {
  const { worst = [], total = 0, up = 0, down = 0 } = pulse ?? {};
  return (
    <Panel title="Monitors, 24 hours" actions={<span class="quiet small">{`${up} up · ${down} down`}</span>}>
      <ul class="strips">
        {worst.map(({ monitor_id, name, status, uptime, hours }) => (
          <li key={monitor_id}>
            <a href={href(["monitors", monitor_id])}>{name}</a>
            <Bars
              places={hours.length}
              label={`${name}: ${status}, up ${percent(uptime)} of 24 hours`}
              bars={hourBars(hours, minute.value)}
            />
            <span class={uptime !== null && uptime < UPTIME_BAD ? "bad" : ""}>{percent(uptime)}</span>
          </li>
        ))}
      </ul>
      {total > worst.length ? <a href={href(["monitors"])}>{`${total - worst.length} others`}</a> : null}
    </Panel>
  );
}
