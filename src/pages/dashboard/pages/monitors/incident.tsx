import { useState } from "preact/hooks";
import type { Incident } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count, span } from "../../core/format.ts";
import { now } from "../../core/now.ts";
import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { nameOfActor } from "../../core/session.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Form, openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Choice, TextField } from "../../ui/field.tsx";
import { DataForm } from "../../ui/form.tsx";
import { InlineSelect } from "../../ui/inline.tsx";
import { lazy } from "../../ui/lazy.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Status, type Tone } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";
import { History } from "../audit-list.tsx";
import { snoozedText } from "./incident-text.ts";
import { monitorBoxes } from "./monitor-boxes.tsx";

const ProbeStates = lazy(async () => (await import("./probe-states.tsx")).ProbeStates);

/** An update that is being written. */
type Draft = Pick<Incident["updates"][number], "status" | "message"> & {
  impact?: Incident["impact"] | undefined;
};

export const IMPACTS = [
  ["outage", "Outage"],
  ["degraded", "Degraded"],
] as const;
export const AFFECTED = { name: "monitor_ids", control: monitorBoxes("Affected monitors") } as const;

/** An incident: the update to post, its timeline, the affected monitors, and what visitors of status pages see. */
export function IncidentPage({ id }: { id: string }) {
  const incident = useCall("monitors.incidents.read", { params: { incident_id: id } }, ["pulse"]);
  const { data, reload } = incident;
  if (data !== null) return <Opened key={data.updates.length} of={data} onChanged={reload} />;
  return (
    <Page title="Incident" up={parent()}>
      <Loaded of={incident}>{() => null}</Loaded>
    </Page>
  );
}

/** The list that incidents are part of. */
function parent() {
  return [href(["monitors", "incidents"]), "Incidents"] as const;
}

interface IncidentProps {
  readonly of: Incident;
  readonly onChanged: () => void;
}

function Opened({ of: one, onChanged }: IncidentProps) {
  const [draft, setDraft] = useState<Draft>({ status: one.status, message: "" });
  return (
    <Page
      title={one.title}
      up={parent()}
      status={<IncidentState of={one} />}
      lead={<Lead of={one} />}
      request={requestOf("monitors.incidents.read", { params: { incident_id: one.id } })}
      actions={<Actions of={one} onChanged={onChanged} />}
    >
      <div class="split">
        <div class="stack">
          {one.resolved_at === null ? (
            <Composer of={one} draft={draft} onDraft={setDraft} onChanged={onChanged} />
          ) : null}
          <Timeline of={one} />
          <SeenByProbes of={one} />
        </div>
        <div class="stack">
          <Affected of={one} />
          <Preview of={one} draft={draft} />
          <History type="incident" id={one.id} />
        </div>
      </div>
    </Page>
  );
}

const TONES = { investigating: "bad", identified: "bad", monitoring: "warn", resolved: "good" } as const;

/** Status of an incident. */
export function IncidentState({ of: { status } }: { of: Pick<Incident, "status"> }) {
  return <Status state={status} tone={TONES[status]} />;
}

function Lead({ of: one }: { of: Incident }) {
  const { impact, cause, started_at, acknowledged_at, acknowledged_by, resolved_at, suppressed_by } = one;
  const snoozed = snoozedText(one);
  const after = (at: string) => `after ${span(Date.parse(at) - Date.parse(started_at))}`;
  return (
    <>
      {impact} · started <Ago at={started_at} />
      {acknowledged_at === null
        ? null
        : ` · acknowledged by ${nameOfActor(acknowledged_by ?? "")} ${after(acknowledged_at)}`}
      {snoozed === null ? null : ` · ${snoozed}`}
      {resolved_at === null ? null : ` · resolved ${after(resolved_at)}`}
      {cause === null ? null : ` · ${cause}`}
      {suppressed_by === null ? null : ` · no alert was sent: explained by ${suppressed_by}`}
    </>
  );
}

