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
import { Ago, Moment } from "../../ui/time.tsx";
import { actorOf } from "./audit-list.tsx";

const FILTERS = [
  ["action", "Action, such as keys.*"],
  ["actor", "Actor"],
  ["target_type", "Kind of thing"],
  ["target_id", "Its id"],
] as const;
const TIMES = [
  ["from", "From"],
  ["to", "To"],
] as const;
const NAMES = [...FILTERS, ...TIMES].map(([name]) => name);

/** Who changed what. */
export function AuditPage() {
  const { query, rest } = place.value;
  const settled = new URLSearchParams(useSettled(String(query)));
  const filters = Object.fromEntries(NAMES.map((name) => [name, settled.get(name) ?? undefined]));
  const list = useList(`audit ${JSON.stringify(filters)}`, ["audit"], async (page, signal) => {
    const found = await call("audit.list", { query: { ...filters, ...page } }, signal);
    return { items: found.entries, cursor: found.cursor ?? null };
  });
  const [sequence] = rest;
  const shown = list.data?.find((entry) => entry.sequence === sequence);
  return (
    <Page
      title="Audit log"
      lead="Every administrative change, written in the same transaction as the change itself."
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
          <Empty icon="audit" title="No such change" request={requestOf("audit.list", {})}>
            What is changed here or by the API stands here: keys, flags, monitors, buckets, projects,
            accounts.
          </Empty>
        }
        keyOf={({ sequence }) => sequence}
        href={({ sequence }) => href(["audit", sequence], Object.fromEntries(query))}
        columns={COLUMNS}
        narrow={["Change", "When"]}
        selected={sequence}
        detail={(one) => <Chosen sequence={one} listed={shown} />}
      />
    </Page>
  );
}

/** The entries of the time that is chosen: the export knows no other filter. */
function exported(format: "csv" | "jsonl", { from, to }: { from?: string; to?: string }): Promise<void> {
  const { path } = requestOf("audit.export", { query: { format, from, to } });
  return download(path, `audit.${format}`);
}

const MINUTE_MS = 60_000;

/** A moment as the field for it wants it: in the reader's time, without a zone. */
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
  { head: "By", cell: actorOf, look: "wide" },
  { head: "When", cell: ({ at }) => <Ago at={at} />, look: "fit" },
];

/** The entry that the address names: one that is listed, or one further down, which is read by itself. */
function Chosen({ sequence, listed }: { sequence: string; listed: AuditEntry | undefined }) {
  const read = useResource(listed === undefined ? `audit entry ${sequence}` : null, [], (signal) =>
    call("audit.read", { params: { sequence } }, signal),
  );
  const missing = (
    <Empty icon="audit" title="No such entry">
      The log has no entry {sequence}, or it is not yours to see.
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
            ["When", <Moment key="w" at={entry.at} />],
            ["By", `${actorOf(entry)} (${actor.type})`],
            ["On", target === null ? "–" : `${target.type} ${target.id}`],
            ["From", entry.ip ?? "–"],
            ["With", entry.user_agent ?? "–"],
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
    <Panel title="What changed" flush>
      <Table
        label="What changed"
        rows={names}
        keyOf={(name) => name}
        columns={[
          { head: "Field", cell: (name) => <code>{name}</code>, look: "fit" },
          { head: "Before", cell: (name) => <code>{text(before?.[name])}</code> },
          { head: "After", cell: (name) => <code>{text(after?.[name])}</code> },
        ]}
      />
    </Panel>
  );
}
