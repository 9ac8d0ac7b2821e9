import { requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { Empty, Loaded } from "../../ui/feedback.tsx";
import { Page } from "../../ui/page.tsx";
import { BalanceLine, Ledger } from "../meters/ledger.tsx";

/** The credits of the account over time, with what they were spent on. */
export function BalancePage() {
  const balance = useCall("meter.own.balance", {}, ["meter"]);
  const ledger = useList("meter.own.history", "entries", ["meter"], {
    keyOf: ({ sequence }) => String(sequence),
  });
  const empty = (
    <Empty icon="meters" title="No ledger entries" request={requestOf("meter.own.history", {})}>
      Charges for requests appear here, summed by operation and hour.
    </Empty>
  );
  return (
    <Page
      title="Account balance"
      up={[href(["settings"]), "Settings"]}
      status={
        balance.data === null ? null : <span class="quiet">{formatNumber(balance.data.balance)} credits</span>
      }
      request={requestOf("meter.own.history", {})}
    >
      <Loaded of={ledger}>
        {(entries) =>
          entries.length === 0 ? (
            empty
          ) : (
            <div class="stack">
              <BalanceLine of={entries} />
              <Ledger of={ledger} />
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}
