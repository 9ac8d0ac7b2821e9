import type { PortalDelivery, RelayAttempt, RelaySentBody } from "../../client/generated/api.ts";
import { send } from "./api.ts";
import { DeliveryStatus, isPending } from "./deliveries.tsx";
import { useAction, useLoaded, usePolling } from "./load.ts";
import { ActionButton, Badge, CopyButton, Failure, Time, Waiting } from "./parts.tsx";
import { href } from "./session.ts";

/** Most characters of a text that are shown: more would make the page slow. */
const SHOWN_MAX = 256 * 1024;

/** One delivery: its body and all attempts. */
export function Delivery({ id }: { id: string }) {
  const path = `/deliveries/${encodeURIComponent(id)}`;
  const { value, problem, reload } = useLoaded(id, () => send<PortalDelivery>("GET", path));
  const action = useAction();
  usePolling(value !== null && isPending(value), reload);
  if (value === null)
    return (
      <>
        <nav>
          <a href={href()}>All endpoints</a>
        </nav>
        <Waiting problem={problem} />
      </>
    );
  const resend = async (): Promise<void> => {
    await send("POST", `${path}/resend`);
    await reload();
  };
  return (
    <>
      <nav>
        <a href={href("endpoints", value.endpoint_id)}>Back to the endpoint</a>
      </nav>
      <header>
        <h1 tabIndex={-1}>{value.event_type}</h1>
        <DeliveryStatus delivery={value} />
      </header>
      <dl>
        <dt>URL</dt>
        <dd class="url">{value.url}</dd>
        <dt>Created</dt>
        <dd>
          <Time at={value.created_at} />
        </dd>
        <dt>webhook-id</dt>
        <dd>
          <code>{value.message_id}</code>
        </dd>
        {isPending(value) && value.next_attempt_at !== null ? (
          <>
            <dt>Next attempt</dt>
            <dd>
              <Time at={value.next_attempt_at} />
            </dd>
          </>
        ) : null}
        {value.error === null ? null : (
          <>
            <dt>Error</dt>
            <dd>{value.error}</dd>
          </>
        )}
      </dl>
      {isPending(value) || value.status === "cancelled" ? null : (
        <p class="buttons">
          <ActionButton action={action} kind="main" onClick={() => void action.run(resend)}>
            Resend
          </ActionButton>
        </p>
      )}
      <Failure problem={action.problem} />
      <Body id={id} payload={value.payload} />
      <section aria-labelledby="attempts">
        <h2 id="attempts">Attempts</h2>
        {value.attempt_log.length === 0 ? <p class="quiet">No attempts yet.</p> : null}
        <ol class="cards">
          {value.attempt_log.toReversed().map((attempt) => (
            <li key={attempt.attempt}>
              <Attempt attempt={attempt} />
            </li>
          ))}
        </ol>
      </section>
    </>
  );
}

/** The bytes that are sent: receivers compute the signature over them. Without the endpoint, only the payload is known. */
function Body({ id, payload }: { id: string; payload: object | null }) {
  const read = () => send<RelaySentBody>("GET", `/deliveries/${encodeURIComponent(id)}/body`);
  const { value, problem } = useLoaded(id, read);
  const text = value?.body ?? null;
  return (
    <section aria-labelledby="body">
      <header>
        <h2 id="body">{value !== null && text === null && payload !== null ? "Payload" : "Body"}</h2>
        {text === null ? null : <CopyButton text={text} label="body" />}
      </header>
      {value === null ? (
        <Waiting problem={problem} />
      ) : text !== null ? (
        <>
          <p class="quiet">{value.size_bytes} bytes. The signature covers exactly these bytes.</p>
          <Code text={text} />
        </>
      ) : payload === null ? (
        <p class="quiet">The body is not stored any more.</p>
      ) : (
        <Code text={JSON.stringify(payload, null, 2)} />
      )}
    </section>
  );
}

function Attempt({ attempt }: { attempt: RelayAttempt }) {
  const { error, response_status, duration_ms, started_at, response_body, request_headers } = attempt;
  const { response_headers, response_body_base64, attempt: number } = attempt;
  return (
    <details class="card">
      <summary>
        <span>Attempt {number}</span>
        <Badge tone={error === null ? "good" : "bad"}>{response_status ?? "No response"}</Badge>
        <span class="quiet">
          <Time at={started_at} />, {duration_ms} ms
        </span>
      </summary>
      {error === null ? null : <p>{error}</p>}
      <Headers name="Request headers" headers={request_headers} />
      <Headers name="Response headers" headers={response_headers} />
      {response_body === null || response_body === "" ? null : (
        <>
          <h3>Response</h3>
          <Code text={response_body} />
        </>
      )}
      {response_body_base64 === undefined ? null : (
        <>
          <h3>Response (base64)</h3>
          <Code text={response_body_base64} />
        </>
      )}
    </details>
  );
}

function Headers({ name, headers }: { name: string; headers: Readonly<Record<string, string>> | null }) {
  if (headers === null) return null;
  const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}`);
  return (
    <>
      <h3>{name}</h3>
      <Code text={lines.join("\n")} />
    </>
  );
}

function Code({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <pre tabIndex={0}>{text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text}</pre>
  );
}
