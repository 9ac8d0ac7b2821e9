import { useState } from "preact/hooks";
import type { Flag } from "../../../client/generated/api.ts";
import { call, requestOf } from "../core/api.ts";
import { useResource } from "../core/resource.ts";
import { go } from "../core/route.ts";
import { toast } from "../core/toasts.ts";
import { Button } from "../ui/button.tsx";
import { Confirm, Form } from "../ui/dialog.tsx";
import { Empty, Loaded } from "../ui/feedback.tsx";
import { TextField, textOf } from "../ui/field.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { History } from "./audit-list.tsx";
import { FlagSwitch } from "./flag-switch.tsx";

/** One flag. */
export function FlagPage({ id }: { id: string }) {
  const flags = useResource("flags", ["gate"], (signal) => call("gate.config", {}, signal));
  const [deleting, setDeleting] = useState(false);
  const flag = flags.data?.flags.find(({ flag_key }) => flag_key === id);
  return (
    <Page
      title={id}
      up={["#/flags", "Flags"]}
      status={flag === undefined ? null : <FlagSwitch flag={flag} onChanged={flags.reload} />}
      request={requestOf("gate.evaluate", { params: { flagKey: id } })}
      actions={
        <Button
          kind="danger"
          scope="gate:write"
          disabled={flag === undefined}
          onClick={() => setDeleting(true)}
        >
          Delete…
        </Button>
      }
    >
      <Loaded of={flags}>
        {() => (
          <div class="stack">
            {flag === undefined ? (
              <Empty icon="flags" title="There is no such flag">
                It may have been deleted.
              </Empty>
            ) : (
              <Description of={flag} onChanged={flags.reload} />
            )}
            <History type="flag" id={id} />
          </div>
        )}
      </Loaded>
      {deleting ? (
        <Confirm
          title={`Delete ${id}?`}
          deed="Delete flag"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await call("gate.delete", { params: { flagKey: id } });
            toast(`${id} is deleted`);
            go(["flags"]);
          }}
        >
          <p>
            Programs that ask for <strong>{id}</strong> are told from now on that there is no such flag.
          </p>
        </Confirm>
      ) : null}
    </Page>
  );
}

function Description({ of: flag, onChanged }: { of: Flag; onChanged: () => void }) {
  return (
    <Panel>
      <Form
        submit="Save"
        scope="gate:write"
        onSubmit={async (data) => {
          const description = textOf(data, "description") ?? null;
          await call("gate.save", { body: { flag_key: flag.flag_key, enabled: flag.enabled, description } });
          toast("Saved");
          onChanged();
        }}
      >
        <TextField name="description" label="Description" value={flag.description} />
      </Form>
    </Panel>
  );
}
