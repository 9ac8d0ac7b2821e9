import { logOut } from "../core/login.ts";
import { passkeyProblem } from "../core/passkeys.ts";
import { loginMethods, session } from "../core/session.ts";
import { confirmByPasskey, confirmByProvider, settle, waiting } from "../core/step-up.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Ago } from "../ui/time.tsx";

/** Asks for another login before a dangerous action, which continues after it. */
export function StepUp() {
  const methods = new Set(waiting.value.flatMap((request) => request.methods));
  const hasPasskey = methods.has("passkey") && passkeyProblem() === null;
  const providers = methods.has("oidc") ? loginMethods.value.filter(({ type }) => type === "oidc") : [];
  return (
    <Dialog title="Confirm that it is you" onClose={() => settle(false)}>
      <div class="prose">
        <p>
          You logged in <Ago at={session.value?.authenticated_at} />. This action requires a login within the
          last 15 minutes, so that nobody else can do it at your unlocked screen.
        </p>
        {hasPasskey || providers.length > 0 ? null : (
          <p class="note">
            You have no way to confirm it here. Log out and log in again, or add a passkey to your profile
            within 15 minutes of a login.
          </p>
        )}
      </div>
      <footer class="actions ending">
        <Button onClick={() => settle(false)}>Cancel</Button>
        {providers.map(({ name, url = "" }) => (
          <Button key={url} onClick={() => confirmByProvider(url)}>
            Confirm with {name ?? "single sign-on"}
          </Button>
        ))}
        {hasPasskey ? (
          <Button kind="primary" icon="passkey" onClick={confirmByPasskey}>
            Use a passkey
          </Button>
        ) : null}
        {hasPasskey || providers.length > 0 ? null : (
          <Button
            kind="primary"
            onClick={() => {
              settle(false);
              return logOut();
            }}
          >
            Log out
          </Button>
        )}
      </footer>
    </Dialog>
  );
}
