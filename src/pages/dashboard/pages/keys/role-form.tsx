import type { KeyRole } from "../../../../client/generated/api.ts";
import { DataForm } from "../../ui/form.tsx";
import { TEXT_LINES } from "../../ui/kinds.ts";
import { type FormProps, NameFirst } from "../../ui/name-first.tsx";

/** Creates a role: asks for its name, then for its permissions. */
export function RoleForm(form: FormProps) {
  return (
    <NameFirst
      title="New role"
      operation="keys.roles.save"
      placeholder="editor"
      hint="Keys have the role by this name."
      onClose={form.onClose}
    >
      {(name) => <RoleSettings name={name} of={null} {...form} />}
    </NameFirst>
  );
}

/** Saves the permissions of a role. `of`: null for a new one. */
export function RoleSettings({
  name,
  of,
  onClose,
  onDone,
}: FormProps & { readonly name: string; readonly of: KeyRole | null }) {
  const { description = null, permissions = [] } = of ?? {};
  return (
    <DataForm
      title={name}
      submit="Save"
      operation="keys.roles.save"
      params={{ name }}
      start={{ description, permissions }}
      fields={[
        { name: "description", hint: "" },
        {
          name: "permissions",
          kind: TEXT_LINES,
          rows: 8,
          mono: true,
          required: false,
          placeholder: "documents.read",
          hint: "One per line. Keys that have the role get them with their next request.",
        },
      ]}
      done="Role saved"
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}
