import type { MeterItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useList } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { Empty, Loaded, More } from "../../ui/feedback.tsx";
import { SearchField, TextField, textOf } from "../../ui/field.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { MeterPage } from "./meter.tsx";

/** The meters of the project, or one meter. */
export function MetersPage() {
  const [id] = place.value.rest;
  return id === undefined ? <MeterList /> : <MeterPage key={id} id={id} />;
}

function MeterList() {
  const { query } = place.value;
  const prefix = query.get("prefix") ?? "";
  const list = useList(`meters ${prefix}`, ["meter"], async (page, signal) => {
    const found = await call("meter.list", { query: { ...page, prefix } }, signal);
    return { items: found.meters, cursor: found.cursor ?? null };
  });
  return (
    <Page
      title="Meters"
      request={requestOf("meter.list", { query: { prefix } })}
      actions={
        <Button kind="primary" icon="new" scope="meter:write" onClick={() => setQuery({ new: "1" })}>
          Refill a meter
        </Button>
      }
    >
      <div class="toolbar">
        <SearchField label="Prefix" value={prefix} onInput={(text) => setQuery({ prefix: text })} />
      </div>
      <Loaded of={list} missing={<NoMeters />}>
        {(meters) =>
          meters.length === 0 ? (
            <NoMeters />
          ) : (
            <Panel flush>
              <MeterTable of={meters} />
              <More of={list} />
            </Panel>
          )
        }
      </Loaded>
      {query.has("new") ? <NewMeter onDone={list.reload} /> : null}
    </Page>
  );
}

function NoMeters() {
  return (
    <Empty
      icon="meters"
      title="No meters here"
      request={requestOf("meter.refill", { params: { meterId: "customer-42" }, body: { amount: 1000 } })}
    >
      A meter is the balance of one of your customers. Its first refill creates it.
    </Empty>
  );
}

function MeterTable({ of: meters }: { of: readonly MeterItem[] }) {
  return (
    <Table
      label="Meters"
      rows={meters}
      keyOf={({ meter_id }) => meter_id}
      href={({ meter_id }) => href(["meters", meter_id])}
      columns={[
        { head: "Meter", cell: ({ meter_id }) => meter_id },
        { head: "Updated", cell: ({ updated_at }) => <Ago at={updated_at} />, layout: "wide" },
        { head: "Available", cell: ({ available }) => formatNumber(available), layout: "end fit wide" },
        { head: "Balance", cell: ({ balance }) => formatNumber(balance), layout: "end fit" },
      ]}
    />
  );
}

function NewMeter({ onDone }: { onDone: () => void }) {
  const close = (): void => setQuery({ new: undefined });
  return (
    <Dialog title="Refill a meter" onClose={close}>
      <Form
        submit="Refill"
        onCancel={close}
        onSubmit={async (data) => {
          const params = { meterId: textOf(data, "meter") ?? "" };
          await call("meter.refill", { params, body: { amount: Number(textOf(data, "amount")) } });
          onDone();
          close();
        }}
      >
        <div class="two">
          <TextField
            name="meter"
            label="Meter"
            placeholder="customer-42"
            mono
            required
            hint="Created if it does not exist."
          />
          <TextField name="amount" label="Amount" type="number" min={1} required />
        </div>
      </Form>
    </Dialog>
  );
}
