import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { OperationName } from "../../../client/api.ts";
import { Dialog, Form } from "./dialog.tsx";
import { TextField } from "./field.tsx";

/** What the form of a new resource is told. */
export interface FormProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Creates a resource that has its name in its address: asks for the name, then shows the form of the rest. */
export function NameFirst({
  title,
  operation,
  placeholder,
  hint,
  onClose,
  children,
}: {
  readonly title: string;
  readonly operation: OperationName;
  readonly placeholder: string;
  readonly hint: string;
  readonly onClose: () => void;
  readonly children: (name: string) => ComponentChildren;
}) {
  const [name, setName] = useState("");
  const [isNamed, setNamed] = useState(false);
  if (isNamed) return <>{children(name)}</>;
  return (
    <Dialog title={title} onClose={onClose}>
      <Form submit="Continue" operation={operation} onCancel={onClose} onSubmit={async () => setNamed(true)}>
        <TextField
          name="name"
          label="Name"
          value={name}
          onInput={setName}
          required
          placeholder={placeholder}
          hint={hint}
        />
      </Form>
    </Dialog>
  );
}
