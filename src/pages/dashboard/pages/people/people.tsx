import type { Person } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { count } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { href, place } from "../../core/route.ts";
import { ROLES } from "../../core/session.ts";
import { Button } from "../../ui/button.tsx";
import { openDialog } from "../../ui/dialog.tsx";
import { type Filter, filterValue, ListPage } from "../../ui/list.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { showLink } from "./link.tsx";
import { PersonPage } from "./person.tsx";
import { PersonForm } from "./person-form.tsx";
import { methodName, PersonState, rolesOf } from "./person-words.tsx";
import { RolesDialog } from "./roles.tsx";

/** The list of people, or one person. */
export function PeoplePage() {
  const [id] = place.value.rest;
  return id === undefined ? <PeopleList /> : <PersonPage key={id} id={id} />;
}

const FILTERS: readonly Filter[] = [
  {
    name: "status",
    label: "State",
    options: [["", "All"], ...["active", "invited", "disabled"].map((status) => [status, status] as const)],
  },
  {
    name: "role",
    label: "Role",
    asSelect: true,
    options: [["", "Any role"], ...ROLES.map((role) => [role, role] as const)],
  },
];

const EXAMPLE = { email: "ann@example.com", name: "Ann", role: "editor" } as const;

function PeopleList() {
  const [status, role] = FILTERS.map(filterValue);
  const list = useList("people.list", "people", ["people"], {
    keyOf: ({ person_id }) => person_id,
    query: { status, role },
  });
  return (
    <ListPage
      title="People"
      label="People"
      lead="Everyone logs in as themselves, with a role that says what they may do."
      request={requestOf("people.list", {})}
      actions={
        <Button onClick={() => openDialog((close) => <RolesDialog onClose={close} />)}>
          What roles may do
        </Button>
      }
      create={["Invite", "people.create"]}
      filters={FILTERS}
      list={list}
      none={{
        icon: "people",
        title: "Nobody here",
        request: requestOf("people.create", { body: EXAMPLE }),
        text: "Invite the people of your team: they log in with a passkey or by single sign-on instead of sharing keys.",
      }}
      href={({ person_id }) => href(["people", person_id])}
      columns={COLUMNS}
      form={(close) => (
        <PersonForm
          of={null}
          onClose={close}
          onDone={(person) => {
            close();
            list.reload();
            showLink(person.email, "invitation_url" in person ? person.invitation_url : null);
          }}
        />
      )}
    />
  );
}

const COLUMNS: readonly Column<Person>[] = [
  {
    head: "Person",
    cell: ({ name, email }) => name ?? email,
    sub: ({ name, email, role, projects }) => (
      <>
        {name === null ? null : email}
        <span class="narrow">
          {name === null ? "" : " · "}
          {rolesOf({ role, projects })}
        </span>
      </>
    ),
  },
  {
    head: "Role",
    cell: rolesOf,
    sub: ({ projects, from_file }) => (
      <>
        {projects === "all" ? null : `in ${count(projects.length, "project")} `}
        {from_file ? <span class="tag">configuration file</span> : null}
      </>
    ),
    layout: "wide",
  },
  {
    head: "Logs in with",
    cell: ({ login_methods }) =>
      login_methods.length === 0 ? "–" : login_methods.map(methodName).join(", "),
    layout: "wide",
  },
  { head: "Last seen", cell: ({ last_seen_at }) => <Ago at={last_seen_at} />, layout: "wide" },
  { head: "State", cell: (person) => <PersonState of={person} />, layout: "fit" },
];
