import type { MeterPlan, MeterState } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { openDialog } from "../../ui/dialog.tsx";
import { DataForm } from "../../ui/form.tsx";
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

interface RefillPlanProps {
  readonly id: string;
  readonly meter: MeterState | null;
  readonly onChange: () => void;
}

/** A meter's refill plan, and the form that changes it. The plan is read after each read of a meter that has one. */
export function RefillPlan({ id, meter, onChange }: RefillPlanProps) {
  const input = meter?.has_plan === true ? { params: { meterId: id } } : null;
  const { data: plan, fresh } = useCall("meter.plan.read", input, [], meter);
  const isKnown = meter !== null && (input === null || fresh);
  const edit = (): void =>
    openDialog((close) => <PlanForm id={id} of={plan} onDone={onChange} onClose={close} />);
  return (
    <Panel
      title="Refill plan"
      actions={
        <Button operation="meter.plan.set" disabled={!isKnown} onClick={edit}>
          {plan === null ? "Set plan…" : "Edit…"}
        </Button>
      }
    >
      {plan === null ? <p class="quiet">No refill plan.</p> : <PlanText of={plan} />}
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
  const params = { meterId: id };
  const close = (): void => {
    onDone();
    onClose();
  };
  const remove = async (): Promise<void> => {
    await call("meter.plan.delete", { params });
    toast(`Refill plan of ${id} deleted`);
    close();
  };
  return (
    <DataForm
      title={`Refill plan of ${id}`}
      submit="Save plan"
      operation="meter.plan.set"
      params={params}
      start={{ amount: 1000, every: "month", mode: "raise", day: 1, ...of }}
      fields={(get) => [
        ["amount", { name: "every", label: "Interval", options: EVERY, hint: "At 00:00 UTC." }],
        [
          { name: "mode", options: MODES, hint: "" },
          get("every") === "day"
            ? null
            : {
                name: "day",
                label: `Day of the ${get("every")}`,
                hint: get("every") === "week" ? "1 is Monday." : "Shorter months use their last day.",
              },
        ],
        get("mode") === "raise"
          ? null
          : {
              name: "carry_max",
              label: "Carry over at most",
              hint: "Remaining credits to keep; leave empty to keep all.",
            },
        { name: "start_now", label: "Also refill now" },
        of === null ? null : (
          <Button key="delete" kind="danger" operation="meter.plan.delete" onClick={remove}>
            Delete plan
          </Button>
        ),
      ]}
      onDone={({ every }) => {
        toast(`${id} is refilled every ${every}`);
        close();
      }}
      onClose={onClose}
    />
  );
}
