import type { Relay, RelayItem } from "../../../../client/generated/api.ts";
import { now } from "../../core/now.ts";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";

/** When the next attempt is made; of a delivery that waits for its endpoint, that it does. */
export function NextAttempt({ of }: { of: RelayItem | Relay }) {
  const { next_attempt_at: at, status, endpoint_id } = of;
  if (at === null) return <>{status === "delivering" ? "in progress" : "–"}</>;
  const isLate = at + LATE_MS < now.value;
  return isLate && endpoint_id !== null ? <>waits for its endpoint</> : <Ago at={at} />;
}

/** An attempt may begin this much later than planned. */
const LATE_MS = 10_000;

/** Columns of a list of deliveries. */
export function deliveryColumns(): readonly Column<RelayItem>[] {
  return COLUMNS;
}

const COLUMNS: readonly Column<RelayItem>[] = [
  {
    head: "Delivery",
    cell: (delivery) => (
      <>
        {delivery.event ?? <code>{delivery.method}</code>}
        <span class="sub">{delivery.target_url}</span>
        <span class="narrow">
          <span class="sub">
            {delivery.finished_at === null ? (
              <>
                next attempt <NextAttempt of={delivery} />
              </>
            ) : (
              <Ago at={delivery.created_at} />
            )}
          </span>
        </span>
      </>
    ),
  },
  { head: "Created", cell: ({ created_at }) => <Ago at={created_at} />, layout: "wide" },
  { head: "Next attempt", cell: (delivery) => <NextAttempt of={delivery} />, layout: "wide" },
  { head: "Attempts", cell: ({ attempts }) => attempts, layout: "wide end" },
  {
    head: "Response",
    cell: ({ response_status, error }) => response_status ?? (error === null ? "–" : "none"),
    layout: "wide end",
  },
  { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
];
