import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import type { Control } from "../../ui/data-form.tsx";
import { CheckField } from "../../ui/field.tsx";

/** More than a project can have. */
const CHANNELS = 100;

/** The channels that a monitor notifies; a link to create one in a project without channels. */
export const ChannelChoice: Control = ({ value, onChange }) => {
  // Null: the project's default channels.
  const chosen = value as readonly string[] | null;
  const list = useCall("monitors.channels.list", { query: { limit: CHANNELS } }, ["pulse"]);
  const channels = list.data?.channels ?? [];
  if (list.data === null) return null;
  if (channels.length === 0)
    return (
      <p class="quiet">
        Alerts are sent to channels:{" "}
        <a href={href(["monitors", "channels"], { new: "1" })}>create a channel</a> for chat, push messages or
        e-mail.
      </p>
    );
  const isNotified = (id: string, isDefault: boolean) => (chosen === null ? isDefault : chosen.includes(id));
  const notified = channels.filter((channel) => isNotified(channel.id, channel.default)).map(({ id }) => id);
  return (
    <fieldset>
      <legend>Channels</legend>
      <CheckField
        label="The project's default channels"
        checked={chosen === null}
        onChange={(is) => onChange(is ? null : notified)}
      />
      {channels.map(({ id, name }) => (
        <CheckField
          key={id}
          label={name}
          checked={notified.includes(id)}
          onChange={(is) => onChange(is ? [...notified, id] : notified.filter((other) => other !== id))}
        />
      ))}
    </fieldset>
  );
};
