import { useState } from "preact/hooks";
import type { RelayEventType } from "../../../../client/generated/api.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/field.tsx";
import { DataForm } from "../../ui/form.tsx";

interface FormProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Creates an event type: asks for its name, then for what it describes. */
export function EventTypeForm({ onClose, onDone }: FormProps) {
  const [name, setName] = useState("");
  const [isNamed, setNamed] = useState(false);
  if (isNamed) return <EventTypeSettings name={name} of={null} onClose={onClose} onDone={onDone} />;
  return (
    <Dialog title="New event type" onClose={onClose}>
      <Form
        submit="Continue"
        operation="relay.event_types.save"
        onCancel={onClose}
        onSubmit={async () => setNamed(true)}
      >
        <TextField
          name="name"
          label="Name"
          value={name}
          onInput={setName}
          required
          placeholder="invoice.paid"
          hint="The event_type of its messages."
        />
      </Form>
    </Dialog>
  );
}

/** Saves what an event type describes. `of`: null for a new one. */
export function EventTypeSettings({
  name,
  of,
  onClose,
  onDone,
}: FormProps & { readonly name: string; readonly of: RelayEventType | null }) {
  const { description = null, schema = null, example = null, enforce = false } = of ?? {};
  return (
    <DataForm
      title={name}
      submit="Save"
      operation="relay.event_types.save"
      params={{ name }}
      start={{ description, schema, example, enforce }}
      fields={[
        { name: "description", hint: "For your customers." },
        { name: "schema", label: "JSON Schema", rows: 8, hint: "Leave empty to check nothing." },
        { name: "example", label: "Example, as JSON", rows: 4, hint: "Payload of test events." },
        { name: "enforce", label: "Reject messages that do not fit" },
      ]}
      done="Event type saved"
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}
