import { useState } from "preact/hooks";
import type { AuditEntry, FlagDefinition } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { may } from "../../core/session.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { Empty, Loaded } from "../../ui/feedback.tsx";
import { CheckField, Choice, SearchField, TextField, textOf } from "../../ui/field.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { actorOf } from "../server/audit-list.tsx";
import { FlagPage } from "./flag.tsx";
import { FlagSwitch } from "./flag-switch.tsx";

/** The list of flags, or one flag. */
export function FlagsPage() {
  const [key] = place.value.rest;
  return key === undefined ? <FlagList /> : <FlagPage key={key} id={key} />;
}

type Part = "live" | "stale" | "archived";

const PARTS: readonly (readonly [Part, string])[] = [
  ["live", "Live"],
  ["stale", "Stale"],
  ["archived", "Archived"],
];

/** Whether a flag belongs to a tab of the list. */
const IS_IN: Readonly<Record<Part, (flag: FlagDefinition) => boolean>> = {
  live: ({ archived }) => !archived,
  stale: ({ stale }) => stale,
  archived: ({ archived }) => archived,
};

const ALL = { query: { full: true, archived: true } };

function FlagList() {
  const { query } = place.value;
  const text = (query.get("q") ?? "").toLowerCase();
  const part = PARTS.find(([one]) => one === query.get("part"))?.[0] ?? "live";
  const flags = useResource("all flags", ["gate"], (signal) => call("gate.config", ALL, signal));
  const changes = useResource(may("audit:read") ? "flag changes" : null, ["audit", "gate"], (signal) =>
    call("audit.list", { query: { target_type: "flag", limit: 100 } }, signal),
  );
  const isShown = (flag: FlagDefinition): boolean =>
    IS_IN[part](flag) &&
    [flag.flag_key, flag.description ?? "", ...flag.tags].join(" ").toLowerCase().includes(text);
  return (
    <Page
      title="Flags"
      request={requestOf("gate.config", ALL)}
      actions={
        <Button kind="primary" icon="new" scope="gate:write" onClick={() => setQuery({ new: "1" })}>
          New flag
        </Button>
      }
    >
      <div class="toolbar">
        <SearchField label="Search flags" value={query.get("q") ?? ""} onInput={(q) => setQuery({ q })} />
        <Choice label="Filter" options={PARTS} value={part} onChange={(one) => setQuery({ part: one })} />
      </div>
      <Loaded of={flags}>
        {(data) => (
          <Flags
            part={part}
            flags={data.flags.filter((flag) => "version" in flag).filter(isShown)}
            entries={changes.data?.entries ?? []}
            onChanged={flags.reload}
          />
        )}
      </Loaded>
      {query.has("new") ? (
        <NewFlag onDone={flags.reload} onClose={() => setQuery({ new: undefined })} />
      ) : null}
    </Page>
  );
}

const EXAMPLE = { flag_key: "new-checkout", enabled: true, description: "Checkout in one step" };

function Flags(props: {
  part: Part;
  flags: readonly FlagDefinition[];
  entries: readonly AuditEntry[];
  onChanged: () => void;
}) {
  const { part, flags, entries, onChanged } = props;
  if (flags.length === 0 && part !== "live") return <Empty icon="flags" title={`No ${part} flags`} />;
  if (flags.length === 0)
    return (
      <Empty icon="flags" title="No flags here" request={requestOf("gate.save", { body: EXAMPLE })}>
        A flag turns a feature on or off in running programs, for everyone or for some users.
      </Empty>
    );
  return (
    <Panel flush>
      <Table
        label="Flags"
        rows={flags}
        keyOf={({ flag_key }) => flag_key}
        href={({ flag_key }) => href(["flags", flag_key])}
        columns={[
          {
            head: "Flag",
            cell: (flag) => (
              <>
                {flag.flag_key}
                <span class="sub">{[flag.description ?? [], ...flag.tags].flat().join(" · ")}</span>
              </>
            ),
          },
          { head: "Served", layout: "wide", cell: (flag) => <span class="quiet">{servedText(flag)}</span> },
          {
            head: "Last change",
            layout: "wide",
            cell: (flag) => <LastChange of={entries.find(({ target }) => target?.id === flag.flag_key)} />,
          },
          { head: "State", layout: "fit", cell: (flag) => <FlagSwitch flag={flag} onChanged={onChanged} /> },
        ]}
      />
    </Panel>
  );
}

function servedText({ enabled, rules, default: fallback }: FlagDefinition): string {
  if (!enabled) return "nobody";
  const others = fallback.split === undefined ? (fallback.variant ?? "") : "split";
  if (rules.length === 0) return `all: ${others}`;
  return `${rules.length} ${rules.length === 1 ? "rule" : "rules"}, others: ${others}`;
}

function LastChange({ of: entry }: { of: AuditEntry | undefined }) {
  if (entry === undefined) return <span class="quiet">–</span>;
  return (
    <span class="quiet">
      by {actorOf(entry)}, <Ago at={entry.at} />
    </span>
  );
}

function NewFlag({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const [enabled, setEnabled] = useState(false);
  return (
    <Dialog title="New flag" onClose={onClose}>
      <Form
        submit="Create flag"
        onCancel={onClose}
        onSubmit={async (data) => {
          const description = textOf(data, "description");
          const key = textOf(data, "flag_key") ?? "";
          await call("gate.save", {
            body: { flag_key: key, enabled, ...(description === undefined ? {} : { description }) },
          });
          onDone();
          onClose();
        }}
      >
        <TextField
          name="flag_key"
          label="Key"
          placeholder="new-checkout"
          required
          mono
          hint="The key that programs evaluate."
        />
        <TextField name="description" label="Description" />
        <CheckField label="Enabled" checked={enabled} onChange={setEnabled} />
      </Form>
    </Dialog>
  );
}
