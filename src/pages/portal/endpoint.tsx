import { useEffect, useState } from "preact/hooks";
import type {
  PortalEndpoint,
  PortalEndpointRead,
  PortalLink,
  RelayEndpointTested,
} from "../../client/generated/api.ts";
import { send } from "./api.ts";
import { useCatalogue } from "./catalogue.tsx";
import { Deliveries } from "./deliveries.tsx";
import { EndpointForm } from "./endpoint-form.tsx";
import { State, typesOf } from "./endpoints.tsx";
import { type Action, useAction, useLoaded } from "./load.ts";
import { ActionButton, ConfirmedButton, Failure, Waiting } from "./parts.tsx";
import { Replay, ReplayProgress } from "./replay.tsx";
import { Secret } from "./secret.tsx";
import { go, href } from "./session.ts";

/** One endpoint: its settings, secret, test and deliveries. */
export function Endpoint({ id, link }: { id: string; link: PortalLink }) {
  const path = `/endpoints/${encodeURIComponent(id)}`;
  const { value, problem, reload } = useLoaded(id, () => send<PortalEndpointRead>("GET", path));
  const action = useAction();
  const [isEditing, setEditing] = useState(false);
  const [isReplaying, setReplaying] = useState(false);
  const [run, setRun] = useState<string | null>(null);
  const [sent, setSent] = useState(0);
  const catalogue = useCatalogue();
  const [testType, setTestType] = useState("");
  const running = value?.recovery_id;
  // One that was started before this visit; its end is shown until it is closed.
  useEffect(() => {
    if (running !== undefined) setRun(running);
  }, [running]);
  const back = <a href={href()}>All endpoints</a>;
  if (value === null)
    return (
      <>
        <nav>{back}</nav>
        <Waiting problem={problem} />
      </>
    );
  const change = (body: object): Promise<unknown> =>
    action.run(async () => {
      await send<PortalEndpoint>("PATCH", path, body);
      await reload();
    });
  const types = catalogue.value ?? [];
  const test = async (): Promise<void> => {
    const type =
      testType !== ""
        ? testType
        : (value.event_types.find((pattern) => !pattern.endsWith(".*")) ?? link.event_types[0]);
    const body = type === undefined ? {} : { event_type: type };
    await send<RelayEndpointTested>("POST", `${path}/test`, body);
    setSent(sent + 1);
  };
  return (
    <>
      <nav>{back}</nav>
      <header>
        <h1 tabIndex={-1} class="url">
          {value.url}
        </h1>
        <State endpoint={value} />
      </header>
      <Trouble endpoint={value} />
      {isEditing ? (
        <EndpointForm
          link={link}
          title="Edit endpoint"
          submit="Save"
          endpoint={value}
          onCancel={() => setEditing(false)}
          save={async (body) => {
            await send<PortalEndpoint>("PATCH", path, body);
            await reload();
            setEditing(false);
          }}
        />
      ) : (
        <Facts endpoint={value} />
      )}
      {types.length === 0 ? null : (
        <label>
          Event of the test
          <select value={testType} onChange={({ currentTarget }) => setTestType(currentTarget.value)}>
            <option value="">any</option>
            {types.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <p class="buttons">
        <ActionButton action={action} kind="main" onClick={() => void action.run(test)}>
          Send test event
        </ActionButton>
        {isEditing ? null : (
          <button type="button" onClick={() => setEditing(true)}>
            Edit
          </button>
        )}
        {isReplaying || value.state !== "live" ? null : (
          <button type="button" onClick={() => setReplaying(true)}>
            Replay missing
          </button>
        )}
        <StateButton endpoint={value} action={action} change={change} />
        <ConfirmedButton
          action={action}
          ask="Really delete?"
          onClick={() =>
            void action.run(async () => {
              await send("DELETE", path);
              go();
            })
          }
        >
          Delete
        </ConfirmedButton>
      </p>
      <Failure problem={action.problem} />
      {isReplaying ? (
        <Replay
          path={path}
          onCancel={() => setReplaying(false)}
          onStart={(id) => {
            setReplaying(false);
            setRun(id);
          }}
        />
      ) : null}
      {run === null ? null : (
        <ReplayProgress
          key={run}
          id={run}
          onClose={() => {
            setRun(null);
            setSent(sent + 1);
          }}
        />
      )}
      <Secret path={path} endpoint={value} />
      <Deliveries key={sent} endpointId={id} />
    </>
  );
}

function StateButton(props: {
  endpoint: PortalEndpoint;
  action: Action;
  change: (body: object) => Promise<unknown>;
}) {
  const { endpoint, action, change } = props;
  const isLive = endpoint.state === "live";
  return (
    <ActionButton action={action} onClick={() => void change({ state: isLive ? "paused" : "live" })}>
      {isLive ? "Pause" : endpoint.state === "paused" ? "Resume" : "Enable"}
    </ActionButton>
  );
}

/** Why the endpoint receives nothing. */
function Trouble({ endpoint: { state, health } }: { endpoint: PortalEndpoint }) {
  if (state === "disabled")
    return (
      <p class="failure">
        This endpoint is disabled: {health.disabled_reason ?? "its deliveries failed"}. Enable it when it
        works again.
      </p>
    );
  if (state === "live" && health.consecutive_failures > 0)
    return <p class="failure">The last {health.consecutive_failures} attempts failed.</p>;
  return null;
}

function Facts({ endpoint }: { endpoint: PortalEndpointRead }) {
  const { description, counts, template, order_by } = endpoint;
  return (
    <dl>
      {description === null || description === "" ? null : (
        <>
          <dt>Description</dt>
          <dd>{description}</dd>
        </>
      )}
      {template === null ? null : (
        <>
          <dt>Body</dt>
          <dd>
            made by a template: <code>{JSON.stringify(template)}</code>
          </dd>
        </>
      )}
      {order_by === null ? null : (
        <>
          <dt>In order by</dt>
          <dd>
            <code>{order_by}</code>
          </dd>
        </>
      )}
      <dt>Event types</dt>
      <dd>{typesOf(endpoint)}</dd>
      <dt>Last 24 hours</dt>
      <dd>
        {counts.delivered_24h} delivered, {counts.failed_24h} failed, {counts.waiting} pending
      </dd>
    </dl>
  );
}
