import { useState } from "preact/hooks";
import type { Channel, ChannelCreateBody } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, Tick, textOf } from "../../ui/field.tsx";

type Kind = Channel["kind"];
type Config = ChannelCreateBody["config"];
type Field = keyof Config;

const KINDS: readonly (readonly [kind: Kind, label: string, fields: readonly Field[]])[] = [
  ["slack", "Slack, Mattermost, Rocket.Chat", ["url"]],
  ["discord", "Discord", ["url"]],
  ["telegram", "Telegram", ["token", "chat_id"]],
  ["ntfy", "ntfy", ["url", "token"]],
  ["gotify", "Gotify", ["url", "token"]],
  ["email", "E-mail", ["to"]],
  ["webhook", "Signed webhook", ["url"]],
  ["apprise", "Apprise", ["url"]],
];

const EVENTS = [
  ["monitor.down", "goes down"],
  ["monitor.up", "recovers"],
  ["monitor.degraded", "becomes slow"],
  ["monitor.recovered", "is fast again"],
  ["monitor.certificate", "has a certificate that expires soon"],
  ["monitor.flapping", "is flapping"],
  ["monitor.acknowledged", "is acknowledged"],
  ["observer.offline", "could not be checked (the server was offline)"],
  ["maintenance.started", "is under maintenance"],
  ["maintenance.ended", "is out of maintenance"],
  ["catch.failed", "fails all retries of a webhook"],
] as const;
const REMIND = [
  ["never", "never"],
  ["1h", "every hour"],
  ["6h", "every 6 hours"],
  ["1d", "every day"],
] as const;
const USUAL: readonly string[] = ["monitor.down", "monitor.up", "monitor.certificate", "observer.offline"];

interface ChannelFormProps {
  /** Undefined for a new channel. */
  readonly of?: Channel;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** The form of a new or existing channel. */
export function ChannelForm({ of: channel, onDone, onClose }: ChannelFormProps) {
  const [kind, setKind] = useState<Kind>(channel?.kind ?? "slack");
  const notified = channel?.events ?? USUAL;
  const submit = async (data: FormData): Promise<void> => {
    const config = configOf(data, kind);
    const events = EVENTS.map(([event]) => event).filter((event) => data.has(event));
    const remind = REMIND.find(([value]) => value === textOf(data, "remind"))?.[0] ?? "never";
    const body = { name: textOf(data, "name") ?? "", default: data.has("default"), events, remind };
    if (channel === undefined) {
      await call("monitors.channels.create", { body: { ...body, kind, config } });
      toast("Channel created. Send a test.");
    } else {
      const changed = Object.keys(config).length === 0 ? body : { ...body, config };
      await call("monitors.channels.change", { params: { channel_id: channel.id }, body: changed });
      toast("Channel updated");
    }
    onDone();
    onClose();
  };
  return (
    <Dialog title={channel === undefined ? "New channel" : `Edit ${channel.name}`} onClose={onClose}>
      <Form submit={channel === undefined ? "Create channel" : "Save"} onCancel={onClose} onSubmit={submit}>
        <div class="two">
          <TextField name="name" label="Name" value={channel?.name} placeholder="Team chat" required />
          {channel === undefined ? (
            <SelectField
              name="kind"
              label="Kind"
              value={kind}
              options={KINDS.map(([one, label]) => [one, label])}
              onChange={(value) => setKind(KINDS.find(([one]) => one === value)?.[0] ?? "slack")}
            />
          ) : null}
        </div>
        <ConfigFields key={kind} kind={kind} isNew={channel === undefined} />
        <fieldset>
          <legend>Notify when a target…</legend>
          {EVENTS.map(([event, label]) => (
            <Tick key={event} name={event} label={label} checked={notified.includes(event)} />
          ))}
        </fieldset>
        <SelectField
          name="remind"
          label="Remind while a target is down"
          value={channel?.remind ?? "never"}
          options={REMIND}
        />
        <Tick
          name="default"
          label="Default for monitors without channels"
          checked={channel?.default ?? true}
        />
      </Form>
    </Dialog>
  );
}

function fieldsOf(kind: Kind): readonly Field[] {
  return KINDS.find(([one]) => one === kind)?.[2] ?? [];
}

/** The settings of a kind. Stored values are secret and not shown. */
function ConfigFields({ kind, isNew }: { kind: Kind; isNew: boolean }) {
  const fields = fieldsOf(kind);
  const hint = isNew ? undefined : "Leave empty to keep the current settings.";
  return (
    <>
      {fields.includes("url") ? (
        <TextField
          name="url"
          label={kind === "ntfy" ? "URL with the topic" : "URL"}
          type="url"
          placeholder="https://example.com/hooks"
          required={isNew}
          hint={hint}
        />
      ) : null}
      {fields.includes("token") ? (
        <TextField
          name="token"
          label="Token"
          type="password"
          required={isNew && kind !== "ntfy"}
          hint={hint}
        />
      ) : null}
      {fields.includes("chat_id") ? (
        <TextField name="chat_id" label="Chat ID" placeholder="-1001234" required={isNew} hint={hint} />
      ) : null}
      {fields.includes("to") ? (
        <TextField name="to" label="Addresses" rows={2} required={isNew} hint={hint ?? "One per line."} />
      ) : null}
    </>
  );
}

function configOf(data: FormData, kind: Kind): Config {
  const fields = fieldsOf(kind).flatMap((field): [string, unknown][] => {
    const text = textOf(data, field);
    if (text === undefined) return [];
    return [[field, field === "to" ? text.split(/\s+/) : text]];
  });
  return Object.fromEntries(fields);
}
