import { useState } from "preact/hooks";
import type { PortalEndpoint, PortalEndpointPage, PortalLink } from "../../client/generated/api.ts";
import { queryOf, send } from "./api.ts";
import { Catalogue } from "./catalogue.tsx";
import { EndpointForm } from "./endpoint-form.tsx";
import { useLoaded } from "./load.ts";
import { Badge, Waiting } from "./parts.tsx";
import { go, href } from "./session.ts";

/** All endpoints: an owner has few, so they are read at once. */
async function readAll(): Promise<readonly PortalEndpoint[]> {
  const all: PortalEndpoint[] = [];
  let cursor: string | undefined;
  do {
    const page = await send<PortalEndpointPage>("GET", `/endpoints${queryOf({ limit: "100", cursor })}`);
    all.push(...page.endpoints);
    ({ cursor } = page);
  } while (cursor !== undefined);
  return all;
}

export function Endpoints({ link }: { link: PortalLink }) {
  const { value: all, problem } = useLoaded("endpoints", readAll);
  const [isAdding, setAdding] = useState(false);
  if (all === null) return <Waiting problem={problem} />;
  return (
    <>
      <header>
        <h1 tabIndex={-1}>Webhooks</h1>
        {isAdding || all.length >= link.endpoints_max ? null : (
          <button type="button" class="main" onClick={() => setAdding(true)}>
            Add endpoint
          </button>
        )}
      </header>
      {isAdding ? (
        <EndpointForm
          link={link}
          title="New endpoint"
          submit="Add"
          onCancel={() => setAdding(false)}
          save={async (body) => {
            const created = await send<PortalEndpoint>("POST", "/endpoints", body);
            go("endpoints", created.endpoint_id);
          }}
        />
      ) : null}
      {all.length === 0 && !isAdding ? (
        <p class="quiet">You have no endpoints yet. An endpoint is a URL of yours that receives events.</p>
      ) : null}
      <ul class="cards">
        {all.map((endpoint) => (
          <li key={endpoint.endpoint_id}>
            <a class="card" href={href("endpoints", endpoint.endpoint_id)}>
              <span class="url">{endpoint.url}</span>
              <State endpoint={endpoint} />
              <span class="quiet">
                {endpoint.description === null || endpoint.description === ""
                  ? typesOf(endpoint)
                  : endpoint.description}
              </span>
            </a>
          </li>
        ))}
      </ul>
      <Catalogue />
    </>
  );
}

/** The state of an endpoint for people. */
export function State({
  endpoint: { state, health },
}: {
  endpoint: Pick<PortalEndpoint, "state" | "health">;
}) {
  if (state === "disabled") return <Badge tone="bad">Disabled</Badge>;
  if (state === "paused") return <Badge tone="warn">Paused</Badge>;
  return health.failing_since === null ? (
    <Badge tone="good">Active</Badge>
  ) : (
    <Badge tone="bad">Failing</Badge>
  );
}

export function typesOf({ event_types }: Pick<PortalEndpoint, "event_types">): string {
  return event_types.length === 0 ? "All events" : event_types.join(", ");
}
