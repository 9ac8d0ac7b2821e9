import { useEffect, useState } from "preact/hooks";
import type { RelaySecret } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { copyText } from "../../core/copy.ts";
import { showError, whyNot } from "../../core/session.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { DateTime } from "../../ui/time.tsx";

/** The project's signing secret, for receivers. It is not cached like the data of other pages. */
export function SigningSecret({ onClose }: { onClose: () => void }) {
  const [secret, setSecret] = useState<RelaySecret | null>(null);
  const reason = whyNot("relay.secret.reveal");
  const reveal = async (): Promise<void> => setSecret(await call("relay.secret.reveal", {}));
  useEffect(() => {
    if (reason === null) reveal().catch(showError);
  }, []);
  const rotate = async (): Promise<void> => {
    await call("relay.secret.rotate", { body: {} });
    toast("Deliveries are signed with both secrets for 24 hours");
    await reveal();
  };
  return (
    <Dialog title="Signing secret" onClose={onClose}>
      {reason === null ? null : <p class="quiet">{reason}.</p>}
      {secret === null ? null : (
        <div class="secret">
          <p class="note">
            Receivers verify deliveries with this secret and a Standard Webhooks library.
            {secret.previous.map(({ expires_at }) => (
              <span key={expires_at}>
                {" "}
                Deliveries are also signed with the previous secret until <DateTime at={expires_at} />.
              </span>
            ))}
          </p>
          <div class="code">
            <pre data-secret>{secret.secret}</pre>
          </div>
          <div class="actions">
            <Button icon="copy" onClick={() => copyText(secret.secret, "Secret")}>
              Copy
            </Button>
            <Button kind="danger" operation="relay.secret.rotate" onClick={rotate}>
              Rotate
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  );
}
