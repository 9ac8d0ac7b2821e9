import { useEffect, useState } from "preact/hooks";
import type { InvitationView } from "../../../client/generated/api.ts";
import { Failure } from "../core/api.ts";
import { acceptInvitation } from "../core/login.ts";
import { createPasskey, passkeyProblem } from "../core/passkeys.ts";
import { useCall } from "../core/resource.ts";
import { loginMethods, session } from "../core/session.ts";
import { providerUrl } from "../core/step-up.ts";
import { toast } from "../core/toasts.ts";
import { Form } from "../ui/dialog.tsx";
import { Loading, Problem } from "../ui/feedback.tsx";
import { TextField, textOf } from "../ui/field.tsx";
import { Facts } from "../ui/page.tsx";
import { DateTime } from "../ui/time.tsx";
import { WhyNoPasskeys } from "./login.tsx";
import { Mark } from "./nav.tsx";

/** The page of an invitation: it creates the passkey of the person and logs them in. */
export function InvitationPage({ token }: { token: string }) {
  const invitation = useCall("session.invitation.read", { body: { token } });
  const { data, failure } = invitation;
  useEffect(() => {
    document.title = "Invitation · Ninefold";
  }, []);
  return (
    <main class="log-in">
      <div class="panel">
        <Mark />
        {data !== null ? (
          <Invited of={data} token={token} onFailed={invitation.reload} />
        ) : (
          <>
            <h1>Invitation</h1>
            {failure === null ? <Loading rows={3} /> : <Invalid of={failure} />}
          </>
        )}
      </div>
    </main>
  );
}

const UNAUTHORIZED = 401;

/** An invitation that is unknown, used, replaced or expired; the server does not say which. */
function Invalid({ of: failure }: { of: Failure }) {
  if (failure.status !== UNAUTHORIZED) return <Problem failure={failure} />;
  return (
    <>
      <p class="note" role="alert">
        This link does not work any more: it has been used, was replaced by a newer one, or has expired.
      </p>
      <p>Ask the person who invited you for a new link.</p>
      <a class="button" href="#/">
        Go to the login page
      </a>
    </>
  );
}

function Invited(props: { of: InvitationView; token: string; onFailed: () => void }) {
  const { of: invitation, token, onFailed } = props;
  const { email, name, account, role, expires_at, options, passkeys_unavailable } = invitation;
  const [isDone, setDone] = useState(false);
  const problem = passkeys_unavailable ?? passkeyProblem();
  const current = session.value?.person;
  const providers = loginMethods.value.filter(({ type }) => type === "oidc");
  const accept = async (data: FormData): Promise<void> => {
    const entered = textOf(data, "name");
    try {
      const credential = await createPasskey(options ?? {});
      setDone(true);
      await acceptInvitation({
        token,
        credential,
        ...(entered === undefined ? {} : { name: entered }),
      });
    } catch (error) {
      setDone(false);
      // The options of a passkey work once.
      if (error instanceof Failure && error.status !== UNAUTHORIZED) onFailed();
      throw error;
    }
    toast("Welcome. From now on you log in with your passkey.");
  };
  return (
    <>
      <h1>Join {account}</h1>
      <p class="quiet">
        A passkey replaces a password: you confirm a login with your fingerprint, face, PIN or security key.
      </p>
      <Facts
        of={[
          ["E-mail", email],
          ["Role", role ?? "in single projects"],
          ["Valid until", <DateTime key="e" at={expires_at} />],
        ]}
      />
      {current === undefined ? null : (
        <p class="note small">
          You are logged in as {current.email}. Accept only your own invitation: who creates the passkey
          becomes {email}.
        </p>
      )}
      {problem === null && options !== null ? (
        <Form submit="Create passkey" changed={false} disabled={isDone} onSubmit={accept}>
          <TextField
            name="name"
            label="Your name"
            value={name ?? ""}
            autocomplete="name"
            hint="Shown to the others of the account, in place of your e-mail address."
          />
        </Form>
      ) : (
        <WhyNoPasskeys reason={problem} />
      )}
      {providers.map(({ name: provider, url = "" }) => (
        <a class="button" key={url} href={providerUrl(url)}>
          Log in with {provider ?? "single sign-on"} instead
        </a>
      ))}
    </>
  );
}
