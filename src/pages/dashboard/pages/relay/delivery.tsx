import type { Relay, RelayAttempt } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { span } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button, CurlButton } from "../../ui/button.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { DateTime } from "../../ui/time.tsx";
import { Exchanges } from "./exchange.tsx";

/** A delivery with its attempts. */
export function Delivery({ id }: { id: string }) {
  const params = { relay_id: id };
  const delivery = useResource(`relay ${id}`, ["relay"], (signal) => call("relay.read", { params }, signal));
  const cancel = async (): Promise<void> => {
    await call("relay.cancel", { params });
    toast("Delivery cancelled");
    delivery.reload();
  };
  const resend = async (): Promise<void> => {
    await call("relay.resend", { params });
    toast("Delivery resent");
    delivery.reload();
  };
  return (
    <div class="inspector">
      <Loaded of={delivery}>
        {(one) => (
          <div class="stack">
            <Panel
              title={`${one.method} ${hostOf(one.target_url)}`}
              actions={
                <div class="actions">
                  <CurlButton request={requestOf("relay.read", { params })} />
                  <Button
                    icon="reload"
                    kind={one.status === "failed" ? "primary" : undefined}
                    scope="relay:write"
                    disabled={one.status !== "failed"}
                    onClick={resend}
                  >
                    Resend
                  </Button>
                  <Button
                    kind="danger"
                    scope="relay:write"
                    disabled={one.status !== "scheduled"}
                    onClick={cancel}
                  >
                    Cancel
                  </Button>
                </div>
              }
            >
              <DeliveryFacts of={one} />
            </Panel>
            <Panel title="Attempts" flush>
              {one.attempt_log.length === 0 ? (
                <p class="more quiet">No attempts yet.</p>
              ) : (
                <Attempts of={one.attempt_log} />
              )}
            </Panel>
            <Exchanges of={one.attempt_log} />
          </div>
        )}
      </Loaded>
    </div>
  );
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

function DeliveryFacts({ of: one }: { of: Relay }) {
  return (
    <Facts
      of={[
        ["State", <Status key="s" state={one.status} />],
        ["Target", one.target_url],
        ["Due", <DateTime key="d" at={one.scheduled_for} />],
        ["Created", <DateTime key="c" at={one.created_at} />],
        ["Finished", <DateTime key="f" at={one.finished_at} />],
        ["Last error", one.error ?? "–"],
        [
          "ID",
          <code key="i" class="long">
            {one.relay_id}
          </code>,
        ],
      ]}
    />
  );
}

function Attempts({ of: attempts }: { of: readonly RelayAttempt[] }) {
  return (
    <Table
      label="Attempts"
      rows={attempts}
      keyOf={({ attempt }) => String(attempt)}
      columns={[
        { head: "#", cell: ({ attempt }) => attempt, layout: "fit" },
        { head: "Started", cell: ({ started_at }) => <DateTime at={started_at} />, layout: "wide" },
        { head: "Duration", cell: ({ duration_ms }) => span(duration_ms), layout: "end" },
        { head: "Response", cell: ({ response_status, error }) => response_status ?? error ?? "–" },
      ]}
    />
  );
}
