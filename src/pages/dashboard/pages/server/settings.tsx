import type { Session } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { forget } from "../../core/login.ts";
import { useCall } from "../../core/resource.ts";
import { href, place } from "../../core/route.ts";
import { mayCall, session } from "../../core/session.ts";
import { shortcutsOn, THEMES, theme } from "../../core/theme.ts";
import { inUtc } from "../../core/times.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { CheckField, Choice } from "../../ui/field.tsx";
import { DataForm } from "../../ui/form.tsx";
import { HOURS } from "../../ui/kinds.ts";
import { Facts, longFact, Page, Panel } from "../../ui/page.tsx";
import { DateTime } from "../../ui/time.tsx";
import { openSecret } from "../keys/secret.tsx";
import { Accounts } from "./accounts.tsx";
import { BalancePage } from "./balance.tsx";
import { DefaultChannels } from "./default-channels.tsx";
import { Options } from "./options.tsx";
import { StoredSettings } from "./stored-settings.tsx";

const ZONES = [
  ["local", `my time zone (${Intl.DateTimeFormat().resolvedOptions().timeZone})`],
  ["utc", "UTC"],
] as const;

/** The account, the appearance of the console, and for the operator all accounts. */
export function SettingsPage() {
  if (place.value.rest[0] === "balance" && mayCall("meter.own.history")) return <BalancePage />;
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
                options={THEMES.map((theme) => [theme, theme])}
                onChange={(choice) => {
                  theme.value = choice;
                }}
              />
            </div>
            <div class="actions">
              <span aria-hidden="true">Times</span>
              <Choice
                label="Times"
                value={inUtc.value ? "utc" : "local"}
                options={ZONES}
                onChange={(zone) => {
                  inUtc.value = zone === "utc";
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
        {mayCall("monitors.channels.list") ? <DefaultChannels /> : null}
        {session.value?.operator ? <StoredSettings /> : null}
        {session.value?.operator ? <Accounts /> : null}
        {session.value?.operator ? <Options /> : null}
      </div>
    </Page>
  );
}

function AccountPanel() {
  const balance = useCall("meter.own.balance", mayCall("meter.own.balance") ? {} : null, ["meter"]);
  const who = session.value;
  if (!who) return null;
  return (
    <Panel
      title="Account"
      actions={
        <Button operation="sessions.end" onClick={endSessions}>
          End all sessions…
        </Button>
      }
    >
      <Facts
        of={[
          ["E-mail", who.email],
          ["Tier", who.tier],
          [
            "Credits",
            <>
              {who.tier === "unlimited" ? "unlimited" : formatNumber(balance.data?.balance ?? 0)}
              {mayCall("meter.own.history") ? (
                <>
                  {" · "}
                  <a href={href(["settings", "balance"])}>history</a>
                </>
              ) : null}
            </>,
          ],
          ["Logged in with", loggedInWith(who)],
          ["Session expires", <DateTime key="e" at={who.expires_at} />],
          longFact("Account ID", who.user_id),
          ["Version", who.version],
        ]}
      />
    </Panel>
  );
}

function loggedInWith({ person, key_name }: Session) {
  if (person === undefined) return key_name ?? "the platform key";
  return <a href={href(["profile"])}>{person.name ?? person.email}</a>;
}

function endSessions(): void {
  openDialog((close) => (
    <Confirm
      title="End all sessions?"
      action="End sessions"
      onConfirm={async () => {
        await call("sessions.end", {});
        forget();
      }}
      onClose={close}
    >
      <p>
        Everyone who is logged in to this account must log in again, including you. Keys continue to work.
      </p>
    </Confirm>
  ));
}

function KeyPanel() {
  if (session.value?.project_id !== null) return null;
  return (
    <Panel
      title="Platform key"
      actions={
        <Button icon="reload" operation="keys.platform.rotate" onClick={rotateKey}>
          Rotate…
        </Button>
      }
    >
      <p class="quiet">
        The account’s key. Rotating it creates a new key; the old one continues to work for the hours that you
        choose.
      </p>
    </Panel>
  );
}

function rotateKey(): void {
  openDialog((close) => (
    <DataForm
      title="Rotate platform key"
      submit="Rotate key"
      operation="keys.platform.rotate"
      start={{ grace_hours: 24 }}
      fields={[
        {
          name: "grace_hours",
          label: "Grace period",
          kind: HOURS,
          hint: "A session created with the old key ends with it.",
        },
      ]}
      onDone={({ key }) => openSecret("New platform key", key)}
      onClose={close}
    />
  ));
}
