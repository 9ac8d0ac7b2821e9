import type { KeysImportBody } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { DataForm } from "../../ui/form.tsx";
import { JSON_VALUE } from "../../ui/kinds.ts";

const EXAMPLE = `[{"hash": "b413f47d…", "name": "Warehouse",
  "scopes": ["orders:read"], "owner_id": "acme"}]`;

/** Imports keys of another service by the hashes of their secrets. */
export function KeysImportForm({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  return (
    <DataForm
      title="Import keys"
      submit="Import"
      operation="keys.import"
      fields={[
        {
          name: "keys",
          label: "Keys, as a JSON array",
          kind: JSON_VALUE,
          rows: 10,
          placeholder: EXAMPLE,
          hint: "Up to 100 keys with the SHA-256 hash of each secret. Your customers keep their secrets. A hash that the account already has changes nothing.",
        },
      ]}
      send={(body) => call("keys.import", { body: body as KeysImportBody })}
      done="Keys imported"
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}
