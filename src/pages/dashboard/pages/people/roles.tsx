import type { RoleOperation } from "../../../../client/generated/api.ts";
import { useCall } from "../../core/resource.ts";
import { ROLES, type Role } from "../../core/session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";

/** What each role may do: a sentence, and the operations that it has in addition to the roles before it. */
export function RolesDialog({ onClose }: { onClose: () => void }) {
  const roles = useCall("people.roles", {});
  return (
    <Dialog title="What roles may do" onClose={onClose}>
      <Loaded of={roles}>
        {({ roles: all, operations }) => (
          <dl class="roles">
            {all.map(({ role, description }, at) => (
              <div key={role}>
                <dt>{role}</dt>
                <dd>
                  <p>
                    {at === 0 ? "" : `Like ${all[at - 1]?.role}. `}
                    {description}
                  </p>
                  <Added of={operations.filter((operation) => operation.role === role)} />
                </dd>
              </div>
            ))}
          </dl>
        )}
      </Loaded>
      <p class="quiet small">
        A role in a project counts in that project only. Nobody grants a role above their own.
      </p>
    </Dialog>
  );
}

function Added({ of: operations }: { of: readonly RoleOperation[] }) {
  if (operations.length === 0) return null;
  return (
    <details>
      <summary>Operations of the API</summary>
      <p class="small">
        {operations.map(({ operation }) => (
          <span class="tag" key={operation}>
            {operation}
          </span>
        ))}
      </p>
    </details>
  );
}

/** The description of a role, for the forms that choose one. */
export function RoleNote({ role }: { role: Role | null }) {
  const { data } = useCall("people.roles", {});
  const found = data?.roles.find((facts) => facts.role === role);
  const at = role === null ? -1 : ROLES.indexOf(role);
  if (found === undefined) return null;
  return (
    <small class="quiet">
      {at > 0 ? `Like ${ROLES[at - 1]}. ` : ""}
      {found.description}
    </small>
  );
}
