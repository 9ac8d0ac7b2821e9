import { useState } from "preact/hooks";
import type { RelayAttempt } from "../../../../client/generated/api.ts";
import { Code } from "../../ui/code.tsx";
import { Choice } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";

/** What was sent in an attempt, and what came back; of several, one. */
export function Exchanges({ of: attempts }: { of: readonly RelayAttempt[] }) {
  const [chosen, setChosen] = useState("");
  const kept = attempts.filter(({ request_headers }) => request_headers !== null);
  const shown = kept.find(({ attempt }) => String(attempt) === chosen) ?? kept.at(-1);
  if (shown === undefined) return null;
  return (
    <Panel title={`Attempt ${shown.attempt}`}>
      {kept.length === 1 ? null : (
        <div class="toolbar">
          <Choice
            label="Attempt"
            options={kept.map(({ attempt }) => [String(attempt), `#${attempt}`] as const)}
            value={String(shown.attempt)}
            onChange={setChosen}
          />
        </div>
      )}
      <Exchange of={shown} />
    </Panel>
  );
}

function Exchange({ of: attempt }: { of: RelayAttempt }) {
  const { request_headers, response_headers, response_status, error, remote_address } = attempt;
  return (
    <div class="stack">
      <h3>Sent</h3>
      <Code what="Headers that were sent" text={linesOf(request_headers)} />
      <h3>{response_status === null ? "No answer" : `Answer ${response_status}`}</h3>
      {response_headers === null ? (
        <p class="quiet">{error}</p>
      ) : (
        <>
          <p class="quiet small">From {remote_address}</p>
          <Code what="Headers of the answer" text={linesOf(response_headers)} />
          <Body of={attempt} />
        </>
      )}
    </div>
  );
}

function Body({ of: { response_body, response_body_base64 } }: { of: RelayAttempt }) {
  if (response_body === "") return <p class="quiet">It has no body.</p>;
  if (response_body !== null) return <Code what="Body of the answer" text={response_body} />;
  return <Code what="Body of the answer in base64" text={response_body_base64 ?? ""} />;
}

function linesOf(headers: Readonly<Record<string, string>> | null): string {
  const lines = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  return lines.join("\n");
}
