import type { BucketTarget } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import type { Control } from "../../ui/data-form.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { CheckField } from "../../ui/field.tsx";

/** Endpoints that the form lists: the newest. */
const LISTED_MAX = 100;

/** The endpoints of the project that may receive the events of buckets. */
export function useBucketEndpoints() {
  return useResource("endpoints of buckets", ["relay"], async (signal) => {
    const found = await call("relay.endpoints.list", { query: { limit: LISTED_MAX } }, signal);
    return found.endpoints.filter(({ owner_id }) => owner_id === null);
  });
}

/** A choice of the endpoints that receive a bucket's events. Those that stay keep their filters. */
export const TargetFields: Control = ({ value, onChange }) => {
  const targets = (value ?? []) as readonly BucketTarget[];
  const endpoints = useBucketEndpoints();
  const find = (id: string) => targets.find(({ endpoint_id }) => endpoint_id === id);
  const choose = (endpoint_id: string, on: boolean): void => {
    const others = targets.filter((target) => target.endpoint_id !== endpoint_id);
    onChange(on ? [...others, { endpoint_id }] : others);
  };
  return (
    <fieldset class="checks">
      <legend>Endpoints</legend>
      <Loaded of={endpoints}>
        {(all) =>
          all.length === 0 ? (
            <p class="quiet">
              No endpoints yet. <a href={href(["relay", "endpoints"], { new: "1" })}>Create one</a> first.
            </p>
          ) : (
            all.map(({ endpoint_id, name, url }) => (
              <CheckField
                key={endpoint_id}
                label={`${name ?? url}${find(endpoint_id)?.filter == null ? "" : " (filtered)"}`}
                checked={find(endpoint_id) !== undefined}
                onChange={(on) => choose(endpoint_id, on)}
              />
            ))
          )
        }
      </Loaded>
    </fieldset>
  );
};
