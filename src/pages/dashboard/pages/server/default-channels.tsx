import { call } from "../../core/api.ts";
import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { mayCall, showError, whyNot } from "../../core/session.ts";
import { Loaded } from "../../ui/feedback.tsx";
import { CheckField } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";

/** More channels than a project needs as defaults. */
const SHOWN_MAX = 100;

/** Which channels are notified about monitors that choose none. */
export function DefaultChannels() {
  const read = useCall("monitors.channels.list", { query: { limit: SHOWN_MAX } }, ["pulse"]);
  const set = (channel_id: string, on: boolean): void => {
    call("monitors.channels.change", { params: { channel_id }, body: { default: on } }).then(
      read.reload,
      showError,
    );
  };
  return (
    <Panel title="Default channels">
      <div class="stack">
        <p class="quiet">Notified about every monitor of this project that does not choose its channels.</p>
        <Loaded of={read}>
          {({ channels }) =>
            channels.length === 0 ? (
              <p>
                No channels yet. <a href={href(["monitors", "channels"], { new: "1" })}>Create one</a>.
              </p>
            ) : (
              <fieldset
                class="checks"
                disabled={!mayCall("monitors.channels.change")}
                title={whyNot("monitors.channels.change") ?? undefined}
              >
                <legend class="unseen">Default channels</legend>
                {channels.map((channel) => (
                  <CheckField
                    key={channel.id}
                    label={`${channel.name} (${channel.kind})`}
                    checked={channel.default}
                    onChange={(on) => set(channel.id, on)}
                  />
                ))}
              </fieldset>
            )
          }
        </Loaded>
      </div>
    </Panel>
  );
}
