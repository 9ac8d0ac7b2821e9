import { call } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { CheckField } from "../../ui/field.tsx";

/** More than a project has. */
const CHANNELS = 100;

interface ChannelChoiceProps {
  /** Null: the project's default ones. */
  readonly chosen: readonly string[] | null;
  readonly onChange: (chosen: readonly string[] | null) => void;
}

/** Which channels a monitor tells; nothing where there is none. */
export function ChannelChoice({ chosen, onChange }: ChannelChoiceProps) {
  const list = useResource("channel choice", ["pulse"], (signal) =>
    call("monitors.channels.list", { query: { limit: CHANNELS } }, signal),
  );
  const channels = list.data?.channels ?? [];
  if (channels.length === 0) return null;
  const isTold = (id: string, isDefault: boolean) => (chosen === null ? isDefault : chosen.includes(id));
  const told = channels.filter((one) => isTold(one.id, one.default)).map(({ id }) => id);
  return (
    <fieldset>
      <legend>Channels</legend>
      <CheckField
        label="The project's default ones"
        checked={chosen === null}
        onChange={(is) => onChange(is ? null : told)}
      />
      {channels.map(({ id, name }) => (
        <CheckField
          key={id}
          label={name}
          checked={told.includes(id)}
          onChange={(is) => onChange(is ? [...told, id] : told.filter((one) => one !== id))}
        />
      ))}
    </fieldset>
  );
}
