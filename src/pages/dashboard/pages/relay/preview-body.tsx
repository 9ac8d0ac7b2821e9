import { useState } from "preact/hooks";
import type { RelayEndpointItem, RelayPreview } from "../../../../client/generated/api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { DataForm } from "../../ui/form.tsx";

const START = { event_type: "order.paid", payload: { id: "o_17" } };

/** Shows the body that an endpoint would receive of a message, by its template or by another one. */
export function PreviewBody({ of, onClose }: { of: RelayEndpointItem; onClose: () => void }) {
  const [preview, setPreview] = useState<RelayPreview | null>(null);
  if (preview !== null)
    return (
      <Dialog title="Body of the request" onClose={onClose}>
        <pre>{preview.body}</pre>
        <div class="actions">
          <Button kind="primary" onClick={onClose}>
            Close
          </Button>
        </div>
      </Dialog>
    );
  return (
    <DataForm
      title={`Preview for ${of.name ?? of.endpoint_id}`}
      submit="Preview"
      operation="relay.endpoints.preview"
      params={{ endpoint_id: of.endpoint_id }}
      start={of.template === null ? START : { ...START, template: of.template }}
      fields={[
        { name: "event_type", label: "Event type", hint: "" },
        { name: "payload", label: "Payload, as JSON", rows: 6, hint: "" },
        {
          name: "template",
          label: "Template, as JSON",
          rows: 6,
          hint: "Leave empty for that of the endpoint. It is not saved.",
        },
      ]}
      onDone={setPreview}
      onClose={onClose}
    />
  );
}
