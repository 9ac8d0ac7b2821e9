import { useState } from "preact/hooks";
import type { LedgerEntry } from "../../../../client/generated/api.ts";
import { LineChart } from "../../charts/line.tsx";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useList, useResource } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { Empty, Loaded, More } from "../../ui/feedback.tsx";
import { TextField } from "../../ui/field.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
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
  const [action, setDeed] = useState<Action | null>(null);
  const balance = useResource(`meter ${id}`, ["meter"], (signal) =>
    call("meter.balance", { params }, signal),
  );
  const ledger = useList(`ledger ${id}`, ["meter"], async (query, signal) => {
    const page = await call("meter.history", { params, query }, signal);
    return { items: page.entries, cursor: page.cursor ?? null };
  });
  const { balance: now = 0, available = 0, held = 0 } = balance.data ?? {};
  const reload = (): void => {
    balance.reload();
    ledger.reload();
  };
  return (
    <Page
      title={id}
      up={["#/meters", "Meters"]}
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
          scope="meter:write"
          onClick={() => setDeed(name)}
        >
          {label}
        </Button>
      ))}
    >
      <Loaded of={ledger}>
        {(entries) =>
          entries.length === 0 ? (
            <NoEntries id={id} />
          ) : (
            <div class="stack">
              <BalanceLine of={entries} />
              <MeterUsage id={id} />
              <OpenHolds id={id} onChange={reload} />
              <RefillPlan id={id} meter={balance.data} onChange={reload} />
              <Panel title="Ledger" flush>
                <Ledger of={entries} />
                <More of={ledger} />
              </Panel>
            </div>
          )
        }
      </Loaded>
      {action === null ? null : (
        <ChangeMeter id={id} action={action} balance={now} onClose={() => setDeed(null)} onDone={reload} />
      )}
    </Page>
  );
}

function BalanceLine({ of: entries }: { of: readonly LedgerEntry[] }) {
  const points = entries.map(({ at, balance_after }) => ({ at: Date.parse(at), value: balance_after }));
  return (
    <Panel>
      <LineChart title="Balance" steps points={points.reverse()} />
    </Panel>
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

function Ledger({ of: entries }: { of: readonly LedgerEntry[] }) {
  return (
    <Table
      label="Ledger"
      rows={entries}
      keyOf={({ sequence }) => String(sequence)}
      columns={[
        {
          head: "Type",
          cell: ({ kind, at }) => (
            <>
              {kind}
              <span class="narrow">
                <span class="sub">
                  <Ago at={at} />
                </span>
              </span>
            </>
          ),
        },
        { head: "Time", cell: ({ at }) => <Ago at={at} />, layout: "wide" },
        { head: "Request", cell: ({ request_id }) => <code>{request_id}</code>, layout: "wide" },
        {
          head: "Amount",
          cell: ({ amount }) => `${amount > 0 ? "+" : ""}${formatNumber(amount)}`,
          layout: "end",
        },
        { head: "Balance after", cell: ({ balance_after }) => formatNumber(balance_after), layout: "end" },
      ]}
    />
  );
}

interface ChangeProps {
  readonly id: string;
  readonly action: Action;
  readonly balance: number;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function ChangeMeter({ id, action, balance, onDone, onClose }: ChangeProps) {
  const [amount, setAmount] = useState("");
  const value = Number(amount);
  const after = { refill: balance + value, deduct: balance - value, reset: value }[action];
  const submit = async (): Promise<void> => {
    const params = { meterId: id };
    const { balance: left } =
      action === "reset"
        ? await call("meter.reset", { params, body: { balance: value } })
        : await call(action === "refill" ? "meter.refill" : "meter.deduct", {
            params,
            body: { amount: value },
          });
    toast(`The balance is ${formatNumber(left)}`);
    onDone();
    onClose();
  };
  const [, label = ""] = ACTIONS.find(([name]) => name === action) ?? [];
  return (
    <Dialog title={`${label} ${id}`} onClose={onClose}>
      <Form submit={label} onSubmit={submit} onCancel={onClose}>
        <TextField
          name="amount"
          label={action === "reset" ? "New balance" : "Amount"}
          type="number"
          min={action === "reset" ? 0 : 1}
          required
          onInput={setAmount}
          hint={
            amount === ""
              ? `The balance is ${formatNumber(balance)}.`
              : `The balance will be ${formatNumber(after)}.`
          }
        />
      </Form>
    </Dialog>
  );
}
