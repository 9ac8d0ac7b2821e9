import type { LedgerEntry } from "../../../../client/generated/api.ts";
import { LineChart } from "../../charts/line.tsx";
import { count, formatNumber } from "../../core/format.ts";
import type { List } from "../../core/lists.ts";
import { ListView } from "../../ui/list.tsx";
import { Panel } from "../../ui/page.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";

/** The balance over the entries of a page of a ledger. */
export function BalanceLine({ of: entries }: { of: readonly LedgerEntry[] }) {
  const points = entries.map(({ at, balance_after }) => ({ at: Date.parse(at), value: balance_after }));
  return (
    <Panel>
      <LineChart title="Balance" steps points={points.reverse()} />
    </Panel>
  );
}

/** The entries of a ledger, newest first. */
export function Ledger({ of: list }: { of: List<LedgerEntry> }) {
  return (
    <Panel title="Ledger" flush>
      <ListView list={list} label="Ledger" columns={COLUMNS} />
    </Panel>
  );
}

const COLUMNS: readonly Column<LedgerEntry>[] = [
  {
    head: "Type",
    cell: ({ kind }) => kind,
    sub: ({ at, operation, count: requests }) => (
      <>
        {operation === undefined ? null : `${operation} · ${count(requests ?? 0, "request")} `}
        <span class="narrow">
          <Ago at={at} />
        </span>
      </>
    ),
  },
  { head: "Time", cell: ({ at }) => <Ago at={at} />, layout: "wide" },
  {
    head: "Request",
    cell: ({ request_id }) => (request_id === null ? "–" : <code>{request_id}</code>),
    layout: "wide",
  },
  {
    head: "Amount",
    cell: ({ amount }) => `${amount > 0 ? "+" : ""}${formatNumber(amount)}`,
    layout: "end",
  },
  { head: "Balance after", cell: ({ balance_after }) => formatNumber(balance_after), layout: "end" },
];
