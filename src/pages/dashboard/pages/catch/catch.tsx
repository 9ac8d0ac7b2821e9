import type { Bucket } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Loaded } from "../../ui/feedback.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { BucketPage } from "./bucket.tsx";
import { BucketForm } from "./bucket-form.tsx";

/** The list of buckets, or one bucket with its events. */
export function CatchPage() {
  const [id] = place.value.rest;
  return id === undefined ? <BucketList /> : <BucketPage key={id} id={id} />;
}

const EXAMPLE = { target_url: "https://example.com/webhooks", provider: "stripe", signing_secret: "whsec_…" };

function BucketList() {
  const buckets = useResource("buckets", ["catch"], (signal) => call("catch.buckets.list", {}, signal));
  return (
    <Page
      title="Catch"
      request={requestOf("catch.buckets.list", {})}
      actions={
        <Button kind="primary" icon="new" scope="catch:write" onClick={() => setQuery({ new: "1" })}>
          New bucket
        </Button>
      }
    >
      <Panel flush>
        <Loaded of={buckets}>
          {(data) =>
            data.buckets.length === 0 ? (
              <Empty
                icon="catch"
                title="No buckets yet"
                request={requestOf("catch.buckets.create", { body: EXAMPLE })}
              >
                A bucket receives webhooks at its own URL. It stores each request unchanged, verifies its
                signature and forwards it, with retries.
              </Empty>
            ) : (
              <Buckets of={data.buckets} />
            )
          }
        </Loaded>
      </Panel>
      {place.value.query.has("new") ? <BucketForm onClose={() => setQuery({ new: undefined })} /> : null}
    </Page>
  );
}

function Buckets({ of: buckets }: { of: readonly Bucket[] }) {
  return (
    <Table
      label="Buckets"
      rows={buckets}
      keyOf={({ id }) => id}
      href={({ id }) => href(["catch", id])}
      columns={[
        {
          head: "Bucket",
          cell: ({ id, name, target_url, delivery }) => (
            <>
              {name ?? id}
              <span class="sub">
                {name === null ? "" : `${id} `}
                {delivery === "pull" ? "pull" : `to ${target_url}`}
              </span>
            </>
          ),
        },
        { head: "Provider", cell: ({ provider }) => provider ?? "any", layout: "wide" },
        { head: "Pending", cell: ({ events }) => formatNumber(events.pending), layout: "end wide" },
        { head: "Delivered", cell: ({ events }) => formatNumber(events.delivered), layout: "end wide" },
        { head: "Failed", cell: ({ events }) => formatNumber(events.failed), layout: "end wide" },
        { head: "State", cell: ({ state }) => <Status state={state} />, layout: "fit" },
      ]}
    />
  );
}
