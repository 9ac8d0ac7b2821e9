import { href } from "../../core/route.ts";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";

interface EndpointDelivery {
  readonly relay_id: string;
  readonly endpoint_id: string;
  readonly attempts: number;
  readonly status: string;
}

/** Deliveries of a message or an event to its endpoints. */
export function EndpointDeliveries({ of: deliveries }: { of: readonly EndpointDelivery[] }) {
  return (
    <Table
      label="Deliveries"
      rows={deliveries}
      keyOf={({ relay_id }) => relay_id}
      href={({ relay_id }) => href(["relay", relay_id])}
      columns={[
        { head: "Endpoint", cell: ({ endpoint_id }) => <code>{endpoint_id}</code> },
        { head: "Attempts", cell: ({ attempts }) => attempts, layout: "end" },
        { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
      ]}
    />
  );
}
