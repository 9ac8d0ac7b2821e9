import type { Account } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { download } from "../../core/download.ts";
import { formatNumber } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { DataForm } from "../../ui/form.tsx";
import { ListView } from "../../ui/list.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { openSecret } from "../keys/secret.tsx";

/** All accounts, for the operator. */
export function Accounts() {
  const list = useList("admin.accounts.list", "accounts", ["accounts", "audit"], {
    keyOf: ({ user_id }) => user_id,
  });
  const edit = (account: Account | null): void =>
    openDialog((close) => <AccountForm of={account} onDone={list.reload} onClose={close} />);
  return (
    <Panel
      title="Accounts"
      flush
      actions={
        <Button icon="new" onClick={() => edit(null)}>
          New account
        </Button>
      }
    >
      <ListView
        list={list}
        label="Accounts"
        columns={[
          { head: "E-mail", cell: ({ email }) => <strong>{email}</strong> },
          { head: "Tier", cell: ({ tier }) => tier, layout: "wide" },
          {
            head: "Credits",
            cell: ({ tier, balance }) => (tier === "unlimited" ? tier : formatNumber(balance)),
            layout: "end wide",
          },
          { head: "Created", cell: ({ created_at }) => <Ago at={created_at} />, layout: "wide" },
          {
            head: "State",
            cell: ({ suspended }) => <Status state={suspended ? "suspended" : "active"} />,
            layout: "fit wide",
          },
          {
            head: "Actions",
            width: 6,
            layout: "fit menus",
            cell: (account) => (
              <Menu
                label={`Actions for ${account.email}`}
                entries={[
                  { title: "Edit…", run: () => edit(account) },
                  { title: "Export", run: () => exportAccount(account) },
                  { title: "Reset platform key…", isDangerous: true, run: () => resetKey(account) },
                  { title: "Delete…", isDangerous: true, run: () => deleteAccount(account, list.reload) },
                ]}
              />
            ),
          },
        ]}
      />
    </Panel>
  );
}

/** Downloads everything of an account. */
function exportAccount({ user_id }: Account): Promise<void> {
  const { path } = requestOf("admin.accounts.export", { params: { user_id } });
  return download(path, `${user_id}.jsonl`);
}

function deleteAccount({ user_id, email }: Account, onDone: () => void): void {
  openDialog((close) => (
    <Confirm
      title={`Delete ${email}?`}
      action="Delete account"
      typed={email}
      onConfirm={() => call("admin.accounts.delete", { params: { user_id } }).then(onDone)}
      done={`${email} deleted`}
      onClose={close}
    >
      <p>
        Its keys and sessions stop working immediately, its monitors and deliveries stop, and all of its
        projects and data are deleted. This cannot be undone.
      </p>
    </Confirm>
  ));
}

function resetKey({ user_id, email }: Account): void {
  openDialog((close) => (
    <Confirm
      title={`Reset the key of ${email}?`}
      action="Reset key"
      typed={email}
      onConfirm={async () => {
        const { api_key } = await call("keys.platform.reset", { params: { user_id } });
        openSecret("Account key", api_key);
      }}
      onClose={close}
    >
      <p>
        All of its platform keys stop working immediately, and a new one is created. Its other keys continue
        to work.
      </p>
    </Confirm>
  ));
}

interface AccountFormProps {
  /** Null for a new account. */
  readonly of: Account | null;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function AccountForm({ of: account, onDone, onClose }: AccountFormProps) {
  const isNew = account === null;
  return (
    <DataForm
      title={account?.email ?? "New account"}
      submit={isNew ? "Create account" : "Save"}
      operation={isNew ? "admin.accounts.create" : "admin.accounts.update"}
      params={{ user_id: account?.user_id ?? "" }}
      // Without the balance: it changes with every request, so what is shown would be older than what is saved.
      of={account && { ...account, balance: null }}
      fields={[
        isNew ? { name: "email", label: "E-mail" } : null,
        [
          "tier",
          {
            name: "balance",
            label: "Credits",
            hint: isNew
              ? "Leave empty for the default of the tier."
              : `Currently ${formatNumber(account.balance)}. Leave empty to keep it.`,
          },
        ],
        isNew ? null : { name: "suspended", label: "Suspended: its keys and sessions are rejected" },
      ]}
      done={isNew ? undefined : `${account.email} updated`}
      onDone={(answer) => {
        onDone();
        if ("api_key" in answer) openSecret("Account key", answer.api_key);
      }}
      onClose={onClose}
    />
  );
}
