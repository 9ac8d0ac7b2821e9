import { useState } from "preact/hooks";
import type { KeyItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber, span } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { go } from "../../core/route.ts";
import { projects } from "../../core/session.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, Dialog, Form } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { History } from "../server/audit-list.tsx";
import { EditKey, setEnabled } from "./key-edit.tsx";
import { BEARER_PREFIX } from "./key-limits.tsx";
import { KeyState } from "./key-state.tsx";
import { Usage } from "./key-usage.tsx";
import { Secret } from "./secret.tsx";

/** A key. */
export function KeyPage({ id }: { id: string }) {
  const key = useResource(`key ${id}`, ["keys"], (signal) => call("keys.get", { params: { id } }, signal));
  const [open, setOpen] = useState<"edit" | "rotate" | "revoke" | null>(null);
  const [secret, setSecret] = useState<{ id: string; text: string } | null>(null);
  const { data } = key;
  const isRevoked = data === null || data.revoked_at !== null;
  return (
    <Page
      title={data?.name ?? "Key"}
      up={["#/keys", "Keys"]}
      status={data === null ? null : <KeyState of={data} />}
      request={requestOf("keys.get", { params: { id } })}
      actions={
        <>
          <Button scope="keys:write" disabled={isRevoked} onClick={() => setOpen("edit")}>
            Edit…
          </Button>
          <Button
            scope="keys:write"
            disabled={isRevoked}
            onClick={async () => {
              if (data === null) return;
              await setEnabled(data, !data.enabled);
              key.reload();
            }}
          >
            {data?.enabled === false ? "Resume" : "Pause"}
          </Button>
          <Button icon="reload" scope="keys:write" disabled={isRevoked} onClick={() => setOpen("rotate")}>
            Rotate…
          </Button>
          <Button kind="danger" scope="keys:write" disabled={isRevoked} onClick={() => setOpen("revoke")}>
            Revoke…
          </Button>
        </>
      }
    >
      <Loaded of={key}>
        {(one) => (
          <div class="stack">
            <Panel>
              <KeyFacts of={one} />
            </Panel>
            <Usage id={id} />
            <History type="key" id={id} />
            {open === "edit" ? <EditKey of={one} onDone={key.reload} onClose={() => setOpen(null)} /> : null}
            {open === "revoke" ? (
              <RevokeKey of={one} onDone={key.reload} onClose={() => setOpen(null)} />
            ) : null}
            {open === "rotate" ? (
              <RotateKey
                of={one}
                onClose={() => setOpen(null)}
                onRotated={(newId, text) => {
                  setOpen(null);
                  setSecret({ id: newId, text });
                }}
              />
            ) : null}
          </div>
        )}
      </Loaded>
      {secret === null ? null : (
        <Secret title="New secret" secret={secret.text} onSaved={() => go(["keys", secret.id])} />
      )}
    </Page>
  );
}

function KeyFacts({ of: key }: { of: KeyItem & { last_used_ip?: string; last_used_ua?: string } }) {
  const project = projects.value.find(({ id }) => id === key.project_id)?.name ?? key.project_id;
  return (
    <Facts
      of={[
        ["Secret", <code key="s">{key.masked_secret}</code>],
        ["Project", project ?? "all projects"],
        [
          "Scopes",
          key.scopes.map((scope) => (
            <span class="tag" key={scope}>
              {scope}
            </span>
          )),
        ],
        ["Created", <DateTime key="c" at={key.created_at} />],
        ["Expires", key.expires_at === null ? "never" : <DateTime key="e" at={key.expires_at} />],
        ["Last used", <Ago key="u" at={key.last_used_at} />],
        ["Last IP address", key.last_used_ip ?? "–"],
        ["Last user agent", key.last_used_ua ?? "–"],
        ["Environment", key.environment ?? "–"],
        ["Owner", key.owner_id ?? "–"],
        ...(key.prefix === BEARER_PREFIX ? [] : limitFacts(key)),
        ["Allowed IP addresses", key.allowed_ips.length === 0 ? "any address" : key.allowed_ips.join(", ")],
        [
          "ID",
          <code key="i" class="long">
            {key.id}
          </code>,
        ],
      ]}
    />
  );
}

function limitFacts({ ratelimits, uses, meter_id }: KeyItem): (readonly [string, string])[] {
  const limits = ratelimits.map(
    ({ name, limit, duration_ms }) => `${name}: ${formatNumber(limit)} in ${span(duration_ms)}`,
  );
  const refill = uses?.refill;
  const refillText = refill === undefined ? "" : `, ${formatNumber(refill.amount)} every ${refill.every}`;
  return [
    ["Rate limits", limits.length === 0 ? "none" : limits.join(", ")],
    ["Uses left", uses === null ? "unlimited" : formatNumber(uses.remaining) + refillText],
    ["Meter", meter_id ?? "–"],
  ];
}

/** Revokes a key after a confirmation. */
export function RevokeKey({
  of: { id, name },
  onDone,
  onClose,
}: {
  of: KeyItem;
  onDone: () => void;
  onClose: () => void;
}) {
  return (
    <Confirm
      title={`Revoke ${name}?`}
      action="Revoke key"
      onClose={onClose}
      onConfirm={async () => {
        await call("keys.revoke", { params: { id } });
        toast(`${name} revoked`);
        onDone();
      }}
    >
      <p>
        Requests with <strong>{name}</strong> will be rejected. This cannot be undone.
      </p>
    </Confirm>
  );
}

const GRACE_HOURS = "24";

function RotateKey(props: {
  of: KeyItem;
  onRotated: (id: string, secret: string) => void;
  onClose: () => void;
}) {
  const { of: key, onRotated, onClose } = props;
  return (
    <Dialog title={`Rotate ${key.name}`} onClose={onClose}>
      <Form
        submit="Rotate key"
        onCancel={onClose}
        onSubmit={async (data) => {
          const body = { grace_hours: Number(textOf(data, "grace_hours") ?? GRACE_HOURS) };
          const made = await call("keys.rotate", { params: { id: key.id }, body });
          onRotated(made.new_key_id, made.new_secret);
        }}
      >
        <p>
          Creates a new key with the same scopes. The old key continues to work for the time below, so that
          you can replace it.
        </p>
        <TextField
          name="grace_hours"
          label="Grace period (hours)"
          type="number"
          min={0}
          max={720}
          value={GRACE_HOURS}
          required
        />
      </Form>
    </Dialog>
  );
}
