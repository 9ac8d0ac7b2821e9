import { useState } from "preact/hooks";
import { call, requestOf } from "../../core/api.ts";
import { useCall } from "../../core/resource.ts";
import { go } from "../../core/route.ts";
import { Button, CurlButton } from "../../ui/button.tsx";
import { Code, pretty } from "../../ui/code.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { DateTime } from "../../ui/time.tsx";
import { EventTypeSettings } from "./event-type-form.tsx";

/** An event type: its schema, its example, and whether its messages fit. */
export function EventTypeView({ name, onChange }: { name: string; onChange: () => void }) {
  const params = { name };
  const type = useCall("relay.event_types.read", { params }, ["relay"]);
  const [isEditing, setEditing] = useState(false);
  const [isArchiving, setArchiving] = useState(false);
  const reload = (): void => {
    type.reload();
    onChange();
  };
  const archive = async (): Promise<void> => {
    await call("relay.event_types.delete", { params });
    onChange();
    go(["relay", "event-types"]);
  };
  return (
    <div class="inspector">
      <Loaded of={type}>
        {(loaded) => (
          <div class="stack">
            <Panel
              title={loaded.name}
              actions={
                <div class="actions">
                  <CurlButton request={requestOf("relay.event_types.read", { params })} />
                  <Button operation="relay.event_types.save" onClick={() => setEditing(true)}>
                    Settings…
                  </Button>
                  <Button
                    kind="danger"
                    operation="relay.event_types.delete"
                    disabled={loaded.archived}
                    onClick={() => setArchiving(true)}
                  >
                    Archive…
                  </Button>
                </div>
              }
            >
              <Facts
                of={[
                  ["Description", loaded.description ?? "–"],
                  ["Messages that do not fit", loaded.enforce ? "are rejected" : "are reported"],
                  ["Invalid in the last 24 hours", loaded.invalid_24h],
                  ["Changed", <DateTime key="c" at={loaded.updated_at} />],
                ]}
              />
            </Panel>
            {loaded.schema === null ? null : (
              <Panel title="Schema">
                <Code text={pretty(loaded.schema)} what="Schema" />
              </Panel>
            )}
            {loaded.example === null ? null : (
              <Panel title="Example">
                <Code text={pretty(loaded.example)} what="Example" />
              </Panel>
            )}
            {isEditing ? (
              <EventTypeSettings name={name} of={loaded} onDone={reload} onClose={() => setEditing(false)} />
            ) : null}
          </div>
        )}
      </Loaded>
      {isArchiving ? (
        <Confirm
          title={`Archive ${name}?`}
          action="Archive event type"
          done="Event type archived"
          onClose={() => setArchiving(false)}
          onConfirm={archive}
        >
          <p>Its messages are sent as before, and not checked any more.</p>
        </Confirm>
      ) : null}
    </div>
  );
}
