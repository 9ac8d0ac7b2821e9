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
import { Moment } from "../../ui/time.tsx";
import { Exchanges } from "./exchange.tsx";

/** One delivery, with each of its attempts. */
export function Delivery({ id }: { id: string }) {
  const params = { relay_id: id };
  const delivery = useResource(`relay ${id}`, ["relay"], (signal) => call("relay.read", { params }, signal));
  const cancel = async (): Promise<void> => {
    await call("relay.cancel", { params });
    toast("The delivery is cancelled");
    delivery.reload();
  };
  const resend = async (): Promise<void> => {
    await call("relay.resend", { params });
    toast("The delivery is sent again");
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
                <p class="more quiet">None yet.</p>
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
        ["Due", <Moment key="d" at={one.scheduled_for} />],
        ["Created", <Moment key="c" at={one.created_at} />],
        ["Ended", <Moment key="f" at={one.finished_at} />],
        ["Last error", one.error ?? "–"],
        [
          "Id",
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
        { head: "#", cell: ({ attempt }) => attempt, look: "fit" },
        { head: "Began", cell: ({ started_at }) => <Moment at={started_at} />, look: "wide" },
        { head: "Took", cell: ({ duration_ms }) => span(duration_ms), look: "end" },
        { head: "Answer", cell: ({ response_status, error }) => response_status ?? error ?? "–" },
      ]}
    />
  );
}
