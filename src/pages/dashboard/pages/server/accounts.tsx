import { useState } from "preact/hooks";
import type { Account, Tier } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useList } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { Loaded, More } from "../../ui/feedback.tsx";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { Secret } from "../keys/secret.tsx";

const TIERS: readonly Tier[] = ["free", "starter", "pro", "scale", "unlimited"];

/** All accounts, for the operator. */
export function Accounts() {
  const [open, setOpen] = useState<Account | "new" | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const list = useList("accounts", ["accounts", "audit"], async (query, signal) => {
    const page = await call("admin.accounts.list", { query }, signal);
    return { items: page.accounts, cursor: page.cursor ?? null };
  });
  return (
    <Panel
      title="Accounts"
      flush
      actions={
        <Button icon="new" onClick={() => setOpen("new")}>
          New account
        </Button>
      }
    >
      <Loaded of={list}>
        {(accounts) => (
          <>
            <AccountTable of={accounts} onChange={setOpen} />
            <More of={list} />
          </>
        )}
      </Loaded>
      {open === null ? null : (
        <AccountForm
          of={open === "new" ? null : open}
          onClose={() => setOpen(null)}
          onDone={(key) => {
            setOpen(null);
            setSecret(key);
            list.reload();
          }}
        />
      )}
      {secret === null ? null : (
        <Secret title="Account key" secret={secret} onSaved={() => setSecret(null)} />
      )}
    </Panel>
  );
}

function AccountTable({
  of: accounts,
  onChange,
}: {
  of: readonly Account[];
  onChange: (account: Account) => void;
}) {
  return (
    <Table
      label="Accounts"
      rows={accounts}
      keyOf={({ user_id }) => user_id}
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
          head: "Action",
          layout: "fit",
          cell: (account) => (
            <Button kind="quiet" onClick={() => onChange(account)}>
              Edit…
            </Button>
          ),
        },
      ]}
    />
  );
}

interface AccountFormProps {
  /** Null for a new account. */
  readonly of: Account | null;
  readonly onDone: (key: string | null) => void;
  readonly onClose: () => void;
}

function AccountForm({ of: account, onDone, onClose }: AccountFormProps) {
  const [suspended, setSuspended] = useState(account?.suspended ?? false);
  const submit = async (data: FormData): Promise<void> => {
    const tier = TIERS.find((one) => one === data.get("tier")) ?? "free";
    const balance = textOf(data, "balance");
    const fields = { tier, ...(balance === undefined ? {} : { balance: Number(balance) }) };
    if (account === null) {
      const made = await call("admin.accounts.create", {
        body: { email: textOf(data, "email") ?? "", ...fields },
      });
      onDone(made.api_key);
      return;
    }
    await call("admin.accounts.update", {
      params: { user_id: account.user_id },
      body: { ...fields, suspended },
    });
    toast(`${account.email} updated`);
    onDone(null);
  };
  return (
    <Dialog title={account?.email ?? "New account"} onClose={onClose}>
      <Form submit={account === null ? "Create account" : "Save"} onSubmit={submit} onCancel={onClose}>
        {account === null ? <TextField name="email" label="E-mail" required /> : null}
        <div class="two">
          <SelectField
            name="tier"
            label="Tier"
            value={account?.tier ?? "free"}
            options={TIERS.map((one) => [one, one])}
          />
          <TextField
            name="balance"
            label="Credits"
            type="number"
            min={0}
            hint={
              account === null
                ? "Leave empty for the default of the tier."
                : `Currently ${formatNumber(account.balance)}. Leave empty to keep it.`
            }
          />
        </div>
        {account === null ? null : (
          <CheckField
            label="Suspended: its keys and sessions are rejected"
            checked={suspended}
            onChange={setSuspended}
          />
        )}
      </Form>
    </Dialog>
  );
}
