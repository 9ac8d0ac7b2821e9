import type { KeyItem } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { DAY_MS, formatNumber } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { serverNow } from "../../core/now.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { projectName, projects } from "../../core/session.ts";
import { useSettled } from "../../core/settled.ts";
import { Button } from "../../ui/button.tsx";
import { lazy } from "../../ui/lazy.tsx";
import { type Filter, filterValue, ListPage } from "../../ui/list.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { KeyPage, revokeKey } from "./key.tsx";
import { KeyForm } from "./key-form.tsx";
import { KeyState, maskedSecret, stateOf } from "./key-state.tsx";
import { KeysImportForm } from "./keys-import-form.tsx";
import { openSecret } from "./secret.tsx";
import { Tags } from "./tags.tsx";

/** The segment of the roles, which no key has as its id. */
const ROLES = "roles";
const RolesPage = lazy(async () => (await import("./roles.tsx")).RolesPage);

/** The list of keys, one key, or the roles. */
export function KeysPage() {
  const [id] = place.value.rest;
  if (id === ROLES) return <RolesPage />;
  return id === undefined ? <KeyList /> : <KeyPage key={id} id={id} />;
}

function KeyList() {
  const filters = filtersOf();
  const [typed = "", state = "", use = "", project = ""] = filters.map(filterValue);
  const text = useSettled(typed).toLowerCase();
  const wanted = { text, state, use, project };
  const isFiltered = Object.values(wanted).some((value) => value !== "");
  const list = useList("keys.list", "keys", ["keys"], {
    keyOf: ({ id }) => id,
    filter: isFiltered ? { key: JSON.stringify(wanted), matches: matching(wanted) } : undefined,
  });
  return (
    <ListPage
      title="Keys"
      label="Keys"
      request={requestOf("keys.list", {})}
      actions={
        <Button operation="keys.import" onClick={() => setQuery({ import: "1" })}>
          Import keys…
        </Button>
      }
      create={["New key", "keys.create"]}
      filters={filters}
      list={list}
      none={{
        icon: "keys",
        title: "No keys here",
        request: requestOf("keys.create", { body: EXAMPLE }),
        text: "A key gives a program access to the API with the scopes that it needs. Create one key per program.",
      }}
      href={({ id }) => href(["keys", id])}
      columns={columnsOf(list.reload)}
      form={(close) => (
        <KeyForm
          onClose={close}
          onCreated={(secret) => {
            close();
            openSecret("Key secret", secret);
            list.reload();
          }}
        />
      )}
    >
      {place.value.query.has("import") ? (
        <KeysImportForm onDone={list.reload} onClose={() => setQuery({ import: undefined })} />
      ) : null}
    </ListPage>
  );
}

/** Days without a use after which a key counts as unused. */
const UNUSED_DAYS = 90;
/** Keys of the account, which have no project. */
const ACCOUNT = "account";

function filtersOf(): readonly Filter[] {
  return [
    { name: "q", label: "Search keys" },
    {
      name: "state",
      label: "State",
      options: [
        ["", "All"],
        ...["active", "paused", "expired", "revoked"].map((state) => [state, state] as const),
      ],
    },
    {
      name: "use",
      label: "Use",
      options: [
        ["", "Any use"],
        ["used", "Used"],
        ["unused", `Unused for ${UNUSED_DAYS} days`],
      ],
    },
    {
      name: "project",
      label: "Project",
      asSelect: true,
      options: [
        ["", "All projects"],
        [ACCOUNT, "Account"],
        ...projects.value.map(({ id, name }) => [id, name] as const),
      ],
    },
  ];
}

/** Whether a key passes the filters; an empty one is passed by all. */
function matching(filters: Record<"text" | "state" | "use" | "project", string>): (key: KeyItem) => boolean {
  const { text, state, use, project } = filters;
  return (key) => {
    const { name, masked_secret, last4, owner_id, last_used_at, project_id } = key;
    const isUsed = last_used_at !== null && serverNow() - Date.parse(last_used_at) < UNUSED_DAYS * DAY_MS;
    return (
      `${name} ${masked_secret} ${last4} ${owner_id ?? ""}`.toLowerCase().includes(text) &&
      (state === "" || stateOf(key) === state) &&
      (use === "" || isUsed === (use === "used")) &&
      (project === "" || (project_id ?? ACCOUNT) === project)
    );
  };
}

const EXAMPLE = { name: "Warehouse", prefix: "sm", scopes: ["gate:read", "relay:write"] };

function columnsOf(onRevoked: () => void): readonly Column<KeyItem>[] {
  return [
    {
      head: "Name",
      cell: ({ name }) => name,
      sub: (key) => (
        <>
          {key.owner_id} <code class="narrow">{maskedSecret(key)}</code>
        </>
      ),
    },
    {
      head: "Secret",
      cell: (key) => <code>{maskedSecret(key)}</code>,
      layout: "wide",
    },
    { head: "Scopes", cell: ({ scopes }) => <Tags of={scopes} />, layout: "wide" },
    {
      head: "Project",
      cell: ({ project_id }) => (project_id === null ? "account" : projectName(project_id)),
      layout: "wide",
    },
    {
      head: "Uses left",
      width: 6.5,
      cell: ({ uses }) => (uses === null ? "–" : formatNumber(uses.remaining)),
      layout: "fit wide",
    },
    { head: "Last used", cell: ({ last_used_at }) => <Ago at={last_used_at} />, layout: "wide" },
    { head: "State", cell: (key) => <KeyState of={key} />, layout: "fit" },
    {
      head: "Actions",
      width: 5,
      layout: "fit",
      cell: (key) => (
        <Button
          icon="delete"
          kind="quiet"
          operation="keys.revoke"
          label={`Revoke ${key.name}`}
          disabled={key.revoked_at !== null}
          onClick={() => revokeKey(key, onRevoked)}
        />
      ),
    },
  ];
}
