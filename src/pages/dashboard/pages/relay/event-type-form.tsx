import type { RelayEventType } from "../../../../client/generated/api.ts";
import { DataForm } from "../../ui/form.tsx";
import { type FormProps, NameFirst } from "../../ui/name-first.tsx";

/** Creates an event type: asks for its name, then for what it describes. */
export function EventTypeForm(form: FormProps) {
  return (
    <NameFirst
      title="New event type"
      operation="relay.event_types.save"
      placeholder="invoice.paid"
      hint="The event_type of its messages."
      onClose={form.onClose}
    >
      {(name) => <EventTypeSettings name={name} of={null} {...form} />}
    </NameFirst>
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
