import { useState } from "preact/hooks";
import type { RelayEndpointItem } from "../../../client/generated/api.ts";
import { call, requestOf } from "../core/api.ts";
import { useList } from "../core/resource.ts";
import { go, href, place, setQuery } from "../core/route.ts";
import { Button } from "../ui/button.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { Empty } from "../ui/feedback.tsx";
import { TextField, textOf } from "../ui/field.tsx";
import { ListPane } from "../ui/list-pane.tsx";
import { Page } from "../ui/page.tsx";
import { Status } from "../ui/status.tsx";
import type { Column } from "../ui/table.tsx";
import { Ago } from "../ui/time.tsx";
import { Endpoint, shownState } from "./endpoint.tsx";
import { RelayViews } from "./relay-views.tsx";
import { Secret } from "./secret.tsx";

const EXAMPLE = { url: "https://example.com/hooks", event_types: ["invoice.*"] };

/** Where messages go to, and beside them one of them. */
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
            title="No endpoints here"
            request={requestOf("relay.endpoints.create", { body: EXAMPLE })}
          >
            An endpoint gets every message of its types, signed with a secret of its own.
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
        <EndpointForm onClose={() => setQuery({ new: undefined })} onDone={list.reload} />
      ) : null}
    </Page>
  );
}

/** The columns that are left beside one endpoint. */
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
    head: "Types",
    look: "wide",
    cell: ({ event_types }) => (event_types.length === 0 ? "all" : event_types.join(", ")),
  },
  {
    head: "Failing since",
    look: "wide",
    cell: ({ health }) => (health.failing_since === null ? "–" : <Ago at={health.failing_since} />),
  },
  { head: "State", look: "fit", cell: (one) => <Status {...shownState(one)} /> },
];

/** Makes an endpoint, and shows its secret, this once. */
function EndpointForm({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [made, setMade] = useState<{ id: string; secret: string } | null>(null);
  if (made !== null) {
    const kept = () => {
      onDone();
      go(["relay", "endpoints", made.id]);
    };
    return <Secret title="The endpoint's signing secret" secret={made.secret} onKept={kept} />;
  }
  const submit = async (data: FormData): Promise<void> => {
    const types = (textOf(data, "event_types") ?? "").split(/[\s,]+/).filter((one) => one !== "");
    const name = textOf(data, "name") ?? null;
    const body = { url: textOf(data, "url") ?? "", name, event_types: types };
    const { endpoint_id, secret } = await call("relay.endpoints.create", { body });
    setMade({ id: endpoint_id, secret });
  };
  return (
    <Dialog title="New endpoint" onClose={onClose}>
      <Form submit="Create endpoint" onCancel={onClose} onSubmit={submit}>
        <TextField name="url" label="Where to" type="url" placeholder="https://example.com/hooks" required />
        <TextField name="name" label="Name" hint="One of its kind in the project, or none." />
        <TextField
          name="event_types"
          label="Types of messages"
          placeholder="invoice.*, order.paid"
          hint="With commas between them; all unless entered."
        />
      </Form>
    </Dialog>
  );
}
