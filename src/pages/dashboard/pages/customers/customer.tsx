import type { KeyItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { DAY_MS, formatNumber, HOUR_MS, span } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { minute, serverNow } from "../../core/now.ts";
import { useCall, useResource } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { mayCall } from "../../core/session.ts";
import { Button } from "../../ui/button.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { ListView } from "../../ui/list.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { KeyState, maskedSecret } from "../keys/key-state.tsx";
import { Tags } from "../keys/tags.tsx";
import { deliveryColumns } from "../relay/delivery-columns.tsx";
import { endpointColumns } from "../relay/endpoint-columns.tsx";
import { PortalLink } from "../relay/portal-link.tsx";

/** Ids of meters; ids of customers permit more. */
const METER_ID = /^[\w-]{1,64}$/;

/** A customer: its keys with their limits and use, its credits, its endpoints and its deliveries. */
export function CustomerPage({ id }: { id: string }) {
  const keys = useList("keys.list", "keys", ["keys"], { keyOf, query: { owner_id: id } });
  const hasRelay = mayCall("relay.endpoints.list");
  const named = (keys.data ?? []).flatMap(({ meter_id }) => meter_id ?? []);
  const meters = [...new Set([...named, ...(METER_ID.test(id) ? [id] : [])])];
  return (
    <Page
      title={id}
      up={[href(["customers"]), "Customers"]}
      request={requestOf("keys.list", { query: { owner_id: id } })}
      actions={
        hasRelay ? (
          <Button operation="relay.portal.create" onClick={() => setQuery({ portal: "1" })}>
            Portal link
          </Button>
        ) : null
      }
    >
      <div class="stack">
        <Panel title="Keys" flush>
          <ListView
            list={keys}
            label="Keys"
            columns={KEYS}
            href={({ id: key }) => href(["keys", key])}
            empty={<p class="quiet pad">No keys.</p>}
          />
        </Panel>
        {mayCall("meter.balance") ? <Meters ids={meters} /> : null}
        {hasRelay ? <Endpoints owner={id} /> : null}
        {hasRelay ? <Deliveries owner={id} /> : null}
      </div>
      {place.value.query.has("portal") ? (
        <PortalLink owner={id} onClose={() => setQuery({ portal: undefined })} />
      ) : null}
    </Page>
  );
}

const keyOf = ({ id }: KeyItem): string => id;

const KEYS: readonly Column<KeyItem>[] = [
  { head: "Key", cell: ({ name }) => name, sub: (key) => <code>{maskedSecret(key)}</code> },
  { head: "Roles", cell: ({ roles }) => (roles.length === 0 ? "–" : <Tags of={roles} />), layout: "wide" },
  { head: "Limits", cell: (key) => limitsOf(key), layout: "wide" },
  { head: "Last 24 hours", cell: ({ id }) => <Uses id={id} />, layout: "wide" },
  { head: "Last used", cell: ({ last_used_at }) => <Ago at={last_used_at} />, layout: "wide", width: 8 },
  { head: "State", cell: (key) => <KeyState of={key} />, layout: "fit" },
];

function limitsOf({ ratelimits, uses }: KeyItem) {
  const limits = ratelimits.map(({ limit, duration_ms }) => `${formatNumber(limit)} in ${span(duration_ms)}`);
  return (
    <>
      {uses === null ? "unlimited uses" : `${formatNumber(uses.remaining)} uses left`}
      {limits.length === 0 ? null : <span class="sub">{limits.join(", ")}</span>}
    </>
  );
}

/** Uses of a key in the current hour and the 23 before, read once a minute. */
function Uses({ id }: { id: string }) {
  const usage = useResource(
    `uses ${id}`,
    [],
    (signal) => {
      const hour = serverNow() - (serverNow() % HOUR_MS);
      const from = new Date(hour + HOUR_MS - DAY_MS).toISOString();
      return call("keys.usage", { params: { id }, query: { from, granularity: "hour" } }, signal);
    },
    minute.value,
  );
  if (usage.data === null) return null;
  const total = usage.data.data.reduce((sum, period) => sum + period.total, 0);
  const valid = usage.data.data.reduce((sum, period) => sum + period.valid, 0);
  return (
    <>
      {formatNumber(total)} uses
      {total === valid ? null : <span class="sub">{formatNumber(total - valid)} rejected</span>}
    </>
  );
}

/** The credits of a customer; a meter that does not exist is omitted. */
function Meters({ ids }: { ids: readonly string[] }) {
  const meters = useResource(
    `meters ${ids.join(" ")}`,
    ["meter"],
    async (signal) => {
      const pages = ids.map((prefix) => call("meter.list", { query: { prefix, limit: 1 } }, signal));
      const found = (await Promise.all(pages)).flatMap((page) => page.meters);
      return found.filter(({ meter_id }) => ids.includes(meter_id));
    },
    ids.length,
  );
  return (
    <Panel title="Credits" flush>
      <Loaded of={meters}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="quiet pad">No meter.</p>
          ) : (
            <Table
              label="Credits"
              fixed
              rows={rows}
              keyOf={({ meter_id }) => meter_id}
              href={({ meter_id }) => href(["meters", meter_id])}
              columns={[
                { head: "Meter", cell: ({ meter_id }) => meter_id },
                { head: "Balance", cell: ({ balance }) => formatNumber(balance), layout: "end" },
                { head: "Available", cell: ({ available }) => formatNumber(available), layout: "end" },
                {
                  head: "Last change",
                  cell: ({ updated_at }) => <Ago at={updated_at} />,
                  layout: "wide",
                },
              ]}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}

function Endpoints({ owner }: { owner: string }) {
  const list = useList("relay.endpoints.list", "endpoints", ["relay"], {
    keyOf: ({ endpoint_id }) => endpoint_id,
    query: { owner_id: owner },
  });
  return (
    <Panel title="Endpoints" flush>
      <ListView
        list={list}
        label="Endpoints"
        columns={endpointColumns(false)}
        href={({ endpoint_id }) => href(["relay", "endpoints", endpoint_id])}
        empty={<p class="quiet pad">No endpoints.</p>}
      />
    </Panel>
  );
}

const DELIVERIES_SHOWN = 20;

function Deliveries({ owner }: { owner: string }) {
  const newest = useCall("relay.list", { query: { owner_id: owner, limit: DELIVERIES_SHOWN } }, ["relay"]);
  return (
    <Panel title="Newest deliveries" flush>
      <Loaded of={newest}>
        {({ deliveries }) =>
          deliveries.length === 0 ? (
            <p class="quiet pad">No deliveries.</p>
          ) : (
            <Table
              label="Newest deliveries"
              fixed
              rows={deliveries}
              keyOf={({ relay_id }) => relay_id}
              href={({ relay_id }) => href(["relay", relay_id])}
              columns={deliveryColumns()}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}
