import { useState } from "preact/hooks";
import type { KeyRole } from "../../../../client/generated/api.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/field.tsx";
import { DataForm } from "../../ui/form.tsx";
import { TEXT_LINES } from "../../ui/kinds.ts";

interface FormProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Creates a role: asks for its name, then for its permissions. */
export function RoleForm({ onClose, onDone }: FormProps) {
  const [name, setName] = useState("");
  const [isNamed, setNamed] = useState(false);
  if (isNamed) return <RoleSettings name={name} of={null} onClose={onClose} onDone={onDone} />;
  return (
    <Dialog title="New role" onClose={onClose}>
      <Form
        submit="Continue"
        operation="keys.roles.save"
        onCancel={onClose}
        onSubmit={async () => setNamed(true)}
      >
        <TextField
          name="name"
          label="Name"
          value={name}
          onInput={setName}
          required
          placeholder="editor"
          hint="Keys have the role by this name."
        />
      </Form>
    </Dialog>
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
