import type { AuditEntry, AuditTarget } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { download } from "../../core/download.ts";
import { useList } from "../../core/lists.ts";
import { useCall } from "../../core/resource.ts";
import { href, place } from "../../core/route.ts";
import { mayCall, projectName, session } from "../../core/session.ts";
import { useSettled } from "../../core/settled.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Loaded } from "../../ui/feedback.tsx";
import { type Filter, filterValue, ListPage } from "../../ui/list.tsx";
import { Facts, longFact, Panel } from "../../ui/page.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { actorOf } from "../audit-list.tsx";
import { MonitorLink } from "../monitors/monitor-link.tsx";
import { PersonLink } from "../person-link.tsx";
import { changedFields, type FieldChange } from "./audit-diff.ts";

const FILTERS: readonly Filter[] = [
  { name: "action", label: "Action, for example keys.*" },
  { name: "actor", label: "Actor" },
  { name: "target_type", label: "Resource type" },
  { name: "target_id", label: "Resource ID" },
  { name: "from", label: "From", isTime: true },
  { name: "to", label: "To", isTime: true },
];

/** The log of the account, or for the operator that of all accounts. */
const OF: Filter = {
  name: "of",
  label: "Accounts",
  options: [
    ["own", "This account"],
    ["all", "All accounts"],
  ],
};
const ACCOUNT: Filter = { name: "user_id", label: "Account ID" };

const OWN_LOG = { list: "audit.list", read: "audit.read", export: "audit.export" } as const;
const FULL_LOG = {
  list: "admin.audit.list",
  read: "admin.audit.read",
  export: "admin.audit.export",
} as const;
type Log = typeof OWN_LOG | typeof FULL_LOG;

/** The audit log. */
export function AuditPage() {
  const { query, rest } = place.value;
  const isFull = session.value?.operator === true && filterValue(OF) === "all";
  const log = isFull ? FULL_LOG : OWN_LOG;
  const fields = isFull ? [ACCOUNT, ...FILTERS] : FILTERS;
  const settled = new URLSearchParams(useSettled(String(query)));
  const filters = Object.fromEntries(fields.map(({ name }) => [name, settled.get(name) ?? undefined]));
  const list = useList(log.list, "entries", ["audit"], {
    keyOf: (entry) => entry.sequence,
    query: filters,
  });
  const [sequence] = rest;
  const selected = list.data?.find((entry) => entry.sequence === sequence);
  const request = requestOf(log.list, { query: filters });
  return (
    <ListPage
      title="Audit log"
      label="Changes"
      lead="Every administrative change, recorded in the same transaction as the change."
      request={request}
      actions={
        <>
          <Button onClick={() => exported(log, "csv", filters)}>CSV</Button>
          <Button onClick={() => exported(log, "jsonl", filters)}>JSON lines</Button>
        </>
      }
      filters={session.value?.operator === true ? [OF, ...fields] : fields}
      list={list}
      none={{
        icon: "audit",
        title: "No entries",
        request: requestOf(log.list, {}),
        text: "Changes to keys, flags, monitors, buckets, projects and accounts in the console or the API appear here.",
      }}
      href={(entry) => href(["audit", entry.sequence], Object.fromEntries(query))}
      columns={COLUMNS}
      selected={sequence}
      detail={(sequence) => <Chosen log={log} sequence={sequence} listed={selected} />}
    />
  );
}

/** The entries of the chosen period, and account; the export has no other filters. */
function exported(
  log: Log,
  format: "csv" | "jsonl",
  { from, to, user_id }: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { path } = requestOf(log.export, { query: { format, from, to, user_id } });
  return download(path, `audit.${format}`);
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  {
    head: "Change",
    cell: ({ summary }) => summary,
    sub: ({ action }) => action,
  },
  { head: "By", cell: actorOf, layout: "wide" },
  { head: "Time", cell: ({ at }) => <Ago at={at} />, layout: "fit" },
];

/** The entry of the address: one from the list, or an older one that is read individually. */
function Chosen(props: { log: Log; sequence: string; listed: AuditEntry | undefined }) {
  const { log, sequence, listed } = props;
  const read = useCall(log.read, listed === undefined ? { params: { sequence } } : null);
  const missing = (
    <Empty icon="audit" title="Entry not found">
      The log has no entry {sequence}, or you cannot view it.
    </Empty>
  );
  return (
    <div class="inspector stack">
      {listed === undefined ? (
        <Loaded of={read} missing={missing}>
          {(entry) => <Entry of={entry} />}
        </Loaded>
      ) : (
        <Entry of={listed} />
      )}
    </div>
  );
}

function Entry({ of: entry }: { of: AuditEntry }) {
  const { target, project_id } = entry;
  return (
    <>
      <Panel title={entry.summary}>
        <Facts
          of={[
            ["Action", <code key="a">{entry.action}</code>],
            ["Time", <DateTime key="w" at={entry.at} />],
            ["By", <Actor key="b" of={entry} />],
            ["Resource", target === null ? "–" : <Target key="t" of={target} />],
            ["Project", project_id === null ? "–" : projectName(project_id)],
            ["IP address", entry.ip ?? "–"],
            ["User agent", entry.user_agent ?? "–"],
            longFact("Request", entry.request_id),
          ]}
        />
      </Panel>
      <Changes of={entry} />
    </>
  );
}

function Actor({ of: entry }: { of: AuditEntry }) {
  const { type, person_id, email } = entry.actor;
  const name = actorOf(entry);
  if (person_id === undefined)
    return (
      <>
        {name} ({type})
      </>
    );
  return (
    <>
      <PersonLink id={person_id} name={name} />
      {email === undefined || email === name ? null : <span class="sub">{email}</span>}
    </>
  );
}

/** What was changed; a monitor with its name. */
function Target({ of: { type, id } }: { of: AuditTarget }) {
  return (
    <>
      {type} {type === "monitor" ? <MonitorLink id={id} /> : id}
    </>
  );
}

/** The fields that changed, and those of what was created or deleted, with monitors by their names. */
function Changes({ of: { action, before, after, truncated } }: { of: AuditEntry }) {
  const namesMonitors = action.startsWith("monitors.") && mayCall("monitors.list");
  const monitors = useCall("monitors.list", namesMonitors ? { query: { limit: 100 } } : null);
  const names = monitors.data?.monitors.map(({ monitor_id, name }) => [monitor_id, name] as const) ?? [];
  const changes = changedFields(before, after, new Map(names));
  if (changes.length === 0) return null;
  return (
    <Panel title="Changes" flush>
      <Table
        label="Changes"
        rows={changes}
        keyOf={({ name }) => name}
        columns={[
          { head: "Field", cell: ({ name }) => <code>{name}</code>, layout: "fit" },
          { head: "Change", cell: (change) => <Diff of={change} /> },
        ]}
      />
      {truncated === true ? (
        <p class="more quiet">The change was too large to be stored completely.</p>
      ) : null}
    </Panel>
  );
}

function Diff({ of: { parts } }: { of: FieldChange }) {
  return (
    <div class="diff">
      {parts.map(({ value, removed, added }, at) => {
        const Mark = removed ? "del" : added ? "ins" : "span";
        return <Mark key={at}>{value}</Mark>;
      })}
    </div>
  );
}
