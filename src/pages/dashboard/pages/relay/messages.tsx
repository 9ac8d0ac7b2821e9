import type { RelayMessage, RelayMessageItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { useCall } from "../../core/resource.ts";
import { href, place } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button, CurlButton } from "../../ui/button.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { ListPage } from "../../ui/list.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { EndpointDeliveries } from "./endpoint-deliveries.tsx";

const EXAMPLE = { event_type: "invoice.paid", payload: { invoice: "in_1042" } };

/** Messages, with details of the selected message. */
export function MessagesPage() {
  const [, id] = place.value.rest;
  const list = useList("relay.messages.list", "messages", ["relay"], {
    keyOf: ({ message_id }) => message_id,
  });
  return (
    <ListPage
      title="Messages"
      request={requestOf("relay.messages.list", {})}
      none={{
        icon: "relay",
        title: "No messages yet",
        request: requestOf("relay.messages.send", { body: EXAMPLE }),
        text: "A message is delivered to every endpoint that subscribes to its event type.",
      }}
      list={list}
      label="Messages"
      href={({ message_id }) => href(["relay", "messages", message_id])}
      columns={COLUMNS}
      selected={id}
      detail={(id) => <Message key={id} id={id} />}
    />
  );
}

const COLUMNS: readonly Column<RelayMessageItem>[] = [
  {
    head: "Message",
    cell: ({ event_type }) => event_type,
    sub: ({ message_id }) => message_id,
  },
  { head: "Sent", layout: "fit", cell: ({ created_at }) => <Ago at={created_at} /> },
];

/** A message with its deliveries. */
function Message({ id }: { id: string }) {
  const params = { message_id: id };
  const message = useCall("relay.messages.read", { params }, ["relay"]);
  const resend = async (): Promise<void> => {
    const { resent } = await call("relay.messages.resend", { params, body: {} });
    toast(`Resending ${count(resent, "delivery", "deliveries")}`);
    message.reload();
  };
  return (
    <div class="inspector">
      <Loaded of={message}>
        {(loaded) => (
          <div class="stack">
            <Panel
              title={loaded.event_type}
              actions={
                <div class="actions">
                  <CurlButton request={requestOf("relay.messages.read", { params })} />
                  <Button
                    icon="reload"
                    operation="relay.messages.resend"
                    disabled={
                      loaded.payload === null || loaded.deliveries.every(({ status }) => status !== "failed")
                    }
                    onClick={resend}
                  >
                    Resend failed
                  </Button>
                </div>
              }
            >
              <Facts
                of={[
                  ["Sent", <DateTime key="c" at={loaded.created_at} />],
                  ["Due", <DateTime key="d" at={loaded.scheduled_for} />],
                  ["Channels", loaded.channels.length === 0 ? "–" : loaded.channels.join(", ")],
                  ["ID", <code key="i">{loaded.message_id}</code>],
                ]}
              />
              <pre>
                {loaded.payload === null
                  ? "The payload has been deleted."
                  : JSON.stringify(loaded.payload, null, 2)}
              </pre>
            </Panel>
            <Deliveries of={loaded} />
          </div>
        )}
      </Loaded>
    </div>
  );
}

function Deliveries({ of: { deliveries } }: { of: RelayMessage }) {
  return (
    <Panel title="Deliveries" flush>
      {deliveries.length === 0 ? (
        <p class="more quiet">No endpoint subscribes to this message.</p>
      ) : (
        <EndpointDeliveries of={deliveries} />
      )}
    </Panel>
  );
}
