import type { CaughtEvent, EventAttempt } from "../../../../client/generated/api.ts";
import { count, span } from "../../core/format.ts";
import { Facts } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { DateTime } from "../../ui/time.tsx";

/** An event's state and its delivery attempts, newest first. */
export function EventAttempts({ of: event }: { of: CaughtEvent }) {
  return (
    <div class="stack">
      <Facts
        of={[
          ["State", <Status key="s" state={event.status} />],
          ["Received", <DateTime key="r" at={event.received_at} />],
          ["Delivered", <DateTime key="d" at={event.delivered_at} />],
          ...retryFacts(event),
          ["Error", event.error ?? "–"],
        ]}
      />
      {event.attempt_log.length === 0 ? (
        <p class="quiet">No attempts yet.</p>
      ) : (
        <ol class="tries" aria-label={count(event.attempt_log.length, "try", "tries")}>
          {event.attempt_log.toReversed().map((attempt, at) => (
            <Attempt key={event.attempt_log.length - at} of={attempt} />
          ))}
        </ol>
      )}
    </div>
  );
}

/** When the next attempt is made, or when and why the retries ended. */
function retryFacts({ status, verification, next_attempt_at, attempt_log, error }: CaughtEvent) {
  if (next_attempt_at !== null) return [["Next attempt", <DateTime key="n" at={next_attempt_at} />] as const];
  const last = attempt_log.findLast(({ kind }) => kind === "forward");
  if (status !== "failed" || verification === "invalid" || last === undefined) return [];
  const ended = new Date(Date.parse(last.at) + last.duration_ms).toISOString();
  const isFinal = last.response_status === 410 || /^(blocked|invalid):/.test(error ?? "");
  return [
    ["Retries ended", <DateTime key="e" at={ended} />] as const,
    ["Reason", isFinal ? "The target rejected the event for good." : "No retries are left."] as const,
  ];
}

function Attempt({
  of: { at, kind, duration_ms, response_status, error, response_body },
}: {
  of: EventAttempt;
}) {
  return (
    <li>
      <p>
        <Status
          state={response_status === null ? "no response" : String(response_status)}
          tone={error === null ? "good" : "bad"}
        />
        <span>{kind}</span>
        <span class="quiet small">
          <DateTime at={at} /> · {span(duration_ms)}
        </span>
      </p>
      {response_status === null ? <p class="small">{error}</p> : null}
      {response_body === null || response_body === "" ? null : (
        <details>
          <summary>Response</summary>
          <pre>{response_body}</pre>
        </details>
      )}
    </li>
  );
}
