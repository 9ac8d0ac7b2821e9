import { useState } from "preact/hooks";
import type { RelayAttempt } from "../../../../client/generated/api.ts";
import { Code } from "../../ui/code.tsx";
import { Choice } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";

/** The request and response of an attempt, with a choice of attempts. */
export function Exchanges({ of: attempts }: { of: readonly RelayAttempt[] }) {
  const [chosen, setChosen] = useState("");
  const stored = attempts.filter(({ request_headers }) => request_headers !== null);
  const selected = stored.find(({ attempt }) => String(attempt) === chosen) ?? stored.at(-1);
  if (selected === undefined) return null;
  return (
    <Panel title={`Attempt ${selected.attempt}`}>
      {stored.length === 1 ? null : (
        <div class="toolbar">
          <Choice
            label="Attempt"
            options={stored.map(({ attempt }) => [String(attempt), `#${attempt}`] as const)}
            value={String(selected.attempt)}
            onChange={setChosen}
          />
        </div>
      )}
      <Exchange of={selected} />
    </Panel>
  );
}

function Exchange({ of: attempt }: { of: RelayAttempt }) {
  const { request_headers, response_headers, response_status, error, remote_address } = attempt;
  return (
    <div class="stack">
      <h3>Request</h3>
      <Code what="Request headers" text={linesOf(request_headers)} />
      <h3>{response_status === null ? "No response" : `Response ${response_status}`}</h3>
      {response_headers === null ? (
        <p class="quiet">{error}</p>
      ) : (
        <>
          <p class="quiet small">From {remote_address}</p>
          <Code what="Response headers" text={linesOf(response_headers)} />
          <Body of={attempt} />
        </>
      )}
    </div>
  );
}

function Body({ of: { response_body, response_body_base64 } }: { of: RelayAttempt }) {
  if (response_body === "") return <p class="quiet">No body.</p>;
  if (response_body !== null) return <Code what="Response body" text={response_body} />;
  return <Code what="Response body in base64" text={response_body_base64 ?? ""} />;
}

function linesOf(headers: Readonly<Record<string, string>> | null): string {
  const lines = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  return lines.join("\n");
}
