import type { Bucket } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count, formatNumber } from "../../core/format.ts";
import { usePagesOf } from "../../core/lists.ts";
import { useResource } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { ListPage } from "../../ui/list.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { BucketPage } from "./bucket.tsx";
import { BucketForm } from "./bucket-form.tsx";

/** The list of buckets, or one bucket with its events. */
export function CatchPage() {
  const [id] = place.value.rest;
  return id === undefined ? <BucketList /> : <BucketPage key={id} id={id} />;
}

const EXAMPLE = { target_url: "https://example.com/webhooks", provider: "stripe", signing_secret: "whsec_…" };

function BucketList() {
  const all = useResource(
    "buckets",
    ["catch"],
    async (signal) => (await call("catch.buckets.list", {}, signal)).buckets,
  );
  return (
    <ListPage
      title="Catch"
      label="Buckets"
      request={requestOf("catch.buckets.list", {})}
      create={["New bucket", "catch.buckets.create"]}
      list={usePagesOf(all, "buckets", ({ id }) => id)}
      none={{
        icon: "catch",
        title: "No buckets yet",
        request: requestOf("catch.buckets.create", { body: EXAMPLE }),
        text: "A bucket receives webhooks at its own URL. It stores each request unchanged, verifies its signature and forwards it, with retries.",
      }}
      href={({ id }) => href(["catch", id])}
      columns={COLUMNS}
    >
      {place.value.query.has("new") ? <BucketForm onClose={() => setQuery({ new: undefined })} /> : null}
    </ListPage>
  );
}

const COLUMNS: readonly Column<Bucket>[] = [
  {
    head: "Bucket",
    cell: ({ id, name, target_url, targets, delivery }) => (
      <>
        {name ?? id}
        <span class="sub">
          {name === null ? "" : `${id} `}
          {delivery === "pull" ? "pull" : `to ${target_url ?? count(targets.length, "endpoint")}`}
        </span>
      </>
    ),
  },
  { head: "Provider", cell: ({ provider }) => provider ?? "any", layout: "wide" },
  { head: "Pending", cell: ({ events }) => formatNumber(events.pending), layout: "end wide" },
  { head: "Delivered", cell: ({ events }) => formatNumber(events.delivered), layout: "end wide" },
  { head: "Failed", cell: ({ events }) => formatNumber(events.failed), layout: "end wide" },
  { head: "State", cell: ({ state }) => <Status state={state} />, layout: "fit" },
];
