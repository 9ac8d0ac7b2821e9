import type { RelayEventType } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { useList } from "../../core/lists.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { ListPage } from "../../ui/list.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { EventTypeView } from "./event-type.tsx";
import { EventTypeForm } from "./event-type-form.tsx";

const EXAMPLE = {
  description: "An invoice was paid in full.",
  schema: { type: "object", required: ["amount"] },
  example: { amount: 120 },
} as const;

/** Event types, with details of the selected one. */
export function EventTypesPage() {
  const { query, rest } = place.value;
  const [, name] = rest;
  const list = useList("relay.event_types.list", "event_types", ["relay"], { keyOf: ({ name }) => name });
  return (
    <ListPage
      title="Event types"
      request={requestOf("relay.event_types.list", {})}
      create={["New event type", "relay.event_types.save"]}
      none={{
        icon: "relay",
        title: "No event types yet",
        request: requestOf("relay.event_types.save", { params: { name: "invoice.paid" }, body: EXAMPLE }),
        text: "An event type describes messages for your customers, and checks them by a JSON Schema.",
      }}
      list={list}
      label="Event types"
      href={({ name }) => href(["relay", "event-types", name])}
      columns={COLUMNS}
      selected={name}
      detail={(selected) => <EventTypeView key={selected} name={selected} onChange={list.reload} />}
    >
      {query.has("new") ? (
        <EventTypeForm onClose={() => setQuery({ new: undefined })} onDone={list.reload} />
      ) : null}
    </ListPage>
  );
}

const COLUMNS: readonly Column<RelayEventType>[] = [
  {
    head: "Type",
    cell: ({ name, description }) => (
      <>
        <code>{name}</code>
        <span class="sub">{description}</span>
      </>
    ),
  },
  {
    head: "Schema",
    cell: ({ schema, enforce }) => (schema === null ? "–" : enforce ? "enforced" : "reported"),
    layout: "fit",
  },
  {
    head: "Invalid, 24 h",
    cell: ({ invalid_24h }) => (invalid_24h === 0 ? 0 : <Status state={String(invalid_24h)} tone="bad" />),
    layout: "wide end",
  },
];
