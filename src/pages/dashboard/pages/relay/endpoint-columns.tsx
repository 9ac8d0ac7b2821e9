import type { RelayEndpointItem } from "../../../../client/generated/api.ts";
import { minute } from "../../core/now.ts";
import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { LastDay, stateOf } from "./endpoint.tsx";

/** Read once a minute. */
function LastDayOf({ id }: { id: string }) {
  const endpoint = useCall("relay.endpoints.read", { params: { endpoint_id: id } }, [], minute.value);
  return endpoint.data === null ? null : <LastDay of={endpoint.data.counts} />;
}

/** Columns of a list of endpoints; those of one customer need no owner. */
export function endpointColumns(withOwner: boolean): readonly Column<RelayEndpointItem>[] {
  return withOwner ? COLUMNS : COLUMNS.filter(({ head }) => head !== "Owner");
}

const COLUMNS: readonly Column<RelayEndpointItem>[] = [
  {
    head: "Endpoint",
    cell: ({ name, url, endpoint_id }) => (
      <>
        {name ?? endpoint_id}
        <span class="sub">{url}</span>
      </>
    ),
  },
  {
    head: "Event types",
    layout: "wide",
    cell: ({ event_types }) => (event_types.length === 0 ? "all" : event_types.join(", ")),
  },
  {
    head: "Owner",
    layout: "wide",
    cell: ({ owner_id }) =>
      owner_id === null ? "–" : <a href={href(["customers", owner_id])}>{owner_id}</a>,
  },
  {
    head: "Last 24 hours",
    layout: "wide",
    cell: ({ endpoint_id }) => <LastDayOf id={endpoint_id} />,
  },
  {
    head: "Failing since",
    layout: "wide",
    cell: ({ health }) => (health.failing_since === null ? "–" : <Ago at={health.failing_since} />),
  },
  { head: "State", layout: "fit", cell: (endpoint) => <Status {...stateOf(endpoint)} /> },
];
