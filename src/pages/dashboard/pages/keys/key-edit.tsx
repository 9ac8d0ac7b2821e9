import type { KeyItem } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { BEARER_PREFIX, LimitFields, limitsOf, wordsOf } from "./key-limits.tsx";

/** Edits a key; its secret stays the same. */
export function EditKey(props: { of: KeyItem; onDone: () => void; onClose: () => void }) {
  const { of: key, onDone, onClose } = props;
  const isBearer = key.prefix === BEARER_PREFIX;
  return (
    <Dialog title={`Edit ${key.name}`} onClose={onClose}>
      <Form
        submit="Save"
        onCancel={onClose}
        onSubmit={async (data) => {
          const scopes = wordsOf(textOf(data, "scopes") ?? "");
          const { uses, ...limits } = limitsOf(data, isBearer);
          const body = {
            name: textOf(data, "name") ?? "",
            scopes,
            environment: textOf(data, "environment") ?? null,
            ...limits,
            // Unchanged uses are not sent: the key may have been used since the form was opened.
            ...(hasSameUses(data, key) ? {} : { uses }),
          };
          await call("keys.patch", { params: { id: key.id }, body });
          toast(`${key.name} updated`);
          onDone();
          onClose();
        }}
      >
        <TextField name="name" label="Name" value={key.name} required />
        <TextField
          name="scopes"
          label="Scopes"
          mono
          rows={2}
          value={key.scopes.join("\n")}
          required
          hint="One per line."
        />
        <LimitFields of={key} isBearer={isBearer} />
        <TextField name="environment" label="Environment" value={key.environment ?? ""} placeholder="live" />
      </Form>
    </Dialog>
  );
}

/** Whether the fields for uses are unchanged since the form was opened. */
function hasSameUses(data: FormData, { uses }: KeyItem): boolean {
  const { refill } = uses ?? {};
  const before = { remaining: uses?.remaining, every: refill?.every, amount: refill?.amount };
  return Object.entries(before).every(([name, value]) => textOf(data, name) === value?.toString());
}

/** Pauses or resumes a key. */
export async function setEnabled({ id, name }: KeyItem, enabled: boolean): Promise<void> {
  await call("keys.patch", { params: { id }, body: { enabled } });
  toast(enabled ? `${name} resumed` : `${name} paused`);
}
