import { useState } from "preact/hooks";
import type { PortalDeliveryItem, PortalDeliveryPage } from "../../client/generated/api.ts";
import { queryOf, send } from "./api.ts";
import { useAction, useLoaded, usePolling } from "./load.ts";
import { ActionButton, Badge, Failure, Time, Waiting } from "./parts.tsx";
import { href } from "./session.ts";

/** Pages without deliveries that are followed: a page ends after a thousand messages. */
const EMPTY_PAGES_MAX = 5;

async function readPage(endpointId: string, status: string, cursor?: string): Promise<PortalDeliveryPage> {
  let page: PortalDeliveryPage = { deliveries: [], ...(cursor === undefined ? {} : { cursor }) };
  for (let read = 0; read < EMPTY_PAGES_MAX; read += 1) {
    const query = queryOf({ endpoint_id: endpointId, status, limit: "25", cursor: page.cursor });
    page = await send<PortalDeliveryPage>("GET", `/deliveries${query}`);
    if (page.deliveries.length > 0 || page.cursor === undefined) break;
  }
  return page;
}

/** The deliveries of an endpoint, newest first. */
export function Deliveries({ endpointId }: { endpointId: string }) {
  const [status, setStatus] = useState("");
  const { value: first, problem, reload } = useLoaded(status, () => readPage(endpointId, status));
  const [more, setMore] = useState<readonly PortalDeliveryPage[]>([]);
  const action = useAction();
  const pages = first === null ? [] : [first, ...more];
  const all = pages.flatMap(({ deliveries }) => deliveries);
  const cursor = pages.at(-1)?.cursor;
  usePolling(first !== null && more.length === 0, reload, first?.deliveries.some(isPending));
  return (
    <section aria-labelledby="deliveries">
      <header>
        <h2 id="deliveries">Deliveries</h2>
        <select
          aria-label="Status"
          value={status}
          onChange={({ currentTarget }) => {
            setMore([]);
            setStatus(currentTarget.value);
          }}
        >
          <option value="">All</option>
          <option value="delivered">Delivered</option>
          <option value="failed">Failed</option>
          <option value="delivering">Being retried</option>
          <option value="scheduled">Pending</option>
        </select>
      </header>
      {first === null ? <Waiting problem={problem} /> : null}
      {first !== null && all.length === 0 ? <p class="quiet">No deliveries.</p> : null}
      <ul class="cards">
        {all.map((delivery) => (
          <li key={delivery.relay_id}>
            <a class="card" href={href("deliveries", delivery.relay_id)}>
              <span>{delivery.event_type}</span>
              <DeliveryStatus delivery={delivery} />
              <span class="quiet">
                <Time at={delivery.created_at} />
                {isPending(delivery) ? <NextAttempt at={delivery.next_attempt_at} /> : null}
              </span>
            </a>
          </li>
        ))}
      </ul>
      {cursor === undefined ? null : (
        <p class="buttons">
          <ActionButton
            action={action}
            onClick={() =>
              void action.run(async () => setMore([...more, await readPage(endpointId, status, cursor)]))
            }
          >
            Show more
          </ActionButton>
        </p>
      )}
      <Failure problem={action.problem} />
    </section>
  );
}

/** When the next attempt is made; nothing during an attempt. */
function NextAttempt({ at }: { at: number | null }) {
  if (at === null) return null;
  return (
    <>
      , next attempt <Time at={at} />
    </>
  );
}

export function isPending({ status }: Pick<PortalDeliveryItem, "status">): boolean {
  return status === "scheduled" || status === "delivering";
}

/** The status of a delivery for people. */
export function DeliveryStatus({
  delivery: { status, attempts, response_status },
}: {
  delivery: Pick<PortalDeliveryItem, "status" | "attempts" | "response_status">;
}) {
  const code = response_status === null ? "" : ` ${response_status}`;
  if (status === "delivered") return <Badge tone="good">Delivered{code}</Badge>;
  if (status === "failed") return <Badge tone="bad">Failed{code}</Badge>;
  if (status === "cancelled") return <Badge tone="plain">Cancelled</Badge>;
  return attempts === 0 ? (
    <Badge tone="plain">Pending</Badge>
  ) : (
    <Badge tone="warn">Being retried{code}</Badge>
  );
}
