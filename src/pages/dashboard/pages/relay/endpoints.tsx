import { requestOf } from "../../core/api.ts";
import { useList } from "../../core/lists.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { ListPage } from "../../ui/list.tsx";
import { Endpoint } from "./endpoint.tsx";
import { endpointColumns } from "./endpoint-columns.tsx";
import { NewEndpoint } from "./endpoint-form.tsx";
import { OpenButton } from "./open-button.tsx";
import { PortalLink } from "./portal-link.tsx";

const EXAMPLE = { url: "https://example.com/hooks", event_types: ["invoice.*"] };

/** Endpoints, with details of the selected endpoint. */
export function EndpointsPage() {
  const { query, rest } = place.value;
  const [, id] = rest;
  const list = useList("relay.endpoints.list", "endpoints", ["relay"], {
    keyOf: ({ endpoint_id }) => endpoint_id,
  });
  return (
    <ListPage
      title="Endpoints"
      request={requestOf("relay.endpoints.list", {})}
      actions={
        <OpenButton name="portal" operation="relay.portal.create">
          Portal link
        </OpenButton>
      }
      create={["New endpoint", "relay.endpoints.create"]}
      none={{
        icon: "relay",
        title: "No endpoints yet",
        request: requestOf("relay.endpoints.create", { body: EXAMPLE }),
        text: "An endpoint receives every message of its event types, signed with its own secret.",
      }}
      list={list}
      label="Endpoints"
      href={({ endpoint_id }) => href(["relay", "endpoints", endpoint_id])}
      columns={endpointColumns(true)}
      selected={id}
      detail={(id) => <Endpoint key={id} id={id} onChange={list.reload} />}
    >
      {query.has("new") ? (
        <NewEndpoint onClose={() => setQuery({ new: undefined })} onDone={list.reload} />
      ) : null}
      {query.has("portal") ? (
        <PortalLink
          owner={query.get("owner") ?? null}
          onClose={() => setQuery({ portal: undefined, owner: undefined })}
        />
      ) : null}
    </ListPage>
  );
}
