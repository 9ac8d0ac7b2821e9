import { useState } from "preact/hooks";
import { call, requestOf } from "../../core/api.ts";
import { useCall } from "../../core/resource.ts";
import { go } from "../../core/route.ts";
import { Button, CurlButton } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { DateTime } from "../../ui/time.tsx";
import { History } from "../audit-list.tsx";
import { RoleSettings } from "./role-form.tsx";
import { Tags } from "./tags.tsx";

/** A role: its permissions and its changes. */
export function RoleView({ name, onChange }: { name: string; onChange: () => void }) {
  const params = { name };
  const role = useCall("keys.roles.read", { params }, ["keys"]);
  const [isEditing, setEditing] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const reload = (): void => {
    role.reload();
    onChange();
  };
  const remove = async (): Promise<void> => {
    await call("keys.roles.delete", { params });
    onChange();
    go(["keys", "roles"]);
  };
  return (
    <div class="inspector">
      <Loaded of={role}>
        {(loaded) => (
          <div class="stack">
            <Panel
              title={loaded.name}
              actions={
                <div class="actions">
                  <CurlButton request={requestOf("keys.roles.read", { params })} />
                  <Button operation="keys.roles.save" onClick={() => setEditing(true)}>
                    Edit…
                  </Button>
                  <Button kind="danger" operation="keys.roles.delete" onClick={() => setDeleting(true)}>
                    Delete…
                  </Button>
                </div>
              }
            >
              <Facts
                of={[
                  ["Description", loaded.description ?? "–"],
                  [
                    "Permissions",
                    loaded.permissions.length === 0 ? "none" : <Tags key="p" of={loaded.permissions} all />,
                  ],
                  ["Created", <DateTime key="c" at={loaded.created_at} />],
                  ["Changed", <DateTime key="u" at={loaded.updated_at} />],
                ]}
              />
            </Panel>
            <History type="key_role" id={name} />
            {isEditing ? (
              <RoleSettings name={name} of={loaded} onDone={reload} onClose={() => setEditing(false)} />
            ) : null}
          </div>
        )}
      </Loaded>
      {isDeleting ? (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete role"
          done="Role deleted"
          onClose={() => setDeleting(false)}
          onConfirm={remove}
        >
          <p>Only a role that no key has can be deleted.</p>
        </Confirm>
      ) : null}
    </div>
  );
}
