import type { ComponentChildren } from "preact";
import type { KeyItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber, span } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { go, href } from "../../core/route.ts";
import { projectName } from "../../core/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { DataForm } from "../../ui/form.tsx";
import { HOURS } from "../../ui/kinds.ts";
import { Facts, longFact, Page, Panel } from "../../ui/page.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { History } from "../audit-list.tsx";
import { PersonLink } from "../person-link.tsx";
import { EditKey, setEnabled } from "./key-edit.tsx";
import { BEARER_PREFIX } from "./key-limits.tsx";
import { KeyState, maskedSecret } from "./key-state.tsx";
import { Usage } from "./key-usage.tsx";
import { openSecret } from "./secret.tsx";
import { Tags } from "./tags.tsx";

/** A key. */
export function KeyPage({ id }: { id: string }) {
  const key = useCall("keys.get", { params: { id } }, ["keys"]);
  const { data, reload } = key;
  return (
    <Page
      title={data?.name ?? "Key"}
      up={[href(["keys"]), "Keys"]}
      status={data === null ? null : <KeyState of={data} />}
      request={requestOf("keys.get", { params: { id } })}
      actions={data === null ? null : <KeyActions of={data} onDone={reload} />}
    >
      <Loaded of={key}>
        {(loaded) => (
          <div class="stack">
            <Panel>
              <KeyFacts of={loaded} />
            </Panel>
            <Usage id={id} />
            <History type="key" id={id} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function KeyActions({ of: key, onDone }: { of: KeyItem; onDone: () => void }) {
  const disabled = key.revoked_at !== null;
  return (
    <>
      <Button
        operation="keys.patch"
        disabled={disabled}
        onClick={() => openDialog((close) => <EditKey of={key} onDone={onDone} onClose={close} />)}
      >
        Edit…
      </Button>
      <Button
        operation="keys.patch"
        disabled={disabled}
        onClick={() => setEnabled(key, !key.enabled).then(onDone)}
      >
        {key.enabled ? "Pause" : "Resume"}
      </Button>
      <Button operation="keys.rotate" disabled={disabled} icon="reload" onClick={() => rotateKey(key)}>
        Rotate…
      </Button>
      <Button
        operation="keys.revoke"
        disabled={disabled}
        kind="danger"
        onClick={() => revokeKey(key, onDone)}
      >
        Revoke…
      </Button>
    </>
  );
}

function KeyFacts({ of: key }: { of: KeyItem & { last_used_ip?: string; last_used_ua?: string } }) {
  return (
    <Facts
      of={[
        ["Secret", <code key="s">{maskedSecret(key)}</code>],
        ["Project", key.project_id === null ? "all projects" : projectName(key.project_id)],
        ["Scopes", <Tags key="t" of={key.scopes} all />],
        [
          "Created",
          <>
            <DateTime at={key.created_at} />
            {key.created_by === null ? null : (
              <span class="sub">
                by <PersonLink id={key.created_by} />
              </span>
            )}
          </>,
        ],
        ["Expires", key.expires_at === null ? "never" : <DateTime key="e" at={key.expires_at} />],
        ["Last used", <Ago key="u" at={key.last_used_at} />],
        ["Last IP address", key.last_used_ip ?? "–"],
        ["Last user agent", key.last_used_ua ?? "–"],
        ["Environment", key.environment ?? "–"],
        [
          "Owner",
          key.owner_id === null ? (
            "–"
          ) : (
            <a key="o" href={href(["customers", key.owner_id])}>
              {key.owner_id}
            </a>
          ),
        ],
        ...(key.prefix === BEARER_PREFIX ? [] : limitFacts(key)),
        ["Allowed IP addresses", key.allowed_ips.length === 0 ? "any address" : key.allowed_ips.join(", ")],
        longFact("ID", key.id),
      ]}
    />
  );
}

function limitFacts({
  ratelimits,
  uses,
  meter_id,
  permissions,
  roles,
}: KeyItem): (readonly [string, ComponentChildren])[] {
  const limits = ratelimits.map(
    ({ name, limit, duration_ms }) => `${name}: ${formatNumber(limit)} in ${span(duration_ms)}`,
  );
  const refill = uses?.refill;
  const refillText = refill === undefined ? "" : `, ${formatNumber(refill.amount)} every ${refill.every}`;
  return [
    ["Rate limits", limits.length === 0 ? "none" : limits.join(", ")],
    ["Uses left", uses === null ? "unlimited" : formatNumber(uses.remaining) + refillText],
    ["Meter", meter_id ?? "–"],
    ["Permissions", permissions.length === 0 ? "none" : <Tags key="p" of={permissions} all />],
    [
      "Roles",
      roles.length === 0
        ? "none"
        : roles.map((role) => (
            <a class="tag" key={role} href={href(["keys", "roles", role])}>
              {role}
            </a>
          )),
    ],
  ];
}

/** Revokes a key after a confirmation. */
export function revokeKey({ id, name }: KeyItem, onDone: () => void): void {
  openDialog((close) => (
    <Confirm
      title={`Revoke ${name}?`}
      action="Revoke key"
      onConfirm={() => call("keys.revoke", { params: { id } }).then(onDone)}
      done={`${name} revoked`}
      onClose={close}
    >
      <p>
        Requests with <strong>{name}</strong> will be rejected. This cannot be undone.
      </p>
    </Confirm>
  ));
}

function rotateKey({ id, name }: KeyItem): void {
  openDialog((close) => (
    <DataForm
      title={`Rotate ${name}`}
      submit="Rotate key"
      operation="keys.rotate"
      params={{ id }}
      start={{ grace_hours: 24 }}
      fields={[
        <p key="what">
          Creates a new key with the same scopes. The old key continues to work for the time below, so that
          you can replace it.
        </p>,
        { name: "grace_hours", label: "Grace period", kind: HOURS },
      ]}
      onDone={({ new_key_id, new_secret }) =>
        openSecret("New secret", new_secret, () => go(["keys", new_key_id]))
      }
      onClose={close}
    />
  ));
}