function Actions({ of: one, onChanged }: IncidentProps) {
  const params = { incident_id: one.id };
  const edit = (): void =>
    openDialog((close) => (
      <DataForm
        title="Edit incident"
        submit="Save"
        operation="monitors.incidents.change"
        params={params}
        of={one}
        fields={["title", { name: "impact", options: IMPACTS }, one.kind === "manual" ? AFFECTED : null]}
        done="Incident updated"
        onDone={onChanged}
        onClose={close}
      />
    ));
  return (
    <>
      <Button operation="monitors.incidents.change" onClick={edit}>
        Edit…
      </Button>
      <Button
        operation="monitors.incidents.change"
        onClick={async () => {
          await call("monitors.incidents.change", { params, body: { public: !one.public } });
          toast(one.public ? "Hidden from status pages" : "Shown on status pages");
          onChanged();
        }}
      >
        {one.public ? "Hide from status pages" : "Publish"}
      </Button>
      {one.resolved_at !== null || one.acknowledged_at !== null ? null : (
        <Button
          kind="primary"
          operation="monitors.incidents.acknowledge"
          onClick={async () => {
            await call("monitors.incidents.acknowledge", { params });
            toast("Acknowledged. The alert will not be repeated.");
            onChanged();
          }}
        >
          Acknowledge
        </Button>
      )}
      {one.resolved_at !== null || one.acknowledged_at !== null || one.kind === "manual" ? null : (
        <Button
          operation="monitors.incidents.snooze"
          onClick={async () => {
            await call("monitors.incidents.snooze", { params, body: {} });
            toast("Snoozed. Nobody is notified again for an hour.");
            onChanged();
          }}
        >
          Snooze 1 h
        </Button>
      )}
    </>
  );
}

/** Only a check resolves an incident that a monitor opened. */
const STATUSES = [
  ["investigating", "Investigating"],
  ["identified", "Identified"],
  ["monitoring", "Monitoring"],
  ["resolved", "Resolved"],
] as const;

function Composer(props: IncidentProps & { draft: Draft; onDraft: (draft: Draft) => void }) {
  const { of: one, draft, onDraft, onChanged } = props;
  const params = { incident_id: one.id };
  return (
    <Panel title="Post an update">
      <Form
        submit="Post update"
        operation="monitors.incidents.update"
        changed={draft.message !== ""}
        onSubmit={async () => {
          const { impact = one.impact, ...update } = draft;
          if (impact !== one.impact) await call("monitors.incidents.change", { params, body: { impact } });
          await call("monitors.incidents.update", { params, body: update });
          toast("Update posted");
          onChanged();
        }}
      >
        <div class="toolbar">
          <Choice
            label="State"
            options={STATUSES.slice(0, one.kind === "auto" ? -1 : undefined)}
            value={draft.status}
            onChange={(status) => onDraft({ ...draft, status })}
          />
          <InlineSelect
            label="Impact"
            options={IMPACTS}
            value={draft.impact ?? one.impact}
            onInput={(impact) => onDraft({ ...draft, impact: impact as Incident["impact"] })}
          />
        </div>
        <TextField
          name="message"
          label="Message"
          rows={3}
          required
          hint={audienceOf(one)}
          onInput={(message) => onDraft({ ...draft, message })}
        />
      </Form>
    </Panel>
  );
}

/** Who reads an update. */
function audienceOf({ status_pages = [] }: Incident): string {
  const shown = status_pages.filter((page) => page.shown);
  const subscribers = shown.reduce((all, page) => all + page.subscribers, 0);
  if (shown.length === 0) return "No status page shows this incident: only your team reads the update.";
  const mails = subscribers === 0 ? "" : ` and sent to ${count(subscribers, "subscriber")} by e-mail`;
  return `Shown on ${shown.map(({ title }) => title).join(", ")}${mails}.`;
}

/** States that alerts report. */
const ALERTED: Readonly<Record<string, string>> = { "monitor.down": "down", "monitor.up": "up" };
/** An alert is queued with its check, shortly after the time that the check has. */
const SAME_MS = 60_000;

/** A line of the timeline. */
interface Happening {
  readonly at: string;
  readonly type: "update" | "check" | "alert";
  readonly state: string;
  readonly tone?: Tone;
  readonly monitor: string | null;
  readonly text: string;
  readonly notified: readonly string[];
  /** Who posted an update. */
  readonly author?: string | null;
}

/** Updates, checks and alerts, newest first. An alert and its check are one line. */
function happeningsOf({ updates, alerts = [], checks = [] }: Incident): Happening[] {
  const posted = updates.map(({ at, status, message, author }) => {
    const shown = { state: status, tone: TONES[status], monitor: null, text: message, notified: [], author };
    return { at, type: "update" as const, ...shown };
  });
  const sent = alerts.map(({ at, event, monitor_id, channels }) => {
    const state = ALERTED[event] ?? event.replace("monitor.", "");
    return { at, type: "alert" as const, state, monitor: monitor_id, text: "", notified: channels };
  });
  const isOf = (check: Happening) => (alert: Happening) =>
    alert.monitor === check.monitor &&
    alert.state === check.state &&
    Math.abs(Date.parse(alert.at) - Date.parse(check.at)) < SAME_MS;
  const checked = checks.map(({ at, monitor_id, status, latency_ms, response_status, error }) => {
    const text = error ?? `${response_status ?? "OK"} in ${latency_ms} ms`;
    const line = { at, type: "check" as const, state: status, monitor: monitor_id, text, notified: [] };
    return { ...line, notified: sent.filter(isOf(line)).flatMap(({ notified }) => notified) };
  });
  const alone = sent.filter((alert) => !checked.some((check) => isOf(check)(alert)));
  return [...posted, ...checked, ...alone].sort((left, right) => right.at.localeCompare(left.at));
}

