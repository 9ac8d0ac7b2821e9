import { useState } from "preact/hooks";
import type { MeterPlan, MeterState } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";
import { DateTime } from "../../ui/time.tsx";

const EVERY = [
  ["day", "Every day"],
  ["week", "Every week"],
  ["month", "Every month"],
] as const;
const MODES = [
  ["raise", "Raise the balance to the amount"],
  ["add", "Add the amount to the balance"],
] as const;
type Every = MeterPlan["every"];
type Mode = MeterPlan["mode"];

interface RefillPlanProps {
  readonly id: string;
  readonly meter: MeterState | null;
  readonly onChange: () => void;
}

/** A meter's refill plan, and the form that changes it. The plan is read after each read of a meter that has one. */
export function RefillPlan({ id, meter, onChange }: RefillPlanProps) {
  const [open, setOpen] = useState(false);
  const plan = useResource(
    meter?.has_plan === true ? `plan ${id}` : null,
    [],
    (signal) => call("meter.plan.read", { params: { meterId: id } }, signal),
    meter,
  );
  return (
    <Panel
      title="Refill plan"
      actions={
        <Button scope="meter:write" onClick={() => setOpen(true)}>
          {plan.data === null ? "Set plan…" : "Edit…"}
        </Button>
      }
    >
      {plan.data === null ? <p class="quiet">No refill plan.</p> : <PlanText of={plan.data} />}
      {open ? <PlanForm id={id} of={plan.data} onDone={onChange} onClose={() => setOpen(false)} /> : null}
    </Panel>
  );
}

function PlanText({ of: { amount, every, mode, carry_max, next_at } }: { of: MeterPlan }) {
  return (
    <p>
      {mode === "raise" ? `Raised to ${formatNumber(amount)}` : `${formatNumber(amount)} added`} every {every}
      {carry_max === null ? "" : `, carrying over at most ${formatNumber(carry_max)}`}; next{" "}
      <DateTime at={next_at} />
    </p>
  );
}

interface PlanFormProps {
  readonly id: string;
  readonly of: MeterPlan | null;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function PlanForm({ id, of, onDone, onClose }: PlanFormProps) {
  const [every, setEvery] = useState<Every>(of?.every ?? "month");
  const [mode, setMode] = useState<Mode>(of?.mode ?? "raise");
  const [startsNow, setStartsNow] = useState(false);
  const params = { meterId: id };
  const submit = async (data: FormData): Promise<void> => {
    const [day, carry] = [textOf(data, "day"), textOf(data, "carry")];
    const body = {
      amount: Number(textOf(data, "amount")),
      every,
      mode,
      start_now: startsNow,
      ...(every === "day" || day === undefined ? {} : { day: Number(day) }),
      ...(mode === "raise" || carry === undefined ? {} : { carry_max: Number(carry) }),
    };
    await call("meter.plan.set", { params, body });
    toast(`${id} is refilled every ${every}`);
    onDone();
    onClose();
  };
  const remove = async (): Promise<void> => {
    await call("meter.plan.delete", { params });
    toast(`Refill plan of ${id} deleted`);
    onDone();
    onClose();
  };
  return (
    <Dialog title={`Refill plan of ${id}`} onClose={onClose}>
      <Form submit="Save plan" onSubmit={submit} onCancel={onClose}>
        <div class="two">
          <TextField
            name="amount"
            label="Amount"
            type="number"
            min={1}
            value={String(of?.amount ?? 1000)}
            required
          />
          <SelectField
            name="every"
            label="Interval"
            value={every}
            options={EVERY}
            onChange={(value) => setEvery(value as Every)}
            hint="At 00:00 UTC."
          />
        </div>
        <div class="two">
          <SelectField
            name="mode"
            label="Mode"
            value={mode}
            options={MODES}
            onChange={(value) => setMode(value as Mode)}
          />
          {every === "day" ? null : <DayField every={every} value={of?.day ?? 1} />}
        </div>
        {mode === "raise" ? null : <CarryField value={of?.carry_max ?? null} />}
        <CheckField label="Also refill now" checked={startsNow} onChange={setStartsNow} />
        {of === null ? null : (
          <Button kind="danger" scope="meter:write" onClick={remove}>
            Delete plan
          </Button>
        )}
      </Form>
    </Dialog>
  );
}

function DayField({ every, value }: { every: "week" | "month"; value: number }) {
  return (
    <TextField
      name="day"
      label={`Day of the ${every}`}
      type="number"
      min={1}
      max={every === "week" ? 7 : 31}
      value={String(value)}
      hint={every === "week" ? "1 is Monday." : "Shorter months use their last day."}
    />
  );
}

function CarryField({ value }: { value: number | null }) {
  return (
    <TextField
      name="carry"
      label="Carry over at most"
      type="number"
      min={0}
      value={value === null ? "" : String(value)}
      hint="Remaining credits to keep; leave empty to keep all."
    />
  );
}
