import { useState } from "preact/hooks";
import type {
  CaughtEvent,
  EventAttempt,
  EventReplayed,
  EventReplayQueued,
} from "../../../../client/generated/api.ts";
import { BASE_URL, call } from "../../core/api.ts";
import { copyText } from "../../core/copy.ts";
import { download } from "../../core/download.ts";
import { bytes, count } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { curlTo } from "../../core/shell.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Code, pretty } from "../../ui/code.tsx";
import { Attempts, Inspector, Parts, ResponsePart } from "../../ui/exchange.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { EndpointDeliveries } from "../relay/endpoint-deliveries.tsx";

/** An event: its attempts with their responses, its body as JSON and as bytes, and its headers. */
export function EventView({
  bucket,
  id,
  onReplayed,
}: {
  bucket: string;
  id: string;
  onReplayed: () => void;
}) {
  const params = { bucket_id: bucket, event_id: id };
  const event = useCall("catch.events.get", { params }, ["catch"]);
  const [replays, setReplays] = useState(0);
  const replay = async (): Promise<void> => {
    try {
      toast(replayedText(await call("catch.events.replay", { params })));
    } finally {
      setReplays(replays + 1);
      event.reload();
      onReplayed();
    }
  };
  const confirm = async (): Promise<void> => {
    try {
      await call("catch.events.confirm", { params });
      toast("Subscription confirmed");
    } finally {
      setReplays(replays + 1);
      event.reload();
    }
  };
  return (
    <div class="inspector">
      <Loaded of={event}>
        {(loaded) => (
          <Inspector
            title={loaded.event_type ?? id}
            status={<Status state={loaded.status} />}
            list={["catch", bucket]}
            actions={
              <>
                {isConfirmation(loaded) ? (
                  <Button
                    kind="primary"
                    operation="catch.events.confirm"
                    disabled={loaded.verification !== "valid" || isConfirmed(loaded)}
                    onClick={confirm}
                  >
                    Confirm subscription
                  </Button>
                ) : (
                  <Button
                    kind="primary"
                    icon="reload"
                    operation="catch.events.replay"
                    disabled={loaded.verification === "invalid"}
                    onClick={replay}
                  >
                    Replay
                  </Button>
                )}
                <Button icon="curl" onClick={() => copyText(curlOfEvent(loaded), "curl command")}>
                  curl
                </Button>
              </>
            }
          >
            <p class="small quiet">
              <code>{id}</code> · received <DateTime at={loaded.received_at} /> ·{" "}
              <Status
                state={loaded.verification === "none" ? "not signed" : `signature ${loaded.verification}`}
                tone={TONES[loaded.verification]}
              />
            </p>
            <Attempts
              key={replays}
              of={loaded.attempt_log.map((attempt) => ({
                ...attempt,
                note: attempt.kind === "forward" ? attempt.endpoint_id : attempt.kind,
              }))}
              empty="No attempts yet."
              end={endOf(loaded)}
            >
              {(attempt) => (
                <>
                  {loaded.deliveries.length === 0 ? null : (
                    <EndpointDeliveries of={loaded.deliveries.toReversed()} />
                  )}
                  <Parts
                    of={[
                      ["response", "Response"],
                      ["body", "Body"],
                      ["raw", "Raw"],
                      ["headers", "Headers"],
                    ]}
                  >
                    {(part) => <Part name={part} of={loaded} attempt={attempt} />}
                  </Parts>
                </>
              )}
            </Attempts>
          </Inspector>
        )}
      </Loaded>
    </div>
  );
}

/** Whether an event requests the confirmation of a subscription. */
function isConfirmation({ provider, event_type }: CaughtEvent): boolean {
  return provider === "sns" && event_type === "SubscriptionConfirmation";
}

function isConfirmed({ attempt_log }: CaughtEvent): boolean {
  return attempt_log.some(({ kind, error }) => kind === "confirm" && error === null);
}

/** When the next attempt is made, or why the retries ended. */
function endOf({ status, verification, next_attempt_at, attempt_log, error }: CaughtEvent) {
  if (next_attempt_at !== null)
    return (
      <>
        next attempt <Ago at={next_attempt_at} />
      </>
    );
  if (status !== "failed" || verification === "invalid") return null;
  const last = attempt_log.findLast(({ kind }) => kind === "forward");
  const isFinal = last?.response_status === 410 || /^(blocked|invalid):/.test(error ?? "");
  return isFinal ? "no more attempts: the target rejected the event for good" : "no more attempts";
}

