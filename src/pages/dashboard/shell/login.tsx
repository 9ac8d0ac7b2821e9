import { logIn, logInNote } from "../core/session.ts";
import { Form } from "../ui/dialog.tsx";
import { TextField, textOf } from "../ui/field.tsx";
import { Mark } from "./nav.tsx";

/** The login page. */
export function LogIn() {
  return (
    <main class="log-in">
      <div class="panel">
        <Mark />
        <h1>Ninefold</h1>
        <p class="quiet">Log in with an API key. The browser stores a session cookie, not the key.</p>
        {logInNote.value === null ? null : (
          <p class="note" role="status">
            {logInNote.value}
          </p>
        )}
        <Form submit="Log in" changed={false} onSubmit={async (data) => logIn(textOf(data, "key") ?? "")}>
          <TextField name="key" label="API key" type="password" placeholder="sm_…" required mono />
        </Form>
        <p class="quiet small">
          No key? <code>ninefold dashboard</code> on the server prints a one-time login link.
        </p>
      </div>
    </main>
  );
}
