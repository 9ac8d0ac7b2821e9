import { useState } from "preact/hooks";
import type { KeyItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useList } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Loaded, More } from "../../ui/feedback.tsx";
import { SearchField } from "../../ui/field.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { KeyPage, RevokeKey } from "./key.tsx";
import { KeyForm } from "./key-form.tsx";
import { KeyState } from "./key-state.tsx";
import { Secret } from "./secret.tsx";

/** The list of keys, or one key. */
export function KeysPage() {
  const [id] = place.value.rest;
  return id === undefined ? <KeyList /> : <KeyPage key={id} id={id} />;
}

function KeyList() {
  const { query } = place.value;
  const [secret, setSecret] = useState<string | null>(null);
  const [revoking, setRevoking] = useState<KeyItem | null>(null);
  const text = (query.get("q") ?? "").toLowerCase();
  const list = useList("keys", ["keys"], async ({ limit, cursor }, signal) => {
    const page = await call("keys.list", { query: { limit, cursor } }, signal);
    return { items: page.keys, cursor: page.has_more ? page.next_cursor : null };
  });
  return (
    <Page
      title="Keys"
      request={requestOf("keys.list", {})}
      actions={
        <Button kind="primary" icon="new" scope="keys:write" onClick={() => setQuery({ new: "1" })}>
          New key
        </Button>
      }
    >
      <div class="toolbar">
        <SearchField label="Search keys" value={query.get("q") ?? ""} onInput={(q) => setQuery({ q })} />
      </div>
      <Loaded of={list}>
        {(keys) => (
          <Keys
            keys={keys.filter(({ name, masked_secret, owner_id }) =>
              `${name} ${masked_secret} ${owner_id ?? ""}`.toLowerCase().includes(text),
            )}
            onRevoke={setRevoking}
            more={<More of={list} />}
          />
        )}
      </Loaded>
      {query.has("new") ? (
        <KeyForm
          onClose={() => setQuery({ new: undefined })}
          onCreated={(made) => {
            setQuery({ new: undefined });
            setSecret(made);
            list.reload();
          }}
        />
      ) : null}
      {secret === null ? null : <Secret title="Key secret" secret={secret} onSaved={() => setSecret(null)} />}
      {revoking === null ? null : (
        <RevokeKey of={revoking} onDone={list.reload} onClose={() => setRevoking(null)} />
      )}
    </Page>
  );
}

const EXAMPLE = { name: "Warehouse", prefix: "sm", scopes: ["gate:read", "relay:write"] };

function Keys(props: {
  keys: readonly KeyItem[];
  onRevoke: (key: KeyItem) => void;
  more: preact.ComponentChildren;
}) {
  const { keys, onRevoke, more } = props;
  if (keys.length === 0)
    return (
      <Empty icon="keys" title="No keys here" request={requestOf("keys.create", { body: EXAMPLE })}>
        A key gives a program access to the API with the scopes that it needs. Create one key per program.
      </Empty>
    );
  return (
    <Panel flush>
      <Table
        label="Keys"
        rows={keys}
        keyOf={({ id }) => id}
        href={({ id }) => href(["keys", id])}
        columns={[
          { head: "Name", cell: ({ name }) => name },
          { head: "Secret", cell: ({ masked_secret }) => <code>{masked_secret}</code>, layout: "wide" },
          { head: "Scopes", cell: ({ scopes }) => <Scopes of={scopes} />, layout: "wide" },
          { head: "Owner", cell: ({ owner_id }) => owner_id ?? "–", layout: "wide" },
          {
            head: "Uses left",
            cell: ({ uses }) => (uses === null ? "–" : formatNumber(uses.remaining)),
            layout: "fit wide",
          },
          { head: "Last used", cell: ({ last_used_at }) => <Ago at={last_used_at} />, layout: "wide" },
          { head: "State", cell: (key) => <KeyState of={key} />, layout: "fit" },
          {
            head: "Actions",
            layout: "fit",
            cell: (key) => (
              <Button
                icon="delete"
                kind="quiet"
                scope="keys:write"
                label={`Revoke ${key.name}`}
                disabled={key.revoked_at !== null}
                onClick={() => onRevoke(key)}
              >
                {null}
              </Button>
            ),
          },
        ]}
      />
      {more}
    </Panel>
  );
}

const SHOWN_SCOPES = 3;

/** The first few scopes. */
function Scopes({ of: scopes }: { of: readonly string[] }) {
  return (
    <>
      {scopes.slice(0, SHOWN_SCOPES).map((scope) => (
        <span class="tag" key={scope}>
          {scope}
        </span>
      ))}
      {scopes.length > SHOWN_SCOPES ? <span class="quiet small">+{scopes.length - SHOWN_SCOPES}</span> : null}
    </>
  );
}
