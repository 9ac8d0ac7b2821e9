import type { ScheduleItem } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { useList } from "../../core/lists.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { ListPage } from "../../ui/list.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago, ZonedTime } from "../../ui/time.tsx";
import { ScheduleView } from "./schedule.tsx";
import { ScheduleForm } from "./schedule-form.tsx";

const EXAMPLE = {
  name: "nightly",
  cron: "30 2 * * *",
  target_url: "https://example.com/hook",
  payload: { job: "report" },
} as const;

/** Schedules, with details of the selected schedule. */
export function SchedulesPage() {
  const { query, rest } = place.value;
  const [, id] = rest;
  const list = useList("relay.schedules.list", "schedules", ["relay"], {
    keyOf: ({ schedule_id }) => schedule_id,
  });
  return (
    <ListPage
      title="Schedules"
      request={requestOf("relay.schedules.list", {})}
      create={["New schedule", "relay.schedules.create"]}
      none={{
        icon: "relay",
        title: "No schedules yet",
        request: requestOf("relay.schedules.create", { body: EXAMPLE }),
        text: "A schedule creates a delivery at the times of a cron expression.",
      }}
      list={list}
      label="Schedules"
      href={({ schedule_id }) => href(["relay", "schedules", schedule_id])}
      columns={COLUMNS}
      selected={id}
      detail={(id) => <ScheduleView key={id} id={id} />}
    >
      {query.has("new") ? (
        <ScheduleForm onClose={() => setQuery({ new: undefined })} onDone={list.reload} />
      ) : null}
    </ListPage>
  );
}

const COLUMNS: readonly Column<ScheduleItem>[] = [
  {
    head: "Schedule",
    cell: ({ name, cron, time_zone }) => (
      <>
        {name ?? <code>{cron}</code>}
        <span class="sub">
          {name === null ? "" : `${cron}, `}
          {time_zone}
        </span>
      </>
    ),
  },
  { head: "Target", cell: ({ target_url, event_type }) => target_url ?? event_type, layout: "wide" },
  {
    head: "Next run",
    cell: ({ next_run_at, time_zone }) => <ZonedTime at={next_run_at} zone={time_zone} />,
    sub: ({ next_run_at }) => (next_run_at === null ? null : <Ago at={next_run_at} />),
  },
  { head: "Runs", cell: ({ runs }) => runs, layout: "wide end" },
  { head: "Skipped", cell: ({ skipped }) => skipped, layout: "wide end" },
  { head: "State", cell: ({ state }) => <Status state={state} />, layout: "fit" },
];
