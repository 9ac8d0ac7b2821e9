import type { KeyItem, RelayEndpointItem } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { usePagesOf, useWhole } from "../../core/lists.ts";
import { href, place } from "../../core/route.ts";
import { filterValue, ListPage } from "../../ui/list.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { stateOf } from "../keys/key-state.tsx";
import { CustomerPage } from "./customer.tsx";

/** The customers of the project, or one of them. */
export function CustomersPage() {
  const [id] = place.value.rest;
  return id === undefined ? <CustomerList /> : <CustomerPage key={id} id={id} />;
}

/** A customer: what belongs to one `owner_id`. */
interface Customer {
  readonly id: string;
  readonly keys: number;
  readonly endpoints: number;
  /** Endpoints whose last attempt failed. */
  readonly failing: number;
}

const SEARCH = { name: "q", label: "Search customers" };
const EXAMPLE = { name: "Acme", prefix: "acme", scopes: ["orders:read"], owner_id: "acme" };

function CustomerList() {
  const keys = useWhole("keys.list", "keys", ["keys"], {});
  const endpoints = useWhole("relay.endpoints.list", "endpoints", ["relay"], {});
  const search = filterValue(SEARCH).toLowerCase();
  const isRead = keys.data !== null && (endpoints.data !== null || endpoints.failure !== null);
  const all = isRead ? customersOf(keys.data, endpoints.data ?? []) : null;
  const found = all?.filter(({ id }) => id.toLowerCase().includes(search)) ?? null;
  return (
    <ListPage
      title="Customers"
      label="Customers"
      request={requestOf("keys.list", {})}
      filters={[SEARCH]}
      list={usePagesOf({ ...keys, data: found }, search, ({ id }) => id)}
      none={{
        icon: "customers",
        title: "No customers here",
        request: requestOf("keys.create", { body: EXAMPLE }),
        text: "A customer has an id of yours: the owner_id of its keys and endpoints.",
      }}
      href={({ id }) => href(["customers", id])}
      columns={COLUMNS}
    />
  );
}

const COLUMNS: readonly Column<Customer>[] = [
  { head: "Customer", cell: ({ id }) => id },
  { head: "Active keys", cell: ({ keys }) => formatNumber(keys), layout: "end" },
  { head: "Endpoints", cell: ({ endpoints }) => formatNumber(endpoints), layout: "end wide" },
  {
    head: "Deliveries",
    cell: ({ failing, endpoints }) =>
      failing > 0 ? <Status state="failing" tone="bad" /> : endpoints > 0 ? <Status state="live" /> : "–",
    layout: "fit",
  },
];

/** The customers that own a key or an endpoint, by id. */
function customersOf(keys: readonly KeyItem[], endpoints: readonly RelayEndpointItem[]): readonly Customer[] {
  const owners = new Set([...keys, ...endpoints].flatMap(({ owner_id }) => owner_id ?? []));
  return [...owners].sort().map((id) => {
    const ofOwner = endpoints.filter(({ owner_id }) => owner_id === id);
    return {
      id,
      keys: keys.filter((key) => key.owner_id === id && stateOf(key) === "active").length,
      endpoints: ofOwner.length,
      failing: ofOwner.filter(({ health }) => health.failing_since !== null).length,
    };
  });
}
