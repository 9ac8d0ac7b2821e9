import { useState } from "preact/hooks";
import { call } from "../../core/api.ts";
import { figure } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { forget, may, session } from "../../core/session.ts";
import { shortcutsOn, THEMES, theme } from "../../core/theme.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, Dialog, Form } from "../../ui/dialog.tsx";
import { CheckField, Choice, TextField, textOf } from "../../ui/field.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Moment } from "../../ui/time.tsx";
import { Secret } from "../keys/secret.tsx";
import { Accounts } from "./accounts.tsx";
import { Options } from "./options.tsx";

/** The account, how the console looks, and for the operator all accounts. */
export function SettingsPage() {
  return (
    <Page title="Settings">
      <div class="stack">
        <AccountPanel />
        <Panel title="This browser">
          <div class="prose">
            <div class="actions">
              <span aria-hidden="true">Theme</span>
              <Choice
                label="Theme"
                value={theme.value}
                options={THEMES.map((one) => [one, one])}
                onChange={(one) => {
                  theme.value = one;
                }}
              />
            </div>
            <CheckField
              label="Single keys as shortcuts; ? shows them"
              checked={shortcutsOn.value}
              onChange={(on) => {
                shortcutsOn.value = on;
              }}
            />
          </div>
        </Panel>
        <KeyPanel />
        {session.value?.operator ? <Accounts /> : null}
        {session.value?.operator ? <Options /> : null}
      </div>
    </Page>
  );
}

function AccountPanel() {
  const [ending, setEnding] = useState(false);
  const balance = useResource(may("meter:read") ? "own balance" : null, ["meter"], (signal) =>
    call("meter.own.balance", {}, signal),
  );
  const who = session.value;
  if (!who) return null;
  return (
    <Panel
      title="Account"
      actions={
        <Button scope="*" onClick={() => setEnding(true)}>
          End all sessions…
        </Button>
      }
    >
      <Facts
        of={[
          ["E-mail", who.email],
          ["Tier", who.tier],
          ["Credits", who.tier === "unlimited" ? "unlimited" : figure(balance.data?.balance ?? 0)],
          ["Logged in with", who.key_name ?? "the platform key"],
          ["Session ends", <Moment key="e" at={who.expires_at} />],
          [
            "Account id",
            <code key="i" class="long">
              {who.user_id}
            </code>,
          ],
          ["Version", who.version],
        ]}
      />
      {ending ? (
        <Confirm
          title="End all sessions?"
          deed="End them"
          onClose={() => setEnding(false)}
          onConfirm={async () => {
            await call("sessions.end", {});
            forget();
          }}
        >
          <p>Everybody who is logged in to this account has to log in again, you too. Keys go on working.</p>
        </Confirm>
      ) : null}
    </Panel>
  );
}

const GRACE_HOURS = "24";

function KeyPanel() {
  const [rotating, setRotating] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  if (session.value?.project_id !== null) return null;
  return (
    <Panel
      title="Platform key"
      actions={
        <Button icon="reload" scope="keys:write" onClick={() => setRotating(true)}>
          Rotate…
        </Button>
      }
    >
      <p class="quiet">
        The account’s own key. A new one takes its place, and the old one goes on working for the hours that
        you choose.
      </p>
      {rotating ? (
        <Dialog title="Rotate the platform key" onClose={() => setRotating(false)}>
          <Form
            submit="Rotate key"
            onCancel={() => setRotating(false)}
            onSubmit={async (data) => {
              const hours = Number(textOf(data, "grace_hours") ?? GRACE_HOURS);
              const made = await call("keys.platform.rotate", { body: { grace_hours: hours } });
              setRotating(false);
              setSecret(made.key);
            }}
          >
            <TextField
              name="grace_hours"
              label="Hours that the old key still works"
              type="number"
              min={0}
              max={168}
              value={GRACE_HOURS}
              required
              hint="A session made with the old key ends with it."
            />
          </Form>
        </Dialog>
      ) : null}
      {secret === null ? null : (
        <Secret title="The new platform key" secret={secret} onKept={() => setSecret(null)} />
      )}
    </Panel>
  );
}
