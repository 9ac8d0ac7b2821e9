import { useState } from "preact/hooks";
import type { PortalResend, RelayResendMatched, RelayResendStarted } from "../../client/generated/api.ts";
import { DAY_MS, MINUTE_MS } from "../dashboard/core/format.ts";
import { send } from "./api.ts";
import { useAction, useLoaded, usePolling } from "./load.ts";
import { ActionButton, Failure, Waiting } from "./parts.tsx";

/** A time for a `datetime-local` field: local time without a zone. */
function localTime(at: number): string {
  const zone = new Date(at).getTimezoneOffset() * MINUTE_MS;
  return new Date(at - zone).toISOString().slice(0, "2026-03-10T12:00".length);
}

function eventsOf({ matched, more }: RelayResendMatched): string {
  return `${matched}${more === true ? "+" : ""} ${matched === 1 ? "event" : "events"}`;
}

interface ReplayProps {
  readonly path: string;
  readonly onStart: (resendId: string) => void;
  readonly onCancel: () => void;
}

/** Counts the events of a time that the endpoint missed, and then replays them. */
export function Replay({ path, onStart, onCancel }: ReplayProps) {
  const action = useAction();
  const [counted, setCounted] = useState<RelayResendMatched | null>(null);
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const timeOf = (name: string): number => Date.parse(String(data.get(name)));
    const period = {
      since: timeOf("since"),
      ...(data.get("until") === "" ? {} : { until: timeOf("until") }),
    };
    void action.run(async () => {
      if (counted === null) {
        const body = { ...period, dry_run: true };
        setCounted(await send<RelayResendMatched>("POST", `${path}/recover`, body));
        return;
      }
      const body = { ...period, per_second: Number(data.get("per_second")) };
      const started = await send<RelayResendStarted>("POST", `${path}/recover`, body);
      onStart(started.resend_id);
    });
  };
  const recount = (): void => setCounted(null);
  return (
    <form onSubmit={onSubmit} aria-label="Replay missing events">
      <h2>Replay missing events</h2>
      <p class="quiet">
        Sends the events of the last 7 days that this endpoint did not receive: it was disabled, was added
        later, or the delivery failed.
      </p>
      <label>
        Since
        <input
          name="since"
          type="datetime-local"
          required
          defaultValue={localTime(Date.now() - DAY_MS)}
          onInput={recount}
        />
      </label>
      <label>
        Until
        <input name="until" type="datetime-local" onInput={recount} />
        <span class="quiet">Leave empty for now.</span>
      </label>
      <label>
        Speed
        <select name="per_second">
          {[10, 5, 1].map((rate) => (
            <option key={rate} value={rate}>
              {rate} per second
            </option>
          ))}
        </select>
      </label>
      <p role="status">{counted === null ? "" : `${eventsOf(counted)} missing.`}</p>
      <Failure problem={action.problem} />
      <p class="buttons">
        <button type="submit" class="main" disabled={action.isRunning || counted?.matched === 0}>
          {counted === null ? "Count" : `Replay ${eventsOf(counted)}`}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </p>
    </form>
  );
}

const WORDS = { running: "running", done: "finished", cancelled: "stopped" } as const;

/** The progress of a replay, which can be stopped. */
export function ReplayProgress({ id, onClose }: { id: string; onClose: () => void }) {
  const path = `/resends/${encodeURIComponent(id)}`;
  const { value, problem, reload } = useLoaded(id, () => send<PortalResend>("GET", path));
  const action = useAction();
  const isRunning = value?.status === "running";
  usePolling(isRunning, reload);
  if (value === null) return <Waiting problem={problem} />;
  return (
    <section aria-label="Replay">
      <p role="status">
        Replay {WORDS[value.status]}: {value.resent} of {value.matched} sent
        {value.skipped === 0 ? "" : `, ${value.skipped} skipped`}
        {value.error === null ? "" : ` (${value.error})`}
      </p>
      <Failure problem={problem ?? action.problem} />
      <p class="buttons">
        {isRunning ? (
          <ActionButton
            action={action}
            onClick={() =>
              void action.run(async () => {
                await send<PortalResend>("DELETE", path);
                await reload();
              })
            }
          >
            Stop
          </ActionButton>
        ) : (
          <button type="button" onClick={onClose}>
            Close
          </button>
        )}
      </p>
    </section>
  );
}
