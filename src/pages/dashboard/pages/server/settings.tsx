import { useState } from "preact/hooks";
import { call } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { forget, may, session } from "../../core/session.ts";
import { shortcutsOn, THEMES, theme } from "../../core/theme.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, Dialog, Form } from "../../ui/dialog.tsx";
import { CheckField, Choice, TextField, textOf } from "../../ui/field.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { DateTime } from "../../ui/time.tsx";
import { Secret } from "../keys/secret.tsx";
import { Accounts } from "./accounts.tsx";
import { Options } from "./options.tsx";

/** The account, the appearance of the console, and for the operator all accounts. */
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
              label="Single-key shortcuts; press ? for the list"
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
  const balance = useResource(may("meter:read") ? "account balance" : null, ["meter"], (signal) =>
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
          ["Credits", who.tier === "unlimited" ? "unlimited" : formatNumber(balance.data?.balance ?? 0)],
          ["Logged in with", who.key_name ?? "the platform key"],
          ["Session expires", <DateTime key="e" at={who.expires_at} />],
          [
            "Account ID",
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
          action="End sessions"
          onClose={() => setEnding(false)}
          onConfirm={async () => {
            await call("sessions.end", {});
            forget();
          }}
        >
          <p>
            Everyone who is logged in to this account must log in again, including you. Keys continue to work.
          </p>
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
        The account’s key. Rotating it creates a new key; the old one continues to work for the hours that you
        choose.
      </p>
      {rotating ? (
        <Dialog title="Rotate platform key" onClose={() => setRotating(false)}>
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
              label="Grace period (hours)"
              type="number"
              min={0}
              max={168}
              value={GRACE_HOURS}
              required
              hint="A session created with the old key ends with it."
            />
          </Form>
        </Dialog>
      ) : null}
      {secret === null ? null : (
        <Secret title="New platform key" secret={secret} onSaved={() => setSecret(null)} />
      )}
    </Panel>
  );
}
