import { copyText } from "../../core/copy.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, openDialog } from "../../ui/dialog.tsx";

/** Shows the link of an invitation once; without one, the server has sent it by e-mail. */
export function showLink(email: string, url: string | null): void {
  if (url === null) toast(`Invitation sent to ${email}`);
  else openDialog((close) => <InvitationLink email={email} url={url} onClose={close} />);
}

function InvitationLink({ email, url, onClose }: { email: string; url: string; onClose: () => void }) {
  return (
    <Dialog title={`Invitation for ${email}`} onClose={onClose}>
      <div class="secret">
        <p class="note">
          Send this link to {email} over a channel that you trust: whoever opens it first becomes this person.
          It works once, within 7 days, and is not shown again.
        </p>
        <div class="code">
          <pre data-secret>{url}</pre>
        </div>
        <div class="actions">
          <Button kind="primary" icon="copy" onClick={() => copyText(url, "Link")}>
            Copy link
          </Button>
          <Button onClick={onClose}>Done</Button>
        </div>
      </div>
    </Dialog>
  );
}
