import type { AuditEntry } from "../../../client/generated/api.ts";
import { BASE_URL, call, requestOf } from "../core/api.ts";
import { useList } from "../core/resource.ts";
import { href, place, setQuery } from "../core/route.ts";
import { Empty, Loaded, More } from "../ui/feedback.tsx";
import { SearchField } from "../ui/field.tsx";
import { Facts, Page, Panel } from "../ui/page.tsx";
import { Table } from "../ui/table.tsx";
import { Ago, Moment } from "../ui/time.tsx";
import { actorOf } from "./audit-list.tsx";

const FILTERS = [
  ["action", "Action, such as keys.*"],
  ["actor", "Actor"],
  ["target_type", "Kind of thing"],
  ["target_id", "Its id"],
] as const;

/** Who changed what. */
export function AuditPage() {
  const { query, rest } = place.value;
  const filters = Object.fromEntries(FILTERS.map(([name]) => [name, query.get(name) ?? undefined]));
  const list = useList(`audit ${query}`, ["audit"], async (page, signal) => {
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
          <a class="button" href={`${BASE_URL}/v1/audit/export?format=csv`} download="audit.csv">
            CSV
          </a>
          <a class="button" href={`${BASE_URL}/v1/audit/export?format=jsonl`} download="audit.jsonl">
            JSON lines
          </a>
        </>
      }
    >
      <div class="toolbar">
        <div class="actions">
          {FILTERS.map(([name, label]) => (
            <SearchField
              key={name}
              label={label}
              value={query.get(name) ?? ""}
              onInput={(text) => setQuery({ [name]: text })}
            />
          ))}
        </div>
      </div>
      <Loaded of={list} missing={<NoEntries />}>
        {(entries) =>
          entries.length === 0 ? (
            <NoEntries />
          ) : (
            <div class={shown === undefined ? "" : "panes"}>
              <Entries entries={entries} selected={sequence} more={<More of={list} />} />
              {shown === undefined ? null : <Entry of={shown} />}
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}

function NoEntries() {
  return (
    <Empty icon="audit" title="No such change" request={requestOf("audit.list", {})}>
      What is changed here or by the API stands here: keys, flags, monitors, buckets, projects, accounts.
    </Empty>
  );
}

function Entries(props: {
  entries: readonly AuditEntry[];
  selected: string | undefined;
  more: preact.ComponentChildren;
}) {
  const { entries, selected, more } = props;
  return (
    <Panel flush>
      <Table
        label="Changes"
        rows={entries}
        keyOf={({ sequence }) => sequence}
        href={({ sequence }) => href(["audit", sequence], Object.fromEntries(place.value.query))}
        selected={selected}
        columns={[
          {
            head: "Change",
            cell: (entry) => (
              <>
                {entry.summary}
                <span class="sub">{entry.action}</span>
              </>
            ),
          },
          ...(selected === undefined ? [{ head: "By", cell: actorOf, look: "wide" }] : []),
          { head: "When", cell: ({ at }) => <Ago at={at} />, look: "fit" },
        ]}
      />
      {more}
    </Panel>
  );
}

function Entry({ of: entry }: { of: AuditEntry }) {
  const { actor, target } = entry;
  return (
    <div class="inspector stack">
      <Panel title={entry.summary}>
        <Facts
          of={[
            ["Action", <code key="a">{entry.action}</code>],
            ["When", <Moment key="w" at={entry.at} />],
            ["By", `${actorOf(entry)} (${actor.type})`],
            ["On", target === null ? "–" : `${target.type} ${target.id}`],
            ["From", entry.ip ?? "–"],
            ["With", entry.user_agent ?? "–"],
            ["Request", entry.request_id === null ? "–" : <code key="r">{entry.request_id}</code>],
          ]}
        />
      </Panel>
      <Diff before={entry.before} after={entry.after} />
    </div>
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
