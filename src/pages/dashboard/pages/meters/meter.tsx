import { requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { openDialog } from "../../ui/dialog.tsx";
import { Empty, Loaded } from "../../ui/feedback.tsx";
import { DataForm } from "../../ui/form.tsx";
import { Page } from "../../ui/page.tsx";
import { BalanceLine, Ledger } from "./ledger.tsx";
import { LowBalanceAlert } from "./meter-alert.tsx";
import { OpenHolds } from "./meter-holds.tsx";
import { RefillPlan } from "./meter-plan.tsx";
import { MeterUsage } from "./meter-usage.tsx";

type Action = "refill" | "deduct" | "reset";
const ACTIONS: readonly (readonly [Action, string])[] = [
  ["refill", "Refill"],
  ["deduct", "Deduct"],
  ["reset", "Reset"],
];

/** A meter: its balance, chart and ledger. */
export function MeterPage({ id }: { id: string }) {
  const params = { meterId: id };
  const balance = useCall("meter.balance", { params }, ["meter"]);
  const ledger = useList("meter.history", "entries", ["meter"], {
    keyOf: ({ sequence }) => String(sequence),
    params,
  });
  const { balance: now = 0, available = 0, held = 0 } = balance.data ?? {};
  const reload = (): void => {
    balance.reload();
    ledger.reload();
  };
  return (
    <Page
      title={id}
      up={[href(["meters"]), "Meters"]}
      status={
        balance.data === null ? null : (
          <span class="quiet">
            balance {formatNumber(now)}
            {held === 0 ? "" : ` · available ${formatNumber(available)} · held ${formatNumber(held)}`}
          </span>
        )
      }
      request={requestOf("meter.history", { params })}
      actions={ACTIONS.map(([name, label]) => (
        <Button
          key={name}
          kind={name === "refill" ? "primary" : undefined}
          operation="meter.refill"
          onClick={() =>
            openDialog((close) => <ChangeMeter id={id} action={name} onClose={close} onDone={reload} />)
          }
        >
          {label}
        </Button>
      ))}
    >
      <Loaded of={ledger}>
        {(entries) => (
          <div class="stack">
            {entries.length === 0 ? (
              <NoEntries id={id} />
            ) : (
              <>
                <BalanceLine of={entries} />
                <MeterUsage id={id} />
                <OpenHolds id={id} onChange={reload} />
              </>
            )}
            <RefillPlan id={id} meter={balance.data} onChange={reload} />
            <LowBalanceAlert id={id} meter={balance.data} onChange={reload} />
            {entries.length === 0 ? null : <Ledger of={ledger} />}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function NoEntries({ id }: { id: string }) {
  const first = { params: { meterId: id }, body: { amount: 100 } };
  return (
    <Empty icon="meters" title="No ledger entries" request={requestOf("meter.refill", first)}>
      A meter is created by its first refill.
    </Empty>
  );
}

interface ChangeProps {
  readonly id: string;
  readonly action: Action;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function ChangeMeter({ id, action, onDone, onClose }: ChangeProps) {
  const { balance = 0 } = useCall("meter.balance", { params: { meterId: id } }, ["meter"]).data ?? {};
  const isReset = action === "reset";
  const [, label = ""] = ACTIONS.find(([name]) => name === action) ?? [];
  const after = (value: number): number =>
    ({ refill: balance + value, deduct: balance - value, reset: value })[action];
  const hintOf = (entered: unknown): string =>
    typeof entered === "string" && entered !== ""
      ? `The balance will be ${formatNumber(after(Number(entered)))}.`
      : `The balance is ${formatNumber(balance)}.`;
  return (
    <DataForm
      title={`${label} ${id}`}
      submit={label}
      operation={`meter.${action}`}
      params={{ meterId: id }}
      fields={(get) => [
        isReset
          ? { name: "balance", label: "New balance", hint: hintOf(get("balance")) }
          : { name: "amount", hint: hintOf(get("amount")) },
      ]}
      onDone={({ balance: left }) => {
        toast(`The balance is ${formatNumber(left)}`);
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}
