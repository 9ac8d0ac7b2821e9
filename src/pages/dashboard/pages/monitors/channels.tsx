import type { Channel } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useList } from "../../core/lists.ts";
import { errorToast, toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { ListPage } from "../../ui/list.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { ChannelForm } from "./channel-form.tsx";
import { hoursText } from "./quiet-hours.tsx";

const EXAMPLE = {
  name: "Team chat",
  kind: "slack",
  config: { url: "https://example.com/services/T0/B0/x" },
} as const;

/** Notification channels. */
export function ChannelsPage() {
  const list = useList("monitors.channels.list", "channels", ["pulse"], { keyOf: ({ id }) => id });
  return (
    <ListPage
      title="Channels"
      label="Channels"
      request={requestOf("monitors.channels.list", {})}
      create={["New channel", "monitors.channels.create"]}
      list={list}
      none={{
        icon: "monitors",
        title: "No channels here",
        request: requestOf("monitors.channels.create", { body: EXAMPLE }),
        text: "A channel sends alerts to Slack, Telegram, ntfy and others when a target goes down.",
      }}
      columns={[
        ...COLUMNS,
        {
          head: "Actions",
          width: 15,
          cell: (channel) => <RowActions of={channel} onDone={list.reload} />,
          layout: "fit",
        },
      ]}
      form={(close) => <ChannelForm onClose={close} onDone={list.reload} />}
    />
  );
}

const COLUMNS: readonly Column<Channel>[] = [
  {
    head: "Channel",
    cell: ({ name }) => name,
    sub: (channel) => (
      <>
        {channel.kind} {channel.config.chat_id ?? channel.config.url ?? channel.config.to?.join(", ")}
        <span class="narrow">
          <br />
          <LastMessage of={channel} />
        </span>
      </>
    ),
  },
  {
    head: "Events",
    cell: ({ events }) => events.map((event) => event.replace("monitor.", "")).join(", "),
    layout: "wide",
  },
  { head: "Quiet hours", cell: ({ quiet_hours: hours }) => hours && hoursText(hours), layout: "fit wide" },
  { head: "Reminders", cell: ({ remind }) => remind, layout: "fit wide" },
  { head: "Last message", cell: (channel) => <LastMessage of={channel} />, layout: "wide" },
  { head: "Default", cell: ({ default: is }) => (is ? "yes" : "no"), layout: "fit wide" },
];

/** When the last message was delivered, or why it was not. */
function LastMessage({ of: { last_sent_at, last_error } }: { of: Channel }) {
  if (last_error === null) return <Ago at={last_sent_at} never="none" />;
  return (
    <>
      <Status state="failed" tone="bad" />
      <span class="sub">{last_error}</span>
    </>
  );
}

function RowActions({ of: channel, onDone }: { of: Channel; onDone: () => void }) {
  const test = async (): Promise<void> => {
    const { status, error } = await call("monitors.channels.test", { params: { channel_id: channel.id } });
    onDone();
    if (status === "sent") toast(`Test sent to ${channel.name}`);
    else errorToast(`${channel.name}: ${error}`);
  };
  return (
    <div class="actions">
      <Button operation="monitors.channels.test" label={`Test ${channel.name}`} onClick={test}>
        Test
      </Button>
      <Button
        operation="monitors.channels.change"
        label={`Edit ${channel.name}`}
        onClick={() => openDialog((close) => <ChannelForm of={channel} onClose={close} onDone={onDone} />)}
      >
        Edit…
      </Button>
      <Button
        kind="danger"
        icon="delete"
        operation="monitors.channels.delete"
        label={`Delete ${channel.name}`}
        onClick={() => deleteChannel(channel, onDone)}
      />
    </div>
  );
}

function deleteChannel({ id, name }: Channel, onDone: () => void): void {
  openDialog((close) => (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete channel"
      onConfirm={() => call("monitors.channels.delete", { params: { channel_id: id } }).then(onDone)}
      onClose={close}
    >
      <p>
        No more notifications are sent to <strong>{name}</strong>.
      </p>
    </Confirm>
  ));
}