function replayedText(replay: EventReplayed | EventReplayQueued): string {
  if (replay.status === "queued")
    return `Queued: ${count(replay.deliveries.length, "delivery", "deliveries")}`;
  const returned = `he target returned ${replay.response_status}`;
  return replay.status === "replayed" ? `Replayed: t${returned}` : `T${returned}`;
}

const TONES = { none: "idle", valid: "good", invalid: "bad" } as const;

interface PartProps {
  readonly name: "response" | "body" | "raw" | "headers";
  readonly of: CaughtEvent;
  readonly attempt: EventAttempt | undefined;
}

function Part({ name, of: event, attempt }: PartProps) {
  if (name === "raw") return <Raw of={event} />;
  if (name === "headers") return <AsItCame of={event} />;
  if (name === "body")
    return (
      <>
        <p class="quiet small">{bytes(event.size_bytes)} · as received; its targets get the same bytes</p>
        {event.payload_base64 === null ? (
          <Raw of={event} />
        ) : (
          <Code what="Body" text={pretty(event.payload)} />
        )}
      </>
    );
  const { error = event.error, response_status = null, response_body = null } = attempt ?? {};
  return <ResponsePart error={error} status={response_status} body={response_body} />;
}

/** The request line and the headers in their order. */
function AsItCame({ of: event }: { of: CaughtEvent }) {
  const { method, path, query, remote_address, event_type, provider_event_id, duplicates } = event;
  const facts: readonly (readonly [string, string | null])[] = [
    ["Request", `${method} ${path === "" ? "/" : path}${query === "" ? "" : `?${query}`}`],
    ...[["From", remote_address] as const, ["Event type", event_type] as const],
    ...[
      ["Provider's event id", provider_event_id] as const,
      ["Duplicates", duplicates === 0 ? null : String(duplicates)] as const,
    ],
    ...event.headers_list.map(([name = "", value = ""]) => [name, value] as const),
  ];
  return (
    <Facts
      of={facts.flatMap(([name, value], at) =>
        value === null ? [] : [[name, <code key={`${at} ${name}`}>{value}</code>] as const],
      )}
    />
  );
}

function Raw({ of: { id, payload_base64, raw_url, size_bytes } }: { of: CaughtEvent }) {
  if (payload_base64 === null)
    return (
      <p class="more">
        <Button onClick={() => download(raw_url ?? "", id)}>Download {bytes(size_bytes)}</Button>
      </p>
    );
  const raw = bytesOf(payload_base64);
  const text = textOf(raw);
  return (
    <>
      <Code what={text === null ? "Bytes" : "Raw body"} text={text ?? hexOf(raw)} />
      <p class="more">
        <a class="button" download={id} href={`data:application/octet-stream;base64,${payload_base64}`}>
          Download {raw.length} bytes
        </a>
      </p>
    </>
  );
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function textOf(bytes: Uint8Array<ArrayBuffer>): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

const ROW = 16;
/** Bytes that are shown as a hex dump. */
const ROWS_MAX = 4096;

function hexOf(bytes: Uint8Array<ArrayBuffer>): string {
  const rows: string[] = [];
  for (let at = 0; at < bytes.length && rows.length < ROWS_MAX; at += ROW) {
    const row = [...bytes.subarray(at, at + ROW)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    rows.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(ROW * 3)} ${text}`);
  }
  return rows.join("\n");
}

/** Headers that the next hop sets itself. */
const HOP_HEADERS = ["host", "content-length", "connection", "transfer-encoding", "accept-encoding"];

/** The same request to the same bucket. */
function curlOfEvent({ bucket_id, method, path, query, headers, payload_base64 }: CaughtEvent): string {
  const stored = Object.entries(headers).filter(([name]) => !HOP_HEADERS.includes(name.toLowerCase()));
  const body = payload_base64 === null ? "" : (textOf(bytesOf(payload_base64)) ?? "");
  const isPlain = method === "POST" && path === "";
  const target = `/v1/${isPlain ? "catch" : "in"}/${bucket_id}${path}${query === "" ? "" : `?${query}`}`;
  return curlTo(method, BASE_URL + target, Object.fromEntries(stored), body);
}
