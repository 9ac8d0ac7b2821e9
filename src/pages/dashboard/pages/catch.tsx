import { useState } from "preact/hooks";
import type { Bucket } from "../../../client/generated/api.ts";
import { call, requestOf } from "../core/api.ts";
import { figure } from "../core/format.ts";
import { useResource } from "../core/resource.ts";
import { go, href, place, setQuery } from "../core/route.ts";
import { Button } from "../ui/button.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { Empty, Loaded } from "../ui/feedback.tsx";
import { SelectField, TextField, textOf } from "../ui/field.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { Status } from "../ui/status.tsx";
import { Table } from "../ui/table.tsx";
import { BucketPage } from "./bucket.tsx";

/** The buckets, or one of them with its events. */
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
                A bucket has an address for webhooks. It keeps each one exactly as it came, checks its
                signature, sends it on, and again if need be.
              </Empty>
            ) : (
              <Buckets of={data.buckets} />
            )
          }
        </Loaded>
      </Panel>
      {place.value.query.has("new") ? <NewBucket /> : null}
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
          cell: ({ id, target_url }) => (
            <>
              {id}
              <span class="sub">to {target_url}</span>
            </>
          ),
        },
        { head: "Provider", cell: ({ provider }) => provider ?? "any", look: "wide" },
        { head: "Pending", cell: ({ events }) => figure(events.pending), look: "end wide" },
        { head: "Delivered", cell: ({ events }) => figure(events.delivered), look: "end wide" },
        { head: "Failed", cell: ({ events }) => figure(events.failed), look: "end wide" },
        { head: "State", cell: ({ state }) => <Status state={state} />, look: "fit" },
      ]}
    />
  );
}

const PROVIDERS = [
  ["", "whatever the headers show"],
  ["stripe", "Stripe"],
  ["github", "GitHub"],
  ["shopify", "Shopify"],
  ["svix", "Svix"],
] as const;

function NewBucket() {
  const [provider, setProvider] = useState("");
  return (
    <Dialog title="New bucket" onClose={() => setQuery({ new: undefined })}>
      <Form
        submit="Create bucket"
        onCancel={() => setQuery({ new: undefined })}
        onSubmit={async (data) => {
          const secret = textOf(data, "signing_secret");
          const body = {
            target_url: textOf(data, "target_url") ?? "",
            ...(provider === "" ? {} : { provider }),
            ...(secret === undefined ? {} : { signing_secret: secret }),
          };
          go(["catch", (await call("catch.buckets.create", { body })).id]);
        }}
      >
        <TextField
          name="target_url"
          label="Send events on to"
          type="url"
          placeholder="https://example.com/webhooks"
          required
        />
        <div class="two">
          <SelectField
            name="provider"
            label="Provider"
            value={provider}
            options={PROVIDERS}
            onChange={setProvider}
          />
          <TextField name="signing_secret" label="Signing secret" type="password" mono />
        </div>
      </Form>
    </Dialog>
  );
}
