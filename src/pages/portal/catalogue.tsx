import { useState } from "preact/hooks";
import type { PortalEventType, PortalEventTypePage } from "../../client/generated/api.ts";
import { queryOf, send } from "./api.ts";
import { type Loaded, useLoaded } from "./load.ts";

/** Types that a filter is offered for: fewer are seen at a glance. */
const FILTERED_MIN = 6;

/** The event types that the link offers and the provider describes. */
export function useCatalogue(): Loaded<readonly PortalEventType[]> {
  return useLoaded("event types", readAll);
}

async function readAll(): Promise<readonly PortalEventType[]> {
  const all: PortalEventType[] = [];
  let cursor: string | undefined;
  do {
    const page = await send<PortalEventTypePage>("GET", `/event-types${queryOf({ limit: "100", cursor })}`);
    all.push(...page.event_types);
    ({ cursor } = page);
  } while (cursor !== undefined);
  return all.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** What events there are, with their samples. */
export function Catalogue() {
  const { value: types } = useCatalogue();
  const [filter, setFilter] = useState("");
  if (types === null || types.length === 0) return null;
  const text = filter.trim().toLowerCase();
  const shown = types.filter(({ name, description }) =>
    `${name} ${description ?? ""}`.toLowerCase().includes(text),
  );
  return (
    <section aria-labelledby="catalogue">
      <h2 id="catalogue">Event types</h2>
      {types.length < FILTERED_MIN ? null : (
        <label>
          Filter
          <input
            type="search"
            value={filter}
            onInput={({ currentTarget }) => setFilter(currentTarget.value)}
          />
        </label>
      )}
      {shown.map(({ name, description, schema, example }) => (
        <details key={name}>
          <summary>
            <code>{name}</code> {description}
          </summary>
          <Json title="Example" value={example} />
          <Json title="JSON Schema" value={schema} />
        </details>
      ))}
      {shown.length === 0 ? <p class="quiet">No event type contains this text.</p> : null}
    </section>
  );
}

function Json({ title, value }: { title: string; value: object | null }) {
  if (value === null) return null;
  return (
    <>
      <h3>{title}</h3>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </>
  );
}
