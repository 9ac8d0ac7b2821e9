import type { RelayEndpointItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useList } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/feedback.tsx";
import { ListPane } from "../../ui/list-pane.tsx";
import { Page } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { Endpoint, stateOf } from "./endpoint.tsx";
import { NewEndpoint } from "./endpoint-form.tsx";
import { RelayViews } from "./relay-views.tsx";

const EXAMPLE = { url: "https://example.com/hooks", event_types: ["invoice.*"] };

/** Endpoints, with details of the selected endpoint. */
export function EndpointsPage() {
  const { query, rest } = place.value;
  const [, id] = rest;
  const list = useList("endpoints", ["relay"], async (page, signal) => {
    const found = await call("relay.endpoints.list", { query: page }, signal);
    return { items: found.endpoints, cursor: found.cursor ?? null };
  });
  return (
    <Page
      title="Endpoints"
      request={requestOf("relay.endpoints.list", {})}
      actions={
        <Button kind="primary" icon="new" scope="relay:write" onClick={() => setQuery({ new: "1" })}>
          New endpoint
        </Button>
      }
    >
      <RelayViews view="endpoints" />
      <ListPane
        list={list}
        label="Endpoints"
        empty={
          <Empty
            icon="relay"
            title="No endpoints yet"
            request={requestOf("relay.endpoints.create", { body: EXAMPLE })}
          >
            An endpoint receives every message of its event types, signed with its own secret.
          </Empty>
        }
        keyOf={({ endpoint_id }) => endpoint_id}
        href={({ endpoint_id }) => href(["relay", "endpoints", endpoint_id])}
        columns={COLUMNS}
        narrow={NARROW}
        selected={id}
        detail={(one) => <Endpoint key={one} id={one} onChange={list.reload} />}
      />
      {query.has("new") ? (
        <NewEndpoint onClose={() => setQuery({ new: undefined })} onDone={list.reload} />
      ) : null}
    </Page>
  );
}

/** Columns next to the details of an endpoint. */
const NARROW = ["Endpoint", "State"];

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
    head: "Failing since",
    layout: "wide",
    cell: ({ health }) => (health.failing_since === null ? "–" : <Ago at={health.failing_since} />),
  },
  { head: "State", layout: "fit", cell: (one) => <Status {...stateOf(one)} /> },
];
