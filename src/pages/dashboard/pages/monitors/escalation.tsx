import type { Channel } from "../../../../client/generated/api.ts";
import { MINUTE_MS } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { Button } from "../../ui/button.tsx";
import type { Control } from "../../ui/data-form.tsx";
import { CheckField, TextField } from "../../ui/field.tsx";

type Step = Channel["escalate"][number];

/** More than a project can have. */
const CHANNELS = 100;
const STEPS_MAX = 5;
/** Time between two steps in a new one. */
const STEP_MS = 15 * MINUTE_MS;

/** Why a step cannot be saved; empty if it can. */
function problemOf({ after_ms, channel_ids }: Step, before: Step | undefined): string {
  if (after_ms <= (before?.after_ms ?? 0)) return "Must be more minutes than in the step before.";
  return channel_ids.length === 0 ? "Select a channel that the step notifies." : "";
}

/** The steps in which other channels are notified while nobody acknowledges an outage. */
export const Escalation: Control = ({ value, onChange }) => {
  const steps = (value ?? []) as readonly Step[];
  const list = useCall("monitors.channels.list", { query: { limit: CHANNELS } }, ["pulse"]);
  const channels = list.data?.channels ?? [];
  const replace = (at: number, step: Step) =>
    onChange(steps.map((old, index) => (index === at ? step : old)));
  return (
    <fieldset>
      <legend>While nobody acknowledges an outage</legend>
      {steps.map((step, at) => (
        <div class="stack" key={at}>
          <TextField
            name={`escalate.${at}.minutes`}
            label={`Step ${at + 1}: minutes after the alert`}
            type="number"
            value={String(step.after_ms / MINUTE_MS)}
            required
            min={1}
            step="any"
            problem={problemOf(step, steps[at - 1])}
            onInput={(minutes) => replace(at, { ...step, after_ms: Number(minutes) * MINUTE_MS })}
          />
          {channels.map(({ id, name }) => (
            <CheckField
              key={id}
              label={`Notify ${name}`}
              checked={step.channel_ids.includes(id)}
              onChange={(is) => {
                const others = step.channel_ids.filter((other) => other !== id);
                replace(at, { ...step, channel_ids: is ? [...others, id] : others });
              }}
            />
          ))}
          <Button
            kind="quiet"
            label={`Remove step ${at + 1}`}
            onClick={() => onChange(steps.filter((_, index) => index !== at))}
          >
            Remove step
          </Button>
        </div>
      ))}
      {steps.length < STEPS_MAX ? (
        <Button
          onClick={() =>
            onChange([...steps, { after_ms: (steps.at(-1)?.after_ms ?? 0) + STEP_MS, channel_ids: [] }])
          }
        >
          Add a step
        </Button>
      ) : null}
    </fieldset>
  );
};
