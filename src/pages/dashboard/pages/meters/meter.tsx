import { useState } from "preact/hooks";
import type { LedgerEntry } from "../../../../client/generated/api.ts";
import { LineChart } from "../../charts/line.tsx";
import { call, requestOf } from "../../core/api.ts";
import { figure } from "../../core/format.ts";
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

type Deed = "refill" | "deduct" | "reset";
const DEEDS: readonly (readonly [Deed, string])[] = [
  ["refill", "Refill"],
  ["deduct", "Deduct"],
  ["reset", "Reset"],
];

/** One meter: its balance, its line, its ledger. */
export function MeterPage({ id }: { id: string }) {
  const params = { meterId: id };
  const [deed, setDeed] = useState<Deed | null>(null);
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
            balance {figure(now)}
            {held === 0 ? "" : ` · available ${figure(available)} · held ${figure(held)}`}
          </span>
        )
      }
      request={requestOf("meter.history", { params })}
      actions={DEEDS.map(([name, label]) => (
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
      {deed === null ? null : (
        <ChangeMeter id={id} deed={deed} balance={now} onClose={() => setDeed(null)} onDone={reload} />
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
    <Empty icon="meters" title="This meter has no entries" request={requestOf("meter.refill", first)}>
      A meter is there from its first refill on.
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
          head: "What",
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
        { head: "When", cell: ({ at }) => <Ago at={at} />, look: "wide" },
        { head: "Request", cell: ({ request_id }) => <code>{request_id}</code>, look: "wide" },
        { head: "Amount", cell: ({ amount }) => `${amount > 0 ? "+" : ""}${figure(amount)}`, look: "end" },
        { head: "Balance after", cell: ({ balance_after }) => figure(balance_after), look: "end" },
      ]}
    />
  );
}

const FIRST_AMOUNT = "100";

interface ChangeProps {
  readonly id: string;
  readonly deed: Deed;
  readonly balance: number;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function ChangeMeter({ id, deed, balance, onDone, onClose }: ChangeProps) {
  const [amount, setAmount] = useState(FIRST_AMOUNT);
  const value = Number(amount);
  const after = { refill: balance + value, deduct: balance - value, reset: value }[deed];
  const submit = async (): Promise<void> => {
    const params = { meterId: id };
    const { balance: left } =
      deed === "reset"
        ? await call("meter.reset", { params, body: { balance: value } })
        : await call(deed === "refill" ? "meter.refill" : "meter.deduct", {
            params,
            body: { amount: value },
          });
    toast(`The balance is ${figure(left)}`);
    onDone();
    onClose();
  };
  const [, label = ""] = DEEDS.find(([name]) => name === deed) ?? [];
  return (
    <Dialog title={`${label} ${id}`} onClose={onClose}>
      <Form submit={label} onSubmit={submit} onCancel={onClose}>
        <TextField
          name="amount"
          label={deed === "reset" ? "New balance" : "Amount"}
          type="number"
          min={deed === "reset" ? 0 : 1}
          required
          value={FIRST_AMOUNT}
          onInput={setAmount}
          hint={`The balance will be ${figure(after)}.`}
        />
      </Form>
    </Dialog>
  );
}
