import type { KeyRole } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { useList } from "../../core/lists.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { ListPage } from "../../ui/list.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { RoleView } from "./role.tsx";
import { RoleForm } from "./role-form.tsx";
import { Tags } from "./tags.tsx";

const EXAMPLE = { permissions: ["documents.read", "documents.write"] };

/** Roles of keys, with details of the selected one. */
export function RolesPage() {
  const { query, rest } = place.value;
  const [, name] = rest;
  const list = useList("keys.roles.list", "roles", ["keys"], { keyOf: ({ name }) => name });
  return (
    <ListPage
      title="Roles"
      request={requestOf("keys.roles.list", {})}
      create={["New role", "keys.roles.save"]}
      none={{
        icon: "keys",
        title: "No roles yet",
        request: requestOf("keys.roles.save", { params: { name: "editor" }, body: EXAMPLE }),
        text: "A role is a set of permissions for the keys of your customers. A change applies to all keys that have it.",
      }}
      list={list}
      label="Roles"
      href={({ name }) => href(["keys", "roles", name])}
      columns={COLUMNS}
      selected={name}
      detail={(selected) => <RoleView key={selected} name={selected} onChange={list.reload} />}
    >
      {query.has("new") ? (
        <RoleForm onClose={() => setQuery({ new: undefined })} onDone={list.reload} />
      ) : null}
    </ListPage>
  );
}

const COLUMNS: readonly Column<KeyRole>[] = [
  {
    head: "Role",
    cell: ({ name, description }) => (
      <>
        <code>{name}</code>
        <span class="sub">{description}</span>
      </>
    ),
  },
  { head: "Permissions", cell: ({ permissions }) => <Tags of={permissions} />, layout: "wide" },
  { head: "Changed", cell: ({ updated_at }) => <Ago at={updated_at} />, layout: "fit" },
];
