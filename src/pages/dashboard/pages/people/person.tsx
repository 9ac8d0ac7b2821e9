import type { Person, PersonIdentity } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count, titled } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { useCall } from "../../core/resource.ts";
import { go, href } from "../../core/route.ts";
import { accountRole, isAtLeast, mayCall, projectName, session } from "../../core/session.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, Dialog, Form, openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { CheckField } from "../../ui/field.tsx";
import { ListView } from "../../ui/list.tsx";
import { Facts, longFact, Page, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { History } from "../audit-list.tsx";
import { KeyState } from "../keys/key-state.tsx";
import { showLink } from "./link.tsx";
import { PersonForm } from "./person-form.tsx";
import { methodName, PersonState } from "./person-words.tsx";

/** A person: what they may do, how they log in, and the keys that they created. */
export function PersonPage({ id }: { id: string }) {
  const person = useCall("people.read", { params: { person_id: id } }, ["people"]);
  const { data, reload } = person;
  return (
    <Page
      title={data?.name ?? data?.email ?? "Person"}
      up={[href(["people"]), "People"]}
      status={data === null ? null : <PersonState of={data} />}
      request={requestOf("people.read", { params: { person_id: id } })}
      actions={data === null ? null : <Actions of={data} onDone={reload} />}
    >
      <Loaded of={person}>
        {(loaded) => (
          <div class="stack">
            <Panel>
              <PersonFacts of={loaded} />
            </Panel>
            <Identities of={loaded} onDone={reload} />
            {mayCall("keys.list") ? <Keys of={loaded} /> : null}
            <History type="person" id={id} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function PersonFacts({ of: person }: { of: Person }) {
  const { email, name, role, projects, login_methods, invitation_expires_at, last_seen_at } = person;
  return (
    <Facts
      of={[
        ["E-mail", email],
        ["Name", name ?? "–"],
        [
          "Role",
          <>
            {projects === "all" || role !== null
              ? `${role} of the account`
              : projects.map(({ project_id, role: projectRole }) => (
                  <span class="tag" key={project_id}>
                    {projectName(project_id)}: {projectRole}
                  </span>
                ))}
            {person.from_file ? <span class="tag">configuration file</span> : null}
          </>,
        ],
        [
          "Logs in with",
          login_methods.length === 0 ? "nothing yet" : login_methods.map(methodName).join(", "),
        ],
        ...(invitation_expires_at === null
          ? []
          : [["Invitation valid until", <DateTime key="i" at={invitation_expires_at} />] as const]),
        ["Last seen", <Ago key="l" at={last_seen_at} />],
        [
          "Changes",
          <a key="a" href={href(["audit"], { actor: person.person_id })}>
            What they changed
          </a>,
        ],
        ["Added", <DateTime key="c" at={person.created_at} />],
        longFact("ID", person.person_id),
      ]}
    />
  );
}

interface ActionProps {
  readonly of: Person;
  readonly onDone: () => void;
}

function Actions({ of: person, onDone }: ActionProps) {
  const { person_id, email, status, role } = person;
  const isOwn = person_id === session.value?.person?.person_id;
  const isAbove = role !== null && !isAtLeast(accountRole(), role);
  const above = isAbove ? `${email} is ${role}, which is above your role` : undefined;
  const reason = isOwn ? "Nobody disables or deletes themselves here" : above;
  const isDisabled = status === "disabled";
  const enable = async (): Promise<void> => {
    await call("people.update", { params: { person_id }, body: { disabled: false } });
    toast(`${email} enabled`);
    onDone();
  };
  const remove = (action: "disable" | "delete") => (): void =>
    openDialog((close) => <RemoveAccess of={person} action={action} onDone={onDone} onClose={close} />);
  return (
    <>
      <Button
        operation="people.update"
        reason={above}
        onClick={() => openDialog((close) => <PersonForm of={person} onDone={onDone} onClose={close} />)}
      >
        Edit…
      </Button>
      <Button
        operation="people.invitation.create"
        reason={isDisabled ? "Enable the person first" : above}
        onClick={() => renew(person, onDone)}
      >
        New link…
      </Button>
      <Button operation="people.sessions.end" reason={above} onClick={() => endSessions(person, onDone)}>
        End sessions
      </Button>
      <Button operation="people.update" reason={reason} onClick={isDisabled ? enable : remove("disable")}>
        {isDisabled ? "Enable" : "Disable…"}
      </Button>
      <Button kind="danger" operation="people.delete" reason={reason} onClick={remove("delete")}>
        Delete…
      </Button>
    </>
  );
}

async function endSessions({ person_id, email }: Person, onDone: () => void): Promise<void> {
  const { ended } = await call("people.sessions.end", { params: { person_id } });
  toast(`${count(ended, "session")} of ${email} ended`);
  onDone();
}

/** A new invitation; of an active person, it replaces how they log in. */
function renew({ person_id, email, status }: Person, onDone: () => void): void {
  const send = async (): Promise<void> => {
    const { invitation_url } = await call("people.invitation.create", { params: { person_id } });
    onDone();
    showLink(email, invitation_url);
  };
  openDialog((close) => (
    <Dialog title={`New link for ${email}`} onClose={close}>
      <Form submit="Create link" changed={false} onCancel={close} onSubmit={send}>
        <div class="prose">
          <p>
            {status === "active"
              ? "For a person who has lost their passkey. When the link is used, their passkeys are removed and their sessions end; they create a new passkey."
              : "The link that was sent before stops working."}
          </p>
        </div>
      </Form>
    </Dialog>
  ));
}

/** Disables or deletes a person, on request with the keys that they created. */
function RemoveAccess(props: ActionProps & { action: "disable" | "delete"; onClose: () => void }) {
  const { of: person, action, onDone, onClose } = props;
  const { person_id, email } = person;
  const query = { created_by: person_id };
  const keys = useList("keys.list", "keys", ["keys"], { keyOf: ({ id }) => id, query });
  const working = (keys.data ?? []).filter(({ revoked_at }) => revoked_at === null).length;
  const which = working === 1 ? "the key" : `the ${count(working, "key")}`;
  const onSubmit = async (data: FormData): Promise<void> => {
    const input = {
      params: { person_id },
      query: data.get("revoke") === null ? {} : ({ revoke_keys: "true" } as const),
    };
    if (action === "delete") {
      await call("people.delete", input);
      go(["people"]);
    } else {
      await call("people.update", { ...input, body: { disabled: true } });
      onDone();
      onClose();
    }
    toast(`${email} ${action}d`);
  };
  return (
    <Dialog title={`${titled(action)} ${email}?`} onClose={onClose}>
      <Form
        submit={`${titled(action)} person`}
        kind="danger"
        changed={false}
        onCancel={onClose}
        onSubmit={onSubmit}
      >
        <p>
          Their sessions end immediately.{" "}
          {action === "delete"
            ? "What they did stays in the audit log under their name."
            : "They cannot log in until they are enabled again."}
        </p>
        {working === 0 ? null : (
          <CheckField
            name="revoke"
            label={`Also revoke ${which} that they created. Otherwise ${working === 1 ? "it continues" : "they continue"} to work.`}
          />
        )}
      </Form>
    </Dialog>
  );
}

function Identities({ of: { person_id, identities, email }, onDone }: ActionProps) {
  if (identities.length === 0) return null;
  const remove = ({ identity_id, issuer }: PersonIdentity): void =>
    openDialog((close) => (
      <Confirm
        title="Remove this identity?"
        action="Remove identity"
        onConfirm={() =>
          call("people.identities.delete", { params: { person_id, identity_id } }).then(onDone)
        }
        done="Identity removed"
        onClose={close}
      >
        <p>
          The next login with {email} at {issuer} is linked to this person instead: use it after the address
          was given to another account there.
        </p>
      </Confirm>
    ));
  return (
    <Panel title="Identities at providers" flush>
      <Table
        label="Identities at providers"
        rows={identities}
        keyOf={({ identity_id }) => identity_id}
        columns={[
          { head: "Provider", cell: ({ issuer }) => issuer },
          { head: "Last used", cell: ({ last_used_at }) => <Ago at={last_used_at} />, layout: "fit" },
          {
            head: "Actions",
            cell: (identity) => (
              <Button
                kind="quiet"
                icon="delete"
                operation="people.identities.delete"
                label={`Remove ${identity.issuer}`}
                onClick={() => remove(identity)}
              />
            ),
            layout: "fit",
          },
        ]}
      />
    </Panel>
  );
}

/** Keys outlive the role, and the person. */
function Keys({ of: { person_id } }: { of: Person }) {
  const keys = useList("keys.list", "keys", ["keys"], {
    keyOf: ({ id }) => id,
    query: { created_by: person_id },
  });
  if (keys.data === null || keys.data.length === 0) return null;
  return (
    <Panel title="Keys that they created" flush>
      <ListView
        list={keys}
        label="Keys that they created"
        href={({ id }) => href(["keys", id])}
        columns={[
          { head: "Name", cell: ({ name }) => name },
          { head: "Last used", cell: ({ last_used_at }) => <Ago at={last_used_at} />, layout: "wide" },
          { head: "State", cell: (key) => <KeyState of={key} />, layout: "fit" },
        ]}
      />
      <p class="quiet small pad">
        Keys keep their scopes when the role of this person changes, or they are disabled. Revoke those that
        they should not have.
      </p>
    </Panel>
  );
}
