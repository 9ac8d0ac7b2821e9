import type { AmountBody } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";
import { DataForm } from "../../ui/form.tsx";
import { TEXT } from "../../ui/kinds.ts";
import { ListPage } from "../../ui/list.tsx";
import { Ago } from "../../ui/time.tsx";
import { MeterPage } from "./meter.tsx";
import { ProjectAlert } from "./meter-alert.tsx";
import { MeterUsage } from "./meter-usage.tsx";

/** The meters of the project, or one meter. */
export function MetersPage() {
  const [id] = place.value.rest;
  return id === undefined ? <MeterList /> : <MeterPage key={id} id={id} />;
}

function MeterList() {
  const { query } = place.value;
  const prefix = query.get("prefix") ?? "";
  const list = useList("meter.list", "meters", ["meter"], {
    keyOf: ({ meter_id }) => meter_id,
    query: { prefix },
  });
  return (
    <ListPage
      title="Meters"
      label="Meters"
      request={requestOf("meter.list", { query: { prefix } })}
      views={<MeterUsage />}
      actions={
        <Button operation="meter.alert.project.set" onClick={() => setQuery({ alert: "1" })}>
          Low-balance alert…
        </Button>
      }
      create={["Refill a meter", "meter.refill"]}
      filters={[{ name: "prefix", label: "Prefix" }]}
      list={list}
      none={{
        icon: "meters",
        title: "No meters here",
        request: requestOf("meter.refill", { params: { meterId: "customer-42" }, body: { amount: 1000 } }),
        text: "A meter is the balance of one of your customers. Its first refill creates it.",
      }}
      href={({ meter_id }) => href(["meters", meter_id])}
      columns={[
        { head: "Meter", cell: ({ meter_id }) => meter_id },
        { head: "Updated", cell: ({ updated_at }) => <Ago at={updated_at} />, layout: "wide" },
        { head: "Available", cell: ({ available }) => formatNumber(available), layout: "end fit wide" },
        { head: "Balance", cell: ({ balance }) => formatNumber(balance), layout: "end fit" },
      ]}
      form={(close) => <NewMeter onDone={list.reload} onClose={close} />}
    >
      {query.has("alert") ? <ProjectAlert onClose={() => setQuery({ alert: undefined })} /> : null}
    </ListPage>
  );
}

function NewMeter({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  return (
    <DataForm
      title="Refill a meter"
      submit="Refill"
      operation="meter.refill"
      fields={[
        [
          {
            name: "$meter",
            label: "Meter",
            kind: TEXT,
            placeholder: "customer-42",
            mono: true,
            required: true,
            hint: "Created if it does not exist.",
          },
          { name: "amount", hint: "" },
        ],
      ]}
      send={(body, get) =>
        call("meter.refill", { params: { meterId: String(get("$meter")) }, body: body as AmountBody })
      }
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}
