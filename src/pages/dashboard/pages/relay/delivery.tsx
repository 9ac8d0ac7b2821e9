import { useState } from "preact/hooks";
import type { Relay, RelayAttempt } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { bytes, formatNumber } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button, CurlButton } from "../../ui/button.tsx";
import { Attempts, Body, Headers, Inspector, Parts, ResponsePart } from "../../ui/exchange.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { NextAttempt } from "./delivery-columns.tsx";

/** A delivery with its attempts. */
export function Delivery({ id }: { id: string }) {
  const params = { relay_id: id };
  const delivery = useCall("relay.read", { params }, ["relay"]);
  const [runs, setRuns] = useState(0);
  const run = (operation: "relay.cancel" | "relay.resend", done: string) => async (): Promise<void> => {
    await call(operation, { params });
    toast(done);
    setRuns(runs + 1);
    delivery.reload();
  };
  return (
    <div class="inspector">
      <Loaded of={delivery}>
        {(loaded) => (
          <Inspector
            title={loaded.event ?? `${loaded.method} ${hostOf(loaded.target_url)}`}
            status={<Status state={loaded.status} />}
            list={["relay"]}
            actions={
              <>
                <Button
                  icon="reload"
                  kind={loaded.status === "failed" ? "primary" : undefined}
                  operation="relay.resend"
                  disabled={loaded.status !== "failed"}
                  onClick={run("relay.resend", "Delivery resent")}
                >
                  Resend
                </Button>
                {loaded.status === "scheduled" ? (
                  <Button
                    kind="danger"
                    operation="relay.cancel"
                    onClick={run("relay.cancel", "Delivery cancelled")}
                  >
                    Cancel
                  </Button>
                ) : null}
                <CurlButton request={requestOf("relay.read", { params })} />
              </>
            }
          >
            <About of={loaded} />
            <Attempts
              key={runs}
              of={loaded.attempt_log.map((attempt) => ({ ...attempt, at: attempt.started_at }))}
              empty={
                <>
                  No attempts yet. Due <DateTime at={loaded.scheduled_for} />.
                </>
              }
              end={endOf(loaded)}
            >
              {(attempt) => <Exchange of={loaded} attempt={attempt} />}
            </Attempts>
          </Inspector>
        )}
      </Loaded>
    </div>
  );
}

/** What follows the last attempt. */
function endOf(delivery: Relay) {
  if (delivery.status === "failed") return "no more attempts";
  if (delivery.status === "cancelled") return "cancelled";
  if (delivery.finished_at !== null) return null;
  return (
    <>
      next attempt <NextAttempt of={delivery} />
    </>
  );
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

function About({ of: one }: { of: Relay }) {
  const { endpoint_id, message_id, bucket_id, event_id, schedule_id } = one;
  const links: readonly (readonly [string, string | null, readonly (string | null)[]])[] = [
    ["endpoint", endpoint_id, ["relay", "endpoints", endpoint_id]],
    ["message", message_id, ["relay", "messages", message_id]],
    ["event", event_id, ["catch", bucket_id, event_id]],
    ["schedule", schedule_id, ["relay", "schedules", schedule_id]],
  ];
  return (
    <div class="small">
      <code>
        {one.method} {one.target_url}
      </code>
      <p class="quiet">
        {links.map(([name, id, at]) =>
          id === null ? null : (
            <span key={name}>
              {name} <a href={href(at as readonly string[])}>{id}</a> ·{" "}
            </span>
          ),
        )}
        created <DateTime at={one.created_at} />, <Ago at={one.created_at} /> · id <code>{one.relay_id}</code>
      </p>
    </div>
  );
}

function Exchange({ of: one, attempt }: { of: Relay; attempt: RelayAttempt | undefined }) {
  const response =
    attempt === undefined ? "Response" : `Response ${attempt.attempt} · ${attempt.response_status ?? "none"}`;
  return (
    <Parts
      of={[
        ["response", response],
        ["sent", "Sent body"],
        ["headers", "Sent headers"],
        ["received", "Response headers"],
      ]}
    >
      {(part) => (part === "sent" ? <SentBody of={one} /> : <Part name={part} of={one} attempt={attempt} />)}
    </Parts>
  );
}

interface PartProps {
  readonly name: "response" | "headers" | "received";
  readonly of: Relay;
  readonly attempt: RelayAttempt | undefined;
}

function Part({ name, of: one, attempt }: PartProps) {
  if (attempt === undefined) return <p class="quiet">No attempts yet.</p>;
  if (name === "headers") return <Headers what="Sent headers" of={attempt.request_headers} />;
  if (name === "received") return <Headers what="Response headers" of={attempt.response_headers} />;
  const { error, remote_address, response_body, response_body_base64, response_status } = attempt;
  return (
    <>
      <ResponsePart
        error={error && [error, remote_address ?? ""].filter(Boolean).join(", from ")}
        status={response_status}
        body={response_body ?? response_body_base64 ?? null}
      />
      {one.status === "failed" ? <SameResponse of={one} /> : null}
    </>
  );
}

function SentBody({ of: { relay_id, attempts, endpoint_id } }: { of: Relay }) {
  const sent = useCall("relay.body", { params: { relay_id } }, [], attempts);
  return (
    <Loaded of={sent}>
      {({ body, body_base64 = null, size_bytes }) => (
        <>
          {size_bytes === null ? null : (
            <p class="quiet small">
              {bytes(size_bytes)}
              {body_base64 === null ? "" : ", in base64"} · stored{" "}
              {endpoint_id === null
                ? "until it is delivered, then deleted"
                : "as long as its message or event"}
            </p>
          )}
          <Body what="Sent body" text={body ?? body_base64} missing="The body is not stored any more." />
        </>
      )}
    </Loaded>
  );
}

/** How many deliveries to the same target failed with the same response. */
function SameResponse({ of: { target_url, response_status } }: { of: Relay }) {
  const query = { target_url, response_status: String(response_status) };
  const same = useCall("relay.stats", response_status === null ? null : { query });
  const failed = same.data?.counts.failed ?? 0;
  if (failed < 2) return null;
  return (
    <p class="quiet small">
      The same response for {formatNumber(failed)} deliveries to this target since{" "}
      <DateTime at={same.data?.oldest_at} />.{" "}
      <a href={href(["relay"], { status: "failed", target: target_url, error: String(response_status) })}>
        Show them
      </a>
    </p>
  );
}
