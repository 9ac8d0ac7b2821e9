import { useState } from "preact/hooks";
import type { PortalEndpoint, PortalEndpointBody, PortalLink } from "../../client/generated/api.ts";
import { useAction } from "./load.ts";
import { Failure } from "./parts.tsx";

interface FormProps {
  readonly link: PortalLink;
  readonly title: string;
  readonly submit: string;
  readonly endpoint?: PortalEndpoint;
  readonly onCancel: () => void;
  readonly save: (body: PortalEndpointBody) => Promise<unknown>;
}

/** URL, description and event types of an endpoint. */
export function EndpointForm({ link, title, submit, endpoint, onCancel, save }: FormProps) {
  const action = useAction();
  const [types, setTypes] = useState<readonly string[]>(endpoint?.event_types ?? []);
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    void action.run(() =>
      save({
        url: String(data.get("url")).trim(),
        description: String(data.get("description")).trim() || null,
        event_types: [...types],
      }),
    );
  };
  return (
    <form onSubmit={onSubmit} aria-label={title}>
      <h2>{title}</h2>
      <label>
        URL
        <input
          name="url"
          type="url"
          required
          placeholder="https://example.com/hooks"
          defaultValue={endpoint?.url ?? ""}
        />
      </label>
      <label>
        Description
        <input name="description" maxLength={500} defaultValue={endpoint?.description ?? ""} />
      </label>
      <Types offered={link.event_types} types={types} onChange={setTypes} />
      <Failure problem={action.problem} />
      <p class="buttons">
        <button type="submit" class="main" disabled={action.isRunning}>
          {submit}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </p>
    </form>
  );
}

interface TypesProps {
  readonly offered: readonly string[];
  readonly types: readonly string[];
  readonly onChange: (types: readonly string[]) => void;
}

/** The choice of event types: of those that are offered, or by their names. */
function Types({ offered, types, onChange }: TypesProps) {
  if (offered.length === 0)
    return (
      <label>
        Event types
        <input
          name="event_types"
          placeholder="order.paid, order.*"
          defaultValue={types.join(", ")}
          onInput={({ currentTarget }) => onChange(currentTarget.value.split(/[\s,]+/).filter(Boolean))}
        />
        <span class="quiet">Separated by commas. Leave empty for all events.</span>
      </label>
    );
  // Types that were chosen elsewhere stay selectable.
  const all = [...new Set([...offered, ...types])];
  return (
    <fieldset>
      <legend>Event types</legend>
      {all.map((type) => (
        <label key={type} class="choice">
          <input
            type="checkbox"
            checked={types.includes(type)}
            onChange={({ currentTarget }) =>
              onChange(currentTarget.checked ? [...types, type] : types.filter((chosen) => chosen !== type))
            }
          />
          {type}
        </label>
      ))}
      <span class="quiet">Choose none to receive all events.</span>
    </fieldset>
  );
}
