import { useState } from "preact/hooks";
import type { PortalLinkCreated } from "../../../../client/generated/api.ts";
import { copyText } from "../../core/copy.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { DataForm } from "../../ui/form.tsx";
import { DateTime } from "../../ui/time.tsx";

/** Creates a link with which a customer manages its endpoints, and shows it. */
export function PortalLink({ owner, onClose }: { owner: string | null; onClose: () => void }) {
  const [link, setLink] = useState<PortalLinkCreated | null>(null);
  if (link === null)
    return (
      <DataForm
        title="Portal link"
        submit="Create link"
        operation="relay.portal.create"
        start={owner === null ? {} : { owner_id: owner }}
        fields={[
          {
            name: "owner_id",
            label: "Owner",
            mono: true,
            placeholder: "acme",
            hint: "Your id of the customer.",
          },
          { name: "expires_in", label: "Expires in", placeholder: "24h", hint: "1m to 7d." },
          {
            name: "event_types",
            label: "Offered event types",
            placeholder: "order.paid, order.refunded",
            hint: "Separated by commas. Leave empty to let the customer enter them.",
          },
        ]}
        onDone={setLink}
        onClose={onClose}
      />
    );
  return (
    <Dialog title="Portal link" onClose={onClose}>
      <div class="secret">
        <p class="note">
          Anyone with this link can manage the endpoints of the customer until{" "}
          <DateTime at={link.expires_at} />.
        </p>
        <div class="code">
          <pre data-secret>{link.url}</pre>
        </div>
        <div class="actions">
          <Button icon="copy" onClick={() => copyText(link.url, "Link")}>
            Copy
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
