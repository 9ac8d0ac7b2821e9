import type { RelayItem } from "../../../../client/generated/api.ts";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";

/** Columns of a list of deliveries. */
export function deliveryColumns(): readonly Column<RelayItem>[] {
  return COLUMNS;
}

const COLUMNS: readonly Column<RelayItem>[] = [
  {
    head: "Delivery",
    cell: ({ method, target_url, event, scheduled_for }) => (
      <>
        {event ?? <code>{method}</code>}
        <span class="sub">{target_url}</span>
        <span class="narrow">
          <span class="sub">
            due <Ago at={scheduled_for} />
          </span>
        </span>
      </>
    ),
  },
  { head: "Due", cell: ({ scheduled_for }) => <Ago at={scheduled_for} />, layout: "wide" },
  { head: "Attempts", cell: ({ attempts }) => attempts, layout: "wide end" },
  {
    head: "Response",
    cell: ({ response_status, error }) => response_status ?? (error === null ? "–" : "none"),
    layout: "wide end",
  },
  { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
];