function Timeline({ of: one }: { of: Incident }) {
  const rows = happeningsOf(one);
  const event = ({ state, tone, monitor, type, text, notified, author = null }: Happening) => (
    <>
      <Status state={state} {...(tone === undefined ? {} : { tone })} />{" "}
      {author === null ? null : <span class="quiet small">by {nameOfActor(author)}</span>}
      {one.monitors?.find(({ id }) => id === monitor)?.name}
      {text === "" ? null : <p class={type === "update" ? "message" : "quiet small"}>{text}</p>}
      {notified.length === 0 ? null : <p class="quiet small">notified {notified.join(", ")}</p>}
    </>
  );
  return (
    <Panel title="Timeline" flush>
      {rows.length === 0 ? (
        <p class="more quiet">No updates, alerts or checks yet.</p>
      ) : (
        <Table
          label="Timeline"
          rows={rows}
          keyOf={(row) => `${row.at} ${rows.indexOf(row)}`}
          columns={[
            { head: "Time", cell: ({ at }) => <DateTime at={at} />, layout: "moment" },
            { head: "Event", cell: event },
            { head: "Type", cell: ({ type }) => <span class="quiet">{type}</span>, layout: "fit wide" },
          ]}
        />
      )}
    </Panel>
  );
}

/** What probes see now, or saw when the incident was opened. */
function SeenByProbes({ of: { probe_states: states = [], resolved_at } }: { of: Incident }) {
  if (states.length === 0) return null;
  return <ProbeStates states={states} note={resolved_at === null ? "Now" : "When it was opened"} />;
}

function Affected({ of: { monitors = [] } }: { of: Incident }) {
  return (
    <Panel title="Affected monitors" flush>
      {monitors.length === 0 ? (
        <p class="more quiet">None. Status pages show the incident for the whole page.</p>
      ) : (
        <Table
          label="Affected monitors"
          rows={monitors}
          keyOf={({ id }) => id}
          href={({ id }) => href(["monitors", id])}
          columns={[
            { head: "Monitor", cell: ({ name }) => name },
            { head: "Visitors see", cell: ({ state }) => <Status state={state} />, layout: "fit" },
          ]}
        />
      )}
    </Panel>
  );
}

/** The incident as visitors read it, with the update that is being written. The server composes title and names. */
function Preview({ of: one, draft }: { of: Incident; draft: Draft }) {
  const { id, started_at, resolved_at, updates, status_pages = [] } = one;
  const { impact = one.impact } = draft;
  const page = status_pages.find(({ shown }) => shown) ?? status_pages[0];
  if (page === undefined)
    return (
      <Panel title="What visitors see">
        <p class="quiet">Nothing: no published status page has these monitors or shows incidents.</p>
      </Panel>
    );
  const last = updates.at(-1);
  const written = draft.message === "" ? last : draft;
  const end = resolved_at === null ? now.value : Date.parse(resolved_at);
  return (
    <Panel title="What visitors see">
      <article class={`seen ${impact}`} aria-label="Preview">
        <h3>{page.incident_title}</h3>
        <p class="quiet small">
          {[impact, span(end - Date.parse(started_at)), page.affected].filter(Boolean).join(" · ")}
        </p>
        {written === undefined ? null : (
          <>
            <p class="small">
              <strong>{written.status}</strong> {written === draft ? "now" : <Ago at={last?.at} />}
            </p>
            <p class="message">{written.message}</p>
          </>
        )}
      </article>
      {status_pages.map(({ slug, title, shown }) => (
        <p key={slug} class="small">
          {shown ? (
            <a href={`../status/${slug}/incidents/${id}`} target="_blank" rel="noreferrer">
              On {title}
            </a>
          ) : (
            <span class="quiet">Hidden from {title}. Publish the incident to show it there.</span>
          )}
        </p>
      ))}
    </Panel>
  );
}
