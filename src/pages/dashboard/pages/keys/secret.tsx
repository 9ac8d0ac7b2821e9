import { useState } from "preact/hooks";
import { copyText } from "../../core/copy.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";

/** A secret, shown this once. Escape asks whether it has been kept. */
export function Secret({ title, secret, onKept }: { title: string; secret: string; onKept: () => void }) {
  const [asks, setAsks] = useState(false);
  return (
    <Dialog title={title} onClose={() => (asks ? onKept() : setAsks(true))}>
      <div class="secret">
        <p class="note">
          {asks
            ? "Close it without having kept the secret? Nobody can show it again. Press Escape again to close."
            : "This is the only time that it is shown. Keep it now, in a password manager or a secret store."}
        </p>
        <div class="code">
          <pre data-secret>{secret}</pre>
        </div>
        <div class="actions">
          <Button icon="copy" onClick={() => copyText(secret, "Secret")}>
            Copy
          </Button>
          <Button kind="primary" onClick={onKept}>
            I have kept it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
