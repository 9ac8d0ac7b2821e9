import { useState } from "preact/hooks";
import type { MeterHold } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useList } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { More } from "../../ui/feedback.tsx";
import { Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";

/** A meter's open holds with a button to release each; empty without holds. */
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
          action="Release"
          onClose={() => setReleased(null)}
          onConfirm={async () => {
            const params = { meterId: id, hold_id: released.hold_id };
            const { available } = await call("meter.holds.release", { params });
            toast(`${formatNumber(available)} available`);
            list.reload();
            onChange();
          }}
        >
          <p>
            {formatNumber(released.amount)} becomes available again, and the hold can no longer be captured.
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
        { head: "Held since", cell: ({ created_at }) => <Ago at={created_at} />, layout: "wide" },
        { head: "Expires", cell: ({ expires_at }) => <DateTime at={expires_at} />, layout: "wide" },
        { head: "Captured", cell: ({ captured }) => formatNumber(captured), layout: "end wide" },
        { head: "Held", cell: ({ amount }) => formatNumber(amount), layout: "end" },
        {
          head: "Action",
          layout: "fit",
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
