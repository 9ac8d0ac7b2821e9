import { useId } from "preact/hooks";
import type { Person, PersonInvited, PersonProject } from "../../../../client/generated/api.ts";
import { accountRole, isAtLeast, projects, ROLES, type Role, session } from "../../core/session.ts";
import { Choice } from "../../ui/field.tsx";
import { DataForm } from "../../ui/form.tsx";
import { InlineSelect } from "../../ui/inline.tsx";
import { RoleNote } from "./roles.tsx";

interface PersonFormProps {
  /** Null to invite a new person. */
  readonly of: Person | null;
  readonly onDone: (person: Person | PersonInvited) => void;
  readonly onClose: () => void;
}

/** A role for the account, or roles in single projects. */
type Grant = Pick<Person, "role" | "projects">;

const NEW: Grant = { role: "editor", projects: "all" };

/** Invites or edits a person. */
export function PersonForm({ of: person, onDone, onClose }: PersonFormProps) {
  const isNew = person === null;
  const before: Grant = person === null ? NEW : { role: person.role, projects: person.projects };
  const isFixed = person?.from_file === true || person?.person_id === session.value?.person?.person_id;
  return (
    <DataForm
      title={isNew ? "Invite a person" : `Edit ${person.name ?? person.email}`}
      submit={isNew ? "Invite" : "Save"}
      operation={isNew ? "people.create" : "people.update"}
      params={{ person_id: person?.person_id ?? "" }}
      of={person}
      start={{ $access: before }}
      fields={[
        isNew ? { name: "email", label: "E-mail" } : null,
        { name: "name", required: false, hint: "Shown in place of the address. They can change it." },
        !isNew && isFixed ? (
          <p class="quiet small" key="fixed">
            {person.from_file
              ? "Role and projects of this person are those of the configuration file."
              : "Nobody changes their own role. Another admin or owner can."}
          </p>
        ) : (
          { name: "$access", control: AccessFields }
        ),
      ]}
      adapt={(body, get) => {
        const grant = get("$access") as Grant;
        const isSame = !isNew && JSON.stringify(grant) === JSON.stringify(before);
        return isSame || (!isNew && isFixed) ? body : { ...body, ...granted(grant) };
      }}
      disabled={(get) => (get("$access") as Grant).projects.length === 0}
      done={isNew ? undefined : `${person.name ?? person.email} updated`}
      onDone={onDone}
      onClose={onClose}
    />
  );
}

/** A grant as the API takes it: of a list of projects, the role is omitted. */
function granted({ role, projects: roles }: Grant): object {
  return roles === "all" ? { role, projects: "all" } : { projects: roles };
}

const REACH = [
  ["all", "Whole account"],
  ["some", "Single projects"],
] as const;

/** Chooses a role for the account, or roles in single projects. */
function AccessFields(props: { value: unknown; onChange: (value: unknown) => void }) {
  const id = useId();
  const { role, projects: roles } = props.value as Grant;
  const change = (grant: Grant): void => props.onChange(grant);
  const highest = accountRole();
  return (
    <div class="stack">
      <div class="field">
        <span class="small">
          <strong>Access to</strong>
        </span>
        <Choice
          label="Access to"
          options={REACH}
          value={roles === "all" ? "all" : "some"}
          onChange={(reach) =>
            change(
              reach === "all" ? { role: role ?? "editor", projects: "all" } : { role: null, projects: [] },
            )
          }
        />
      </div>
      {roles === "all" ? (
        <div class="field">
          <label for={id}>Role</label>
          <select
            id={id}
            value={role ?? ""}
            onChange={({ currentTarget: { value } }) => change({ role: value as Role, projects: "all" })}
          >
            {ROLES.map((option) => (
              <option key={option} value={option} disabled={!isAtLeast(highest, option)}>
                {isAtLeast(highest, option) ? option : `${option} (above your role)`}
              </option>
            ))}
          </select>
          <RoleNote role={role} />
        </div>
      ) : (
        <ProjectRoles of={roles} onChange={(next) => change({ role: null, projects: next })} />
      )}
    </div>
  );
}

/** Roles that people can have in single projects. */
const IN_PROJECT = [
  ["", "no access"],
  ...ROLES.filter((role) => role !== "owner").map((role) => [role, role] as const),
] as const;

function ProjectRoles(props: { of: readonly PersonProject[]; onChange: (roles: PersonProject[]) => void }) {
  const { of: roles, onChange } = props;
  return (
    <ul class="project-roles">
      {projects.value.map(({ id, name }) => (
        <li key={id}>
          <span>{name}</span>
          <InlineSelect
            label={`Role in ${name}`}
            options={IN_PROJECT}
            value={roles.find(({ project_id }) => project_id === id)?.role ?? ""}
            onInput={(role) => {
              const others = roles.filter(({ project_id }) => project_id !== id);
              const found = ROLES.find((option) => option === role);
              const chosen =
                found === undefined || found === "owner" ? [] : [{ project_id: id, role: found }];
              onChange([...others, ...chosen]);
            }}
          />
        </li>
      ))}
    </ul>
  );
}
