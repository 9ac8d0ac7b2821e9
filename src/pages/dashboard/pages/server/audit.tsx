import type { AuditEntry } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { download } from "../../core/download.ts";
import { useList, useResource } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { useSettled } from "../../core/settled.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Loaded } from "../../ui/feedback.tsx";
import { SearchField } from "../../ui/field.tsx";
import { ListPane } from "../../ui/list-pane.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { actorOf } from "./audit-list.tsx";

const FILTERS = [
  ["action", "Action, for example keys.*"],
  ["actor", "Actor"],
  ["target_type", "Resource type"],
  ["target_id", "Resource ID"],
] as const;
const TIMES = [
  ["from", "From"],
  ["to", "To"],
] as const;
const NAMES = [...FILTERS, ...TIMES].map(([name]) => name);

/** The audit log. */
export function AuditPage() {
  const { query, rest } = place.value;
  const settled = new URLSearchParams(useSettled(String(query)));
  const filters = Object.fromEntries(NAMES.map((name) => [name, settled.get(name) ?? undefined]));
  const list = useList(`audit ${JSON.stringify(filters)}`, ["audit"], async (page, signal) => {
    const found = await call("audit.list", { query: { ...filters, ...page } }, signal);
    return { items: found.entries, cursor: found.cursor ?? null };
  });
  const [sequence] = rest;
  const selected = list.data?.find((entry) => entry.sequence === sequence);
  return (
    <Page
      title="Audit log"
      lead="Every administrative change, recorded in the same transaction as the change."
      request={requestOf("audit.list", { query: filters })}
      actions={
        <>
          <Button onClick={() => exported("csv", filters)}>CSV</Button>
          <Button onClick={() => exported("jsonl", filters)}>JSON lines</Button>
        </>
      }
    >
      <div class="toolbar">
        <div class="actions filters">
          {FILTERS.map(([name, label]) => (
            <SearchField
              key={name}
              label={label}
              value={query.get(name) ?? ""}
              onInput={(text) => setQuery({ [name]: text })}
            />
          ))}
          {TIMES.map(([name, label]) => (
            <label key={name}>
              {label}
              <input
                type="datetime-local"
                value={localTime(query.get(name))}
                onChange={(event) => setQuery({ [name]: rfcTime(event.currentTarget.value) })}
              />
            </label>
          ))}
        </div>
      </div>
      <ListPane
        list={list}
        label="Changes"
        empty={
          <Empty icon="audit" title="No entries" request={requestOf("audit.list", {})}>
            Changes to keys, flags, monitors, buckets, projects and accounts in the console or the API appear
            here.
          </Empty>
        }
        keyOf={({ sequence }) => sequence}
        href={({ sequence }) => href(["audit", sequence], Object.fromEntries(query))}
        columns={COLUMNS}
        narrow={["Change", "Time"]}
        selected={sequence}
        detail={(one) => <Chosen sequence={one} listed={selected} />}
      />
    </Page>
  );
}

/** The entries of the chosen period; the export has no other filters. */
function exported(format: "csv" | "jsonl", { from, to }: { from?: string; to?: string }): Promise<void> {
  const { path } = requestOf("audit.export", { query: { format, from, to } });
  return download(path, `audit.${format}`);
}

const MINUTE_MS = 60_000;

/** A time for a `datetime-local` field: local time without a zone. */
function localTime(text: string | null): string {
  const at = Date.parse(text ?? "");
  if (Number.isNaN(at)) return "";
  const zone = new Date(at).getTimezoneOffset() * MINUTE_MS;
  return new Date(at - zone).toISOString().slice(0, "2026-03-10T12:00".length);
}

function rfcTime(local: string): string {
  const at = Date.parse(local);
  return Number.isNaN(at) ? "" : new Date(at).toISOString();
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  {
    head: "Change",
    cell: (entry) => (
      <>
        {entry.summary}
        <span class="sub">{entry.action}</span>
      </>
    ),
  },
  { head: "By", cell: actorOf, layout: "wide" },
  { head: "Time", cell: ({ at }) => <Ago at={at} />, layout: "fit" },
];

/** The entry of the address: one from the list, or an older one that is read individually. */
function Chosen({ sequence, listed }: { sequence: string; listed: AuditEntry | undefined }) {
  const read = useResource(listed === undefined ? `audit entry ${sequence}` : null, [], (signal) =>
    call("audit.read", { params: { sequence } }, signal),
  );
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
  const { actor, target } = entry;
  return (
    <>
      <Panel title={entry.summary}>
        <Facts
          of={[
            ["Action", <code key="a">{entry.action}</code>],
            ["Time", <DateTime key="w" at={entry.at} />],
            ["By", `${actorOf(entry)} (${actor.type})`],
            ["Resource", target === null ? "–" : `${target.type} ${target.id}`],
            ["IP address", entry.ip ?? "–"],
            ["User agent", entry.user_agent ?? "–"],
            [
              "Request",
              entry.request_id === null ? (
                "–"
              ) : (
                <code key="r" class="long">
                  {entry.request_id}
                </code>
              ),
            ],
          ]}
        />
      </Panel>
      <Diff before={entry.before} after={entry.after} />
    </>
  );
}

function Diff({ before, after }: Pick<AuditEntry, "before" | "after">) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort();
  if (names.length === 0) return null;
  const text = (value: unknown): string => (value === undefined ? "–" : JSON.stringify(value));
  return (
    <Panel title="Changes" flush>
      <Table
        label="Changes"
        rows={names}
        keyOf={(name) => name}
        columns={[
          { head: "Field", cell: (name) => <code>{name}</code>, layout: "fit" },
          { head: "Before", cell: (name) => <code>{text(before?.[name])}</code> },
          { head: "After", cell: (name) => <code>{text(after?.[name])}</code> },
        ]}
      />
    </Panel>
  );
}
