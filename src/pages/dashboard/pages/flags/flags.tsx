import type { AuditEntry, FlagDefinition } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { usePagesOf } from "../../core/lists.ts";
import { useCall } from "../../core/resource.ts";
import { href, place } from "../../core/route.ts";
import { mayCall } from "../../core/session.ts";
import { DataForm } from "../../ui/form.tsx";
import { filterValue, ListPage } from "../../ui/list.tsx";
import { Ago } from "../../ui/time.tsx";
import { actorOf } from "../audit-list.tsx";
import { FlagPage } from "./flag.tsx";
import { FlagSwitch } from "./flag-switch.tsx";

/** The list of flags, or one flag. */
export function FlagsPage() {
  const [key] = place.value.rest;
  return key === undefined ? <FlagList /> : <FlagPage key={key} id={key} />;
}

type Part = "live" | "stale" | "archived";

const PARTS = {
  name: "part",
  label: "Filter",
  options: [
    ["live", "Live"],
    ["stale", "Stale"],
    ["archived", "Archived"],
  ],
} as const;

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
  const part = filterValue(PARTS) as Part;
  const flags = useCall("gate.config", ALL, ["gate"]);
  const log = { query: { target_type: "flag", limit: 100 } };
  const changes = useCall("audit.list", mayCall("audit.list") ? log : null, ["audit", "gate"]);
  const isShown = (flag: FlagDefinition): boolean =>
    IS_IN[part](flag) &&
    [flag.flag_key, flag.description ?? "", ...flag.tags].join(" ").toLowerCase().includes(text);
  const data = flags.data?.flags.filter((flag) => "version" in flag).filter(isShown) ?? null;
  const list = usePagesOf({ ...flags, data }, `flags ${part} ${text}`, ({ flag_key }) => flag_key);
  const entries = changes.data?.entries ?? [];
  return (
    <ListPage
      title="Flags"
      label="Flags"
      request={requestOf("gate.config", ALL)}
      create={["New flag", "gate.save"]}
      filters={[{ name: "q", label: "Search flags" }, PARTS]}
      list={list}
      none={{
        icon: "flags",
        title: part === "live" ? "No flags here" : `No ${part} flags`,
        request: requestOf("gate.save", { body: EXAMPLE }),
        text: "A flag turns a feature on or off in running programs, for everyone or for some users.",
      }}
      href={({ flag_key }) => href(["flags", flag_key])}
      columns={[
        {
          head: "Flag",
          cell: ({ flag_key }) => flag_key,
          sub: ({ description, tags }) => [description ?? [], ...tags].flat().join(" · "),
        },
        { head: "Served", layout: "wide", cell: (flag) => <span class="quiet">{servedText(flag)}</span> },
        {
          head: "Last change",
          layout: "wide",
          cell: (flag) => <LastChange of={entries.find(({ target }) => target?.id === flag.flag_key)} />,
        },
        { head: "State", layout: "fit", cell: (flag) => <FlagSwitch flag={flag} onChanged={flags.reload} /> },
      ]}
      form={(close) => <NewFlag onDone={flags.reload} onClose={close} />}
    />
  );
}

const EXAMPLE = { flag_key: "new-checkout", enabled: true, description: "Checkout in one step" };

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
  return (
    <DataForm
      title="New flag"
      submit="Create flag"
      operation="gate.save"
      fields={[
        {
          name: "flag_key",
          label: "Key",
          placeholder: "new-checkout",
          required: true,
          mono: true,
          hint: "The key that programs evaluate.",
        },
        { name: "description", hint: "" },
        "enabled",
      ]}
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}
