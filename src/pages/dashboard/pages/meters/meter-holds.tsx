import { useState } from "preact/hooks";
import type { MeterHold } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { figure } from "../../core/format.ts";
import { useList } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { More } from "../../ui/feedback.tsx";
import { Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago, Moment } from "../../ui/time.tsx";

/** The open holds of a meter, each of which can be released; nothing where there is none. */
export function OpenHolds({ id, onChange }: { id: string; onChange: () => void }) {
  const [released, setReleased] = useState<MeterHold | null>(null);
  const list = useList(`holds ${id}`, ["meter"], async (page, signal) => {
    const query = { ...page, status: "open" } as const;
    const found = await call("meter.holds.list", { params: { meterId: id }, query }, signal);
    return { items: found.holds, cursor: found.cursor ?? null };
  });
  const { data } = list;
  if (data === null || data.length === 0) return null;
  return (
    <Panel title="Open holds" flush>
      <HoldTable of={data} onRelease={setReleased} />
      <More of={list} />
      {released === null ? null : (
        <Confirm
          title={`Release ${released.hold_id}?`}
          deed="Free the credits"
          onClose={() => setReleased(null)}
          onConfirm={async () => {
            const params = { meterId: id, hold_id: released.hold_id };
            const { available } = await call("meter.holds.release", { params });
            toast(`${figure(available)} is available`);
            list.reload();
            onChange();
          }}
        >
          <p>
            {figure(released.amount)} will be available again. Whoever holds it cannot capture it any more.
          </p>
        </Confirm>
      )}
    </Panel>
  );
}

function HoldTable({ of, onRelease }: { of: readonly MeterHold[]; onRelease: (hold: MeterHold) => void }) {
  return (
    <Table
      label="Open holds"
      rows={of}
      keyOf={({ hold_id }) => hold_id}
      columns={[
        { head: "Hold", cell: ({ hold_id }) => <code>{hold_id}</code> },
        { head: "Held since", cell: ({ created_at }) => <Ago at={created_at} />, look: "wide" },
        { head: "Expires", cell: ({ expires_at }) => <Moment at={expires_at} />, look: "wide" },
        { head: "Captured", cell: ({ captured }) => figure(captured), look: "end wide" },
        { head: "Held", cell: ({ amount }) => figure(amount), look: "end" },
        {
          head: "Action",
          look: "fit",
          cell: (hold) => (
            <Button scope="meter:write" onClick={() => onRelease(hold)}>
              Release…
            </Button>
          ),
        },
      ]}
    />
  );
}
