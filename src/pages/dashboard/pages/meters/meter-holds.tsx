import type { MeterHold } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { DataForm } from "../../ui/form.tsx";
import { ListView } from "../../ui/list.tsx";
import { Panel } from "../../ui/page.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";

/** Called with the meter after a change of a hold. */
type OnHeld = (meter: { readonly available: number }) => void;

/** A meter's open holds with buttons to capture and release each; empty without holds. */
export function OpenHolds({ id, onChange }: { id: string; onChange: () => void }) {
  const list = useList("meter.holds.list", "holds", ["meter"], {
    keyOf: ({ hold_id }) => hold_id,
    params: { meterId: id },
    query: { status: "open" },
  });
  const { data } = list;
  if (data === null || data.length === 0) return null;
  const changed = ({ available }: { readonly available: number }): void => {
    toast(`${formatNumber(available)} available`);
    list.reload();
    onChange();
  };
  return (
    <Panel title="Open holds" flush>
      <ListView
        list={list}
        label="Open holds"
        columns={[
          { head: "Hold", cell: ({ hold_id }) => <code>{hold_id}</code> },
          { head: "Held since", cell: ({ created_at }) => <Ago at={created_at} />, layout: "wide" },
          { head: "Expires", cell: ({ expires_at }) => <DateTime at={expires_at} />, layout: "wide" },
          { head: "Captured", cell: ({ captured }) => formatNumber(captured), layout: "end wide" },
          { head: "Held", cell: ({ amount }) => formatNumber(amount), layout: "end" },
          {
            head: "Actions",
            width: 16,
            layout: "fit",
            cell: (hold) => (
              <div class="actions">
                <Button operation="meter.holds.capture" onClick={() => captureHold(hold, id, changed)}>
                  Capture…
                </Button>
                <Button operation="meter.holds.release" onClick={() => releaseHold(hold, id, changed)}>
                  Release…
                </Button>
              </div>
            ),
          },
        ]}
      />
    </Panel>
  );
}

function captureHold({ hold_id, amount }: MeterHold, meterId: string, onDone: OnHeld): void {
  openDialog((close) => (
    <DataForm
      title={`Capture ${hold_id}`}
      submit="Capture"
      operation="meter.holds.capture"
      params={{ meterId, hold_id }}
      start={{ amount, final: true }}
      fields={["amount", { name: "final", label: "Release the rest" }]}
      onDone={(answer) => {
        close();
        onDone(answer);
      }}
      onClose={close}
    />
  ));
}

function releaseHold({ hold_id, amount }: MeterHold, meterId: string, onDone: OnHeld): void {
  openDialog((close) => (
    <Confirm
      title={`Release ${hold_id}?`}
      action="Release"
      onConfirm={() => call("meter.holds.release", { params: { meterId, hold_id } }).then(onDone)}
      onClose={close}
    >
      <p>{formatNumber(amount)} becomes available again, and the hold can no longer be captured.</p>
    </Confirm>
  ));
}
