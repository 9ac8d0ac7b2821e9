import { useState } from "preact/hooks";
import type { RelayEndpoint, RelayEndpointItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber, percent } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { go, href, setQuery } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button, CurlButton } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { Status, type Tone } from "../../ui/status.tsx";
import { DateTime } from "../../ui/time.tsx";
import { EditEndpoint, RotateSecret } from "./endpoint-form.tsx";
import { PreviewBody } from "./preview-body.tsx";
import { ReplayMissing, ReplayProgress } from "./replay-missing.tsx";

/** An endpoint's state in one word. An active one whose last attempt failed is failing. */
export function stateOf({ state, health }: RelayEndpointItem): { state: string; tone: Tone } {
  if (state === "disabled") return { state, tone: "bad" };
  if (state === "paused") return { state, tone: "idle" };
  return health.failing_since === null ? { state, tone: "good" } : { state: "failing", tone: "bad" };
}

/** An endpoint: its health and its actions. */
export function Endpoint({ id, onChange }: { id: string; onChange: () => void }) {
  const params = { endpoint_id: id };
  const endpoint = useCall("relay.endpoints.read", { params }, ["relay"]);
  const [edited, setEdited] = useState<RelayEndpoint | null>(null);
  const [previewed, setPreviewed] = useState<RelayEndpoint | null>(null);
  const [replaying, setReplaying] = useState<RelayEndpoint | null>(null);
  const [rotating, setRotating] = useState<RelayEndpoint | null>(null);
  const [deleting, setDeleting] = useState<RelayEndpoint | null>(null);
  const reload = (): void => {
    endpoint.reload();
    onChange();
  };
  const set = (state: "live" | "paused", words: string) => async (): Promise<void> => {
    await call("relay.endpoints.change", { params, body: { state } });
    toast(words);
    reload();
  };
  const test = async (): Promise<void> => {
    const { relay_id } = await call("relay.endpoints.test", { params, body: {} });
    toast("Test event sent");
    go(["relay", relay_id]);
  };
  const remove = async (): Promise<void> => {
    await call("relay.endpoints.delete", { params });
    onChange();
    go(["relay", "endpoints"]);
  };
  return (
    <div class="inspector">
      <Loaded of={endpoint}>
        {(loaded) => (
          <Panel
            title={loaded.name ?? loaded.endpoint_id}
            actions={
              <div class="actions">
                <CurlButton request={requestOf("relay.endpoints.read", { params })} />
                <Button operation="relay.endpoints.change" onClick={() => setEdited(loaded)}>
                  Settings…
                </Button>
                <Button operation="relay.endpoints.secret.rotate" onClick={() => setRotating(loaded)}>
                  Rotate secret…
                </Button>
                <Button
                  operation="relay.endpoints.test"
                  disabled={loaded.state === "disabled"}
                  onClick={test}
                >
                  Send test event
                </Button>
                <Button operation="relay.endpoints.preview" onClick={() => setPreviewed(loaded)}>
                  Preview body…
                </Button>
                <Button operation="relay.endpoints.recover" onClick={() => setReplaying(loaded)}>
                  Replay missing…
                </Button>
                {loaded.owner_id === null ? null : (
                  <Button
                    operation="relay.portal.create"
                    onClick={() => setQuery({ portal: "1", owner: loaded.owner_id ?? undefined })}
                  >
                    Portal link
                  </Button>
                )}
                {loaded.state === "live" && loaded.health.breaker === "closed" ? (
                  <Button operation="relay.endpoints.change" onClick={set("paused", "Endpoint paused")}>
                    Pause
                  </Button>
                ) : (
                  <Button
                    kind="primary"
                    operation="relay.endpoints.change"
                    onClick={set("live", "Endpoint enabled; waiting deliveries are sent")}
                  >
                    Enable
                  </Button>
                )}
                <Button kind="danger" operation="relay.endpoints.delete" onClick={() => setDeleting(loaded)}>
                  Delete…
                </Button>
              </div>
            }
          >
            <EndpointFacts of={loaded} />
          </Panel>
        )}
      </Loaded>
      <ReplayProgress running={endpoint.data?.recovery_id} onDone={endpoint.reload} />
      {edited === null ? null : <EditEndpoint of={edited} onDone={reload} onClose={() => setEdited(null)} />}
      {previewed === null ? null : <PreviewBody of={previewed} onClose={() => setPreviewed(null)} />}
      {replaying === null ? null : <ReplayMissing of={replaying} onClose={() => setReplaying(null)} />}
      {rotating === null ? null : <RotateSecret of={rotating} onClose={() => setRotating(null)} />}
      {deleting === null ? null : (
        <Confirm
          title={`Delete ${deleting.name ?? deleting.url}?`}
          action="Delete endpoint"
          done="Endpoint deleted"
          onClose={() => setDeleting(null)}
          onConfirm={remove}
        >
          <p>Its pending deliveries are cancelled.</p>
        </Confirm>
      )}
    </div>
  );
}

/** The share of deliveries that succeeded in the last 24 hours, with their numbers. */
export function LastDay({ of: { delivered_24h, failed_24h } }: { of: RelayEndpoint["counts"] }) {
  const finished = delivered_24h + failed_24h;
  if (finished === 0) return <>no deliveries</>;
  return (
    <>
      {percent((100 * delivered_24h) / finished)}
      <span class="sub">
        {formatNumber(delivered_24h)} delivered, {formatNumber(failed_24h)} failed
      </span>
    </>
  );
}

function EndpointFacts({ of: one }: { of: RelayEndpoint }) {
  const { health, counts } = one;
  return (
    <Facts
      of={[
        ["State", <Status key="s" {...stateOf(one)} />],
        ...(health.disabled_reason === null ? [] : [["Disabled", health.disabled_reason] as const]),
        ["URL", one.url],
        [
          "Owner",
          one.owner_id === null ? (
            "–"
          ) : (
            <a key="o" href={href(["customers", one.owner_id])}>
              {one.owner_id}
            </a>
          ),
        ],
        ...(Object.keys(one.metadata).length === 0
          ? []
          : [["Metadata", <code key="md">{JSON.stringify(one.metadata)}</code>] as const]),
        ["Event types", one.event_types.length === 0 ? "all" : one.event_types.join(", ")],
        ["Channels", one.channels.length === 0 ? "all" : one.channels.join(", ")],
        ["Filter", one.filter === null ? "–" : <code key="f">{JSON.stringify(one.filter)}</code>],
        ...(one.template === null
          ? []
          : [["Template", <code key="tp">{JSON.stringify(one.template)}</code>] as const]),
        [
          "Signature",
          one.signature === null ? (
            "Standard Webhooks"
          ) : (
            <code key="sg">{JSON.stringify(one.signature)}</code>
          ),
        ],
        ...(one.public_key === null ? [] : [["Public key", <code key="pk">{one.public_key}</code>] as const]),
        ["Consecutive failures", health.consecutive_failures],
        ["Failing since", <DateTime key="fs" at={health.failing_since} />],
        ["Next attempt", <DateTime key="n" at={health.next_probe_at} />],
        ["Pending", counts.waiting],
        ["Last 24 hours", <LastDay key="d" of={counts} />],
        ["ID", <code key="i">{one.endpoint_id}</code>],
        [
          "Messages",
          <a key="m" href={href(["relay", "messages"])}>
            all messages
          </a>,
        ],
      ]}
    />
  );
}
