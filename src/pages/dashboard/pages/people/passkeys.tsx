import type { Passkey } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { createPasskey, passkeyProblem } from "../../core/passkeys.ts";
import { useCall } from "../../core/resource.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { DataForm } from "../../ui/form.tsx";
import { Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";

/** The user's own passkeys. */
export function OwnPasskeys() {
  const passkeys = useCall("people.me.passkeys.list", {}, ["people"]);
  const problem = passkeyProblem();
  const add = async (): Promise<void> => {
    const { options } = await call("people.me.passkeys.options", {});
    const credential = await createPasskey(options);
    const added = await call("people.me.passkeys.create", { body: { credential } });
    passkeys.reload();
    // Its name tells it from the others.
    rename(added, passkeys.reload);
  };
  return (
    <Panel
      title="Passkeys"
      flush
      actions={
        <Button icon="new" kind="primary" reason={problem ?? undefined} onClick={add}>
          Add a passkey
        </Button>
      }
    >
      <Loaded of={passkeys}>
        {({ passkeys: all }) =>
          all.length === 0 ? (
            <p class="quiet pad">
              No passkeys. Add one to log in with your fingerprint, face, PIN or security key.
              {problem === null ? null : ` ${problem}`}
            </p>
          ) : (
            <>
              <Table
                label="Passkeys"
                rows={all}
                keyOf={({ passkey_id }) => passkey_id}
                columns={[
                  { head: "Name", cell: ({ name }) => <strong>{name}</strong>, sub: whereOf },
                  { head: "Added", cell: ({ created_at }) => <Ago at={created_at} />, layout: "fit wide" },
                  {
                    head: "Last used",
                    cell: ({ last_used_at }) => <Ago at={last_used_at} />,
                    layout: "fit wide",
                  },
                  {
                    head: "Actions",
                    cell: (passkey) => (
                      <div class="actions together">
                        <Button
                          kind="quiet"
                          icon="rename"
                          label={`Rename ${passkey.name}`}
                          onClick={() => rename(passkey, passkeys.reload)}
                        />
                        <Button
                          kind="quiet"
                          icon="delete"
                          label={`Remove ${passkey.name}`}
                          onClick={() => remove(passkey, all.length === 1, passkeys.reload)}
                        />
                      </div>
                    ),
                    layout: "fit",
                  },
                ]}
              />
              {all.length === 1 ? (
                <p class="quiet small pad">
                  Add a second one, on another device: with a single passkey, a lost device means asking an
                  admin for a new link.
                </p>
              ) : null}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

/** A passkey of another host cannot be used at this one. */
function whereOf({ usable, relying_party }: Passkey) {
  if (usable) return null;
  return <span class="tag">unusable: made for {relying_party}</span>;
}

function rename(passkey: Passkey, onDone: () => void): void {
  openDialog((close) => (
    <DataForm
      title="Name of the passkey"
      submit="Save"
      operation="people.me.passkeys.update"
      params={{ passkey_id: passkey.passkey_id }}
      of={passkey}
      fields={[{ name: "name", placeholder: "Phone", hint: "Where it is, such as Phone or Security key." }]}
      onDone={onDone}
      onClose={close}
    />
  ));
}

function remove({ passkey_id, name }: Passkey, isLast: boolean, onDone: () => void): void {
  openDialog((close) => (
    <Confirm
      title={`Remove ${name}?`}
      action="Remove passkey"
      onConfirm={() => call("people.me.passkeys.delete", { params: { passkey_id } }).then(onDone)}
      done={`${name} removed`}
      onClose={close}
    >
      <p>
        It no longer logs you in here. Delete it on the device too.
        {isLast
          ? " It is your last passkey: without another way to log in, an admin has to send you a new link."
          : ""}
      </p>
    </Confirm>
  ));
}
