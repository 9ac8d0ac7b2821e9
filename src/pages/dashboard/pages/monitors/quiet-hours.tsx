import type { Channel } from "../../../../client/generated/api.ts";
import type { Control } from "../../ui/data-form.tsx";
import { CheckField, TextField } from "../../ui/field.tsx";

type Hours = NonNullable<Channel["quiet_hours"]>;

const NIGHT = { from: "22:00", to: "07:00" } as const;
/** Input for a time of day. */
const TIME = { pattern: "([01][0-9]|2[0-3]):[0-5][0-9]", required: true } as const;

/** The hours in which a channel gets nothing, in a time zone; the reader's at first. */
export const QuietHours: Control = ({ value, onChange }) => {
  const hours = (value ?? null) as Hours | null;
  const replace = (changes: Partial<Hours>) => onChange({ ...hours, ...changes });
  return (
    <fieldset>
      <legend>Quiet hours</legend>
      <CheckField
        label="Hold alerts in quiet hours"
        checked={hours !== null}
        onChange={(is) => onChange(is ? { ...NIGHT, time_zone: zoneOfReader() } : null)}
      />
      {hours === null ? null : (
        <>
          <div class="two">
            <TextField
              name="quiet_hours.from"
              label="From"
              value={hours.from}
              placeholder={NIGHT.from}
              {...TIME}
              onInput={(from) => replace({ from })}
            />
            <TextField
              name="quiet_hours.to"
              label="To"
              value={hours.to}
              placeholder={NIGHT.to}
              {...TIME}
              problem={hours.to === hours.from ? "Must be another time than From." : ""}
              onInput={(to) => replace({ to })}
            />
          </div>
          <TextField
            name="quiet_hours.time_zone"
            label="Time zone"
            value={hours.time_zone}
            placeholder="Europe/Berlin"
            required
            problem={isZone(hours.time_zone) ? "" : "Must be a time zone such as Europe/Berlin or UTC."}
            hint="Also steps of escalations wait. What the channel missed follows in one message."
            onInput={(time_zone) => replace({ time_zone })}
          />
        </>
      )}
    </fieldset>
  );
};

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

function zoneOfReader(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** `22:00–07:00 Europe/Berlin`. */
export function hoursText({ from, to, time_zone }: Hours): string {
  return `${from}–${to} ${time_zone}`;
}
