import { useState } from "preact/hooks";
import type { Channel } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useList } from "../../core/resource.ts";
import { place, setQuery } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Empty, Loaded, More } from "../../ui/feedback.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { ChannelForm } from "./channel-form.tsx";
import { MonitorViews } from "./monitor-views.tsx";

const EXAMPLE = {
  name: "Team chat",
  kind: "slack",
  config: { url: "https://example.com/services/T0/B0/x" },
} as const;

type Open = { readonly what: "change" | "delete"; readonly channel: Channel };

/** Notification channels. */
export function ChannelsPage() {
  const { query } = place.value;
  const [open, setOpen] = useState<Open | null>(null);
  const list = useList("channels", ["pulse"], async (page, signal) => {
    const { channels, cursor = null } = await call("monitors.channels.list", { query: page }, signal);
    return { items: channels, cursor };
  });
  const close = (): void => setOpen(null);
  return (
    <Page
      title="Channels"
      request={requestOf("monitors.channels.list", {})}
      actions={
        <Button kind="primary" icon="new" scope="pulse:write" onClick={() => setQuery({ new: "1" })}>
          New channel
        </Button>
      }
    >
      <MonitorViews view="channels" />
      <Panel flush>
        <Loaded of={list}>
          {(channels) =>
            channels.length === 0 ? (
              <Empty
                icon="monitors"
                title="No channels here"
                request={requestOf("monitors.channels.create", { body: EXAMPLE })}
              >
                A channel sends alerts to Slack, Telegram, ntfy and others when a target goes down.
              </Empty>
            ) : (
              <>
                <ChannelTable of={channels} onOpen={setOpen} onDone={list.reload} />
                <More of={list} />
              </>
            )
          }
        </Loaded>
      </Panel>
      {query.has("new") ? (
        <ChannelForm onClose={() => setQuery({ new: undefined })} onDone={list.reload} />
      ) : null}
      {open?.what === "change" ? (
        <ChannelForm of={open.channel} onClose={close} onDone={list.reload} />
      ) : null}
      {open?.what === "delete" ? (
        <DeleteChannel of={open.channel} onClose={close} onDone={list.reload} />
      ) : null}
    </Page>
  );
}

interface TableProps {
  readonly of: readonly Channel[];
  readonly onOpen: (open: Open) => void;
  readonly onDone: () => void;
}

function ChannelTable({ of: channels, onOpen, onDone }: TableProps) {
  return (
    <Table
      label="Channels"
      rows={channels}
      keyOf={({ id }) => id}
      columns={[
        {
          head: "Channel",
          cell: ({ name, kind, config: { url, to, chat_id } }) => (
            <>
              {name}
              <span class="sub">
                {kind} {chat_id ?? url ?? to?.join(", ")}
              </span>
            </>
          ),
        },
        {
          head: "Events",
          cell: ({ events }) => events.map((event) => event.replace("monitor.", "")).join(", "),
          layout: "wide",
        },
        { head: "Reminders", cell: ({ remind }) => remind, layout: "fit wide" },
        { head: "Last message", cell: (channel) => <LastMessage of={channel} /> },
        { head: "Default", cell: ({ default: is }) => (is ? "yes" : "no"), layout: "fit wide" },
        {
          head: "Actions",
          cell: (channel) => <RowActions of={channel} onOpen={onOpen} onDone={onDone} />,
          layout: "fit",
        },
      ]}
    />
  );
}

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

interface RowProps {
  readonly of: Channel;
  readonly onOpen: (open: Open) => void;
  readonly onDone: () => void;
}

function RowActions({ of: channel, onOpen, onDone }: RowProps) {
  const test = async (): Promise<void> => {
    const { status, error } = await call("monitors.channels.test", { params: { channel_id: channel.id } });
    onDone();
    toast(status === "sent" ? `Test sent to ${channel.name}` : `${channel.name}: ${error}`);
  };
  return (
    <div class="actions">
      <Button scope="pulse:write" label={`Test ${channel.name}`} onClick={test}>
        Test
      </Button>
      <Button
        scope="pulse:write"
        label={`Edit ${channel.name}`}
        onClick={() => onOpen({ what: "change", channel })}
      >
        Edit…
      </Button>
      <Button
        kind="danger"
        icon="delete"
        scope="pulse:write"
        label={`Delete ${channel.name}`}
        onClick={() => onOpen({ what: "delete", channel })}
      >
        {null}
      </Button>
    </div>
  );
}

interface DeleteProps {
  readonly of: Channel;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function DeleteChannel({ of: { id, name }, onClose, onDone }: DeleteProps) {
  return (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete channel"
      onClose={onClose}
      onConfirm={async () => {
        await call("monitors.channels.delete", { params: { channel_id: id } });
        onDone();
      }}
    >
      <p>
        No more notifications are sent to <strong>{name}</strong>.
      </p>
    </Confirm>
  );
}
