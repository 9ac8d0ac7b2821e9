import { useEffect, useState } from "preact/hooks";
import { logIn, sendLink } from "../core/login.ts";
import { cancelPasskey, hasAutofill, localhostUrl, passkeyProblem, usePasskey } from "../core/passkeys.ts";
import { logInNote, loginMethods } from "../core/session.ts";
import { providerUrl } from "../core/step-up.ts";
import { Button } from "../ui/button.tsx";
import { Form } from "../ui/dialog.tsx";
import { TextField, textOf } from "../ui/field.tsx";
import { Icon } from "../ui/icon.tsx";
import { Mark } from "./nav.tsx";

/** Last word of `autocomplete` of fields in which browsers suggest passkeys. */
const SUGGESTS = "webauthn";
/** An open request for suggested passkeys is replaced before its options expire after five minutes. */
const RENEWED_MS = 4 * 60_000;

/** The login page: the ways to log in that the server offers. */
export function LogIn() {
  const methods = loginMethods.value;
  const offers = (type: string): boolean => methods.some((method) => method.type === type);
  const hasPasskeys = offers("passkey") && passkeyProblem() === null;
  const others = methods.filter(({ type }) => type !== "key" && (type !== "passkey" || hasPasskeys));
  const [showsKey, showKey] = useState(false);
  const isKeyOpen = showsKey || others.length === 0;
  useEffect(() => {
    document.title = "Log in · Ninefold";
  }, []);
  return (
    <main class="log-in">
      <div class="panel">
        <Mark />
        <h1>Ninefold</h1>
        {others.length > 0 ? null : (
          <p class="quiet">Log in with an API key. The browser stores a session cookie, not the key.</p>
        )}
        {logInNote.value === null ? null : (
          <p class="note" role="status">
            {logInNote.value}
          </p>
        )}
        {hasPasskeys ? <PasskeyButton /> : null}
        {methods.map(({ type, name, url }) =>
          type === "oidc" && url !== undefined ? (
            <a class="button" key={url} href={providerUrl(url)}>
              Log in with {name ?? "single sign-on"}
            </a>
          ) : null,
        )}
        {offers("header") ? (
          <Button onClick={() => logIn("", { proxy: true })}>
            {methods.find(({ type }) => type === "header")?.name ?? "Log in through the proxy"}
          </Button>
        ) : null}
        {offers("email") ? <EmailForm /> : null}
        {offers("passkey") && !hasPasskeys ? <WhyNoPasskeys /> : null}
        {isKeyOpen ? (
          <KeyForm autocomplete={hasPasskeys ? `current-password ${SUGGESTS}` : "off"} />
        ) : (
          <Button kind="quiet" icon="keys" onClick={() => showKey(true)}>
            Use an API key
          </Button>
        )}
        {hasPasskeys ? <Autofill key={`${isKeyOpen}`} /> : null}
      </div>
    </main>
  );
}

/** Logs in by a passkey that the browser lets the user choose. */
function PasskeyButton() {
  return (
    <Button
      kind="primary"
      icon="passkey"
      onClick={async () => logIn("/passkey", { credential: await usePasskey({ isAutofill: false }) })}
    >
      Log in with a passkey
    </Button>
  );
}

/** Suggests passkeys in the fields of the page, as long as they are shown. */
function Autofill() {
  useEffect(() => {
    let isOpen = true;
    let isAsked = false;
    const ask = async (): Promise<void> => {
      const fields = document.querySelectorAll(`input[autocomplete$="${SUGGESTS}"]`);
      if (fields.length === 0 || !(await hasAutofill()) || !isOpen) return;
      isAsked = true;
      try {
        const credential = await usePasskey({ isAutofill: true });
        if (isOpen) await logIn("/passkey", { credential });
      } catch {
        // Nothing was chosen, or the passkey is not known: its button says why.
      }
    };
    void ask();
    const timer = setInterval(ask, RENEWED_MS);
    return () => {
      isOpen = false;
      clearInterval(timer);
      if (isAsked) void cancelPasskey();
    };
  }, []);
  return null;
}

/** Why passkeys do not work at this address, and where they do. */
export function WhyNoPasskeys({ reason = passkeyProblem() }: { reason?: string | null }) {
  const url = localhostUrl();
  return (
    <p class="note small">
      <Icon name="passkey" /> {reason ?? "Passkeys do not work here."}
      {url === null ? null : (
        <>
          {" "}
          <a href={url}>Open it at localhost</a>.
        </>
      )}
    </p>
  );
}

/** Sends a login link by e-mail. */
function EmailForm() {
  const [sentTo, setSentTo] = useState<string | null>(null);
  if (sentTo !== null)
    return (
      <p class="note" role="status">
        If {sentTo} is the address of a person here, a link is on its way. Open it in this browser within 15
        minutes.
      </p>
    );
  return (
    <Form
      submit="Send a login link"
      kind="plain"
      changed={false}
      onSubmit={async (data) => {
        const email = textOf(data, "email") ?? "";
        await sendLink(email);
        setSentTo(email);
      }}
    >
      <TextField name="email" label="E-mail" type="email" autocomplete={`username ${SUGGESTS}`} required />
    </Form>
  );
}

function KeyForm({ autocomplete }: { autocomplete: string }) {
  return (
    <>
      <Form
        submit="Log in"
        changed={false}
        onSubmit={async (data) => logIn("", { key: textOf(data, "key") ?? "" })}
      >
        <TextField
          name="key"
          label="API key"
          type="password"
          placeholder="sm_…"
          autocomplete={autocomplete}
          required
          mono
        />
      </Form>
      <p class="quiet small">
        No key? <code>ninefold dashboard</code> on the server prints a one-time login link.
      </p>
    </>
  );
}
