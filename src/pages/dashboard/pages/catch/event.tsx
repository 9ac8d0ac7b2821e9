import type { CaughtEvent } from "../../../../client/generated/api.ts";
import { BASE_URL, call } from "../../core/api.ts";
import { copyText } from "../../core/copy.ts";
import { useResource } from "../../core/resource.ts";
import { place, setQuery } from "../../core/route.ts";
import { curlTo } from "../../core/shell.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Code, pretty } from "../../ui/code.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Choice } from "../../ui/field.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { EventAttempts } from "./event-attempts.tsx";

const TABS = [
  ["body", "Body"],
  ["raw", "Raw"],
  ["headers", "Headers"],
  ["attempts", "Attempts"],
] as const;

/** An event: its body as JSON, its raw bytes, its headers and its attempts. */
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
  const event = useResource(`event ${id}`, ["catch"], (signal) =>
    call("catch.events.get", { params }, signal),
  );
  const tab = TABS.find(([name]) => name === place.value.query.get("tab"))?.[0] ?? "body";
  const replay = async (): Promise<void> => {
    try {
      const { status, response_status } = await call("catch.events.replay", { params });
      toast(
        status === "replayed"
          ? `Replayed: the target returned ${response_status}`
          : `The target returned ${response_status}`,
      );
    } finally {
      event.reload();
      onReplayed();
    }
  };
  return (
    <div class="inspector">
      <Loaded of={event}>
        {(one) => (
          <Panel
            title={id}
            actions={
              <div class="actions">
                <Button icon="curl" onClick={() => copyText(curlOfEvent(one), "curl command")}>
                  curl
                </Button>
                <Button
                  kind="primary"
                  icon="reload"
                  scope="catch:write"
                  disabled={one.verification === "invalid"}
                  onClick={replay}
                >
                  Replay
                </Button>
              </div>
            }
          >
            <div class="toolbar">
              <Choice
                label="Part of the event"
                options={TABS}
                value={tab}
                onChange={(name) => setQuery({ tab: name })}
              />
              <Status
                state={one.verification === "none" ? "not signed" : `signature ${one.verification}`}
                tone={TONES[one.verification]}
              />
            </div>
            <Tab name={tab} of={one} />
          </Panel>
        )}
      </Loaded>
    </div>
  );
}

const TONES = { none: "idle", valid: "good", invalid: "bad" } as const;

function Tab({ name, of: event }: { name: (typeof TABS)[number][0]; of: CaughtEvent }) {
  switch (name) {
    case "body":
      return <Code what="Body" text={pretty(event.payload)} />;
    case "raw":
      return <Raw of={event} />;
    case "headers":
      return <AsItCame of={event} />;
    default:
      return <EventAttempts of={event} />;
  }
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

function Raw({ of: { id, payload_base64 } }: { of: CaughtEvent }) {
  const bytes = bytesOf(payload_base64);
  const text = textOf(bytes);
  return (
    <>
      <Code what={text === null ? "Bytes" : "Raw body"} text={text ?? hexOf(bytes)} />
      <p class="more">
        <a class="button" download={id} href={`data:application/octet-stream;base64,${payload_base64}`}>
          Download {bytes.length} bytes
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
  const body = textOf(bytesOf(payload_base64)) ?? "";
  const isPlain = method === "POST" && path === "";
  const target = `/v1/${isPlain ? "catch" : "in"}/${bucket_id}${path}${query === "" ? "" : `?${query}`}`;
  return curlTo(method, BASE_URL + target, Object.fromEntries(stored), body);
}
