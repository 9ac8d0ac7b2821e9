import type { Me } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { switchAccount } from "../../core/login.ts";
import { localhostUrl, passkeyProblem } from "../../core/passkeys.ts";
import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { mayCall, projectName, session, whyNot } from "../../core/session.ts";
import { Button } from "../../ui/button.tsx";
import { openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { DataForm } from "../../ui/form.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { showLink } from "./link.tsx";
import { OwnPasskeys } from "./passkeys.tsx";
import { methodName } from "./person-words.tsx";
import { OwnSessions } from "./sessions.tsx";

/** The user's own profile: name, passkeys, sessions and other accounts. With a key: how to become a person. */
export function ProfilePage() {
  return session.value?.person === undefined ? <WithKey /> : <OfPerson />;
}

function OfPerson() {
  const me = useCall("people.me.read", {}, ["people"]);
  return (
    <Page
      title="Profile"
      lead="Who you are here, how you log in, and where you are logged in."
      request={requestOf("people.me.read", {})}
    >
      <Loaded of={me}>
        {(loaded) => (
          <div class="stack">
            <OwnFacts of={loaded} onDone={me.reload} />
            <OwnPasskeys />
            <OwnSessions />
            <Accounts />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function OwnFacts({ of: me, onDone }: { of: Me; onDone: () => void }) {
  const edit = (): void =>
    openDialog((close) => (
      <DataForm
        title="Your name"
        submit="Save"
        operation="people.me.update"
        of={me}
        fields={[{ name: "name", required: false, hint: "Shown to the others of the account." }]}
        done="Name saved"
        onDone={({ name }) => {
          const who = session.value;
          if (who?.person !== undefined) session.value = { ...who, person: { ...who.person, name } };
          onDone();
        }}
        onClose={close}
      />
    ));
  const { role, projects } = me;
  return (
    <Panel title="You" actions={<Button onClick={edit}>Change name…</Button>}>
      <Facts
        of={[
          ["Name", me.name ?? "–"],
          ["E-mail", me.email],
          ["Account", session.value?.email ?? "–"],
          [
            "Role",
            projects === "all" || role !== null
              ? role
              : projects.map(({ project_id, role: projectRole }) => (
                  <span class="tag" key={project_id}>
                    {projectName(project_id)}: {projectRole}
                  </span>
                )),
          ],
          ["Logged in with", methodName(session.value?.method ?? "")],
          ["Logged in", <Ago key="a" at={me.authenticated_at} />],
          ["Session expires", <DateTime key="e" at={session.value?.expires_at} />],
        ]}
      />
    </Panel>
  );
}

/** Other accounts that this login opens. */
function Accounts() {
  const others = session.value?.accounts ?? [];
  if (others.length === 0) return null;
  return (
    <Panel title="Your other accounts">
      <ul class="choices">
        {others.map(({ user_id, email }) => (
          <li key={user_id}>
            <span>{email}</span>
            <Button label={`Switch to ${email}`} onClick={() => switchAccount(user_id)}>
              Switch
            </Button>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** A key is not a person: its user can become one, and log in with a passkey from then on. */
function WithKey() {
  const people = useCall("people.list", mayCall("people.list") ? { query: { limit: 1 } } : null);
  const isFirst = people.data?.people.length === 0;
  const reason = whyNot("people.create");
  const problem = passkeyProblem();
  const url = localhostUrl();
  return (
    <Page
      title={isFirst ? "Create your passkey" : "Profile"}
      lead={
        isFirst
          ? "You become the owner of this account, and log in as yourself from now on: with your fingerprint, face, PIN or security key instead of a key or a link. It takes a minute."
          : "You are logged in with a key. People log in as themselves, and the audit log has their names."
      }
    >
      <Panel title={isFirst ? "Who are you?" : "Add yourself"}>
        {reason !== null ? (
          <p class="quiet">{reason}. Ask an admin of the account to invite you.</p>
        ) : (
          <div class="stack">
            {problem === null ? null : (
              <p class="note">
                {problem}
                {url === null ? null : (
                  <>
                    {" "}
                    <a href={url}>Open the console at localhost</a>.
                  </>
                )}
              </p>
            )}
            <Become isFirst={isFirst} />
          </div>
        )}
      </Panel>
      <p class="more">
        <a href={href(["overview"])}>{isFirst ? "Not now: go to the overview" : "Go to the overview"}</a>
      </p>
    </Page>
  );
}

function Become({ isFirst }: { isFirst: boolean }) {
  return (
    <DataForm
      submit="Continue"
      operation="people.create"
      start={{ role: "owner", email: isFirst ? ownAddress() : "" }}
      fields={[
        [
          {
            name: "email",
            label: "Your e-mail",
            hint: "Your invitation is sent to it, if the server sends e-mail.",
          },
          { name: "name", label: "Your name", required: false, hint: "Shown to the others of the account." },
        ],
        isFirst ? null : { name: "role", required: true },
      ]}
      adapt={(body) => ({ role: "owner", ...body })}
      onDone={({ email, invitation_url }) => {
        if (invitation_url === null) showLink(email, null);
        // At the address of this page, where the passkey works.
        else location.hash = new URL(invitation_url).hash;
      }}
    />
  );
}

/** The address of the account, unless it is one that the server made up. */
function ownAddress(): string {
  const email = session.value?.email ?? "";
  return email.endsWith("@localhost") ? "" : email;
}
