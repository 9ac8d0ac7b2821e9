import { useState } from "preact/hooks";
import type { MonitorStatus, MonitorUpdateBody } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { count, formatNumber } from "../../core/format.ts";
import { toast } from "../../core/toasts.ts";
import { NOTHING, type Selection } from "../../ui/bulk.tsx";
import { Button } from "../../ui/button.tsx";
import { InlineText } from "../../ui/inline.tsx";

interface BulkProps {
  readonly of: readonly MonitorStatus[];
  readonly selection: readonly [Selection, (next: Selection) => void];
  readonly onDone: () => void;
}

/** Pauses, resumes or groups the selected monitors. */
export function MonitorBulk({ of: monitors, selection: [{ ids }, select], onDone }: BulkProps) {
  const [group, setGroup] = useState("");
  const chosen = monitors.filter(({ monitor_id }) => ids.has(monitor_id));
  if (chosen.length === 0) return null;
  const change = (body: MonitorUpdateBody, done: string) => async (): Promise<void> => {
    for (const { monitor_id } of chosen) {
      await call("monitors.update", { params: { monitorId: monitor_id }, body });
    }
    select(NOTHING);
    toast(`${count(chosen.length, "monitor")} ${done}`);
    onDone();
  };
  const groups = [...new Set(monitors.flatMap(({ group: one }) => one ?? []))].sort();
  const groupName = group.trim();
  return (
    <section class="bulk" aria-label="Selection">
      <strong>{formatNumber(chosen.length)} selected</strong>
      <span class="actions">
        <InlineText label="Group" placeholder="Group" value={group} offers={groups} onInput={setGroup} />
        <Button
          operation="monitors.update"
          onClick={change(
            { group: groupName === "" ? null : groupName },
            groupName === "" ? "without a group" : `moved to ${groupName}`,
          )}
        >
          {groupName === "" ? "Remove group" : "Set group"}
        </Button>
        <Button operation="monitors.update" onClick={change({ active: false }, "paused")}>
          Pause
        </Button>
        <Button operation="monitors.update" onClick={change({ active: true }, "resumed")}>
          Resume
        </Button>
        <Button onClick={() => select(NOTHING)}>Cancel</Button>
      </span>
    </section>
  );
}
