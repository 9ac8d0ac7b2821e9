import type { KeyItem } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { toast } from "../../core/toasts.ts";
import { DataForm } from "../../ui/form.tsx";
import { LINES } from "../../ui/kinds.ts";
import { BEARER_PREFIX, limitFields, withUses } from "./key-limits.tsx";

/** Edits a key; its secret stays the same. Unchanged uses are not sent: the key may have been used in the meantime. */
export function EditKey(props: { of: KeyItem; onDone: () => void; onClose: () => void }) {
  const { of: key, onDone, onClose } = props;
  return (
    <DataForm
      title={`Edit ${key.name}`}
      submit="Save"
      operation="keys.patch"
      params={{ id: key.id }}
      of={key}
      fields={[
        { name: "name", hint: "" },
        { name: "scopes", kind: LINES, mono: true, required: true, hint: "One per line." },
        ...limitFields(key.prefix === BEARER_PREFIX),
        { name: "environment", placeholder: "live", hint: "" },
      ]}
      adapt={withUses}
      done={`${key.name} updated`}
      onDone={onDone}
      onClose={onClose}
    />
  );
}

/** Pauses or resumes a key. */
export async function setEnabled({ id, name }: KeyItem, enabled: boolean): Promise<void> {
  await call("keys.patch", { params: { id }, body: { enabled } });
  toast(enabled ? `${name} resumed` : `${name} paused`);
}
