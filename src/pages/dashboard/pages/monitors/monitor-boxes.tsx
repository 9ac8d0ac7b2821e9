import { useCall } from "../../core/resource.ts";
import type { Control } from "../../ui/data-form.tsx";
import { CheckField } from "../../ui/field.tsx";

/** Most monitors that can be chosen from. */
const MONITORS_SHOWN = 100;

/** A field that chooses monitors by their names. */
export const monitorBoxes =
  (legend: string): Control =>
  ({ value, onChange }) => {
    const chosen = (value ?? []) as readonly string[];
    const { data } = useCall("monitors.list", { query: { limit: MONITORS_SHOWN } });
    const monitors = data?.monitors ?? [];
    if (monitors.length === 0) return null;
    return (
      <fieldset>
        <legend>{legend}</legend>
        {monitors.map(({ monitor_id, name }) => (
          <CheckField
            key={monitor_id}
            label={name}
            checked={chosen.includes(monitor_id)}
            onChange={(is) =>
              onChange(is ? [...chosen, monitor_id] : chosen.filter((other) => other !== monitor_id))
            }
          />
        ))}
      </fieldset>
    );
  };
