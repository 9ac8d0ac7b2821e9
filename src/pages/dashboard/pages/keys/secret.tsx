import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { copyText } from "../../core/copy.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, openDialog } from "../../ui/dialog.tsx";

/** Opens a secret that is shown once. */
export function openSecret(title: string, secret: string, onSaved?: () => void): void {
  openDialog((close) => <Secret title={title} secret={secret} onSaved={onSaved ?? close} />);
}

interface SecretProps {
  readonly title: string;
  readonly secret: string;
  readonly onSaved: () => void;
  readonly children?: ComponentChildren;
}

/** Shows a secret once. Escape asks for confirmation if the secret has not been saved. */
export function Secret({ title, secret, onSaved, children }: SecretProps) {
  const [isConfirming, setConfirming] = useState(false);
  return (
    <Dialog title={title} onClose={() => (isConfirming ? onSaved() : setConfirming(true))}>
      <div class="secret">
        <p class="note">
          {isConfirming
            ? "Close without saving the secret? It cannot be shown again. Press Escape again to close."
            : "This secret is shown only once. Save it now in a password manager or secret store."}
        </p>
        {children}
        <div class="code">
          <pre data-secret>{secret}</pre>
        </div>
        <div class="actions">
          <Button icon="copy" onClick={() => copyText(secret, "Secret")}>
            Copy
          </Button>
          <Button kind="primary" onClick={onSaved}>
            I have saved it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
