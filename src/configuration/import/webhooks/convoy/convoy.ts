import { StartupError } from "../../../../kernel/errors.ts";
import type { Draft } from "../../draft.ts";
import { isObject, SourceObject, shown } from "../../source.ts";
import { addEventType } from "../event-types.ts";
import { itemsOf, type PageForm } from "../pages.ts";
import { addEndpoint, type Endpoint, endpointOf } from "./endpoints.ts";
import { STATE } from "./fields.ts";
import { projectOf } from "./project.ts";
import { sourceOf } from "./sources.ts";
import { subscriptionOf } from "./subscriptions.ts";

const PAGE: PageForm = {
  product: "Convoy",
  itemsKey: "content",
  ignored: [],
  moreKey: "pagination",
  hasMore: (pagination) => isObject(pagination) && pagination["has_next_page"] === true,
  further: "next_page_cursor",
};

/**
 * Imports a project of Convoy: `{project, endpoints, subscriptions, sources, event_types}`, of which each member is a response
 * of its API, its `data`, or a list. Endpoints or sources are required. @throws StartupError
 */
export function importConvoy(draft: Draft, value: unknown): void {
  if (!isObject(value) || !("endpoints" in value || "sources" in value))
    throw new StartupError(
      'The file of Convoy must be {"project": …, "endpoints": …, "subscriptions": …, "sources": …, "event_types": …}, with responses of its API.',
    );
  const all = new SourceObject(draft, "Convoy", value);
  const listed = (name: string) => {
    const member = dataOf(all.any(name));
    return member === null ? [] : itemsOf(draft, member, name.replace("_", " "), PAGE);
  };
  const project = projectOf(draft, dataOf(all.any("project")));
  for (const type of listed("event_types")) eventTypeOf(draft, type);
  const endpoints = new Map<string, Endpoint>();
  for (const item of listed("endpoints")) endpointOf(draft, item, project, endpoints);
  const subscriptions = listed("subscriptions").flatMap((item) => subscriptionOf(draft, item, project) ?? []);
  for (const subscription of subscriptions) {
    const endpoint = endpoints.get(subscription.endpointId);
    if (endpoint === undefined)
      subscription.source.noteLoss("endpoint_metadata", "is no endpoint of the file");
    else endpoint.subscriptions += 1;
  }
  for (const endpoint of endpoints.values()) {
    const outgoing = subscriptions.filter(
      ({ endpointId, sourceId }) => sourceId === null && endpoints.get(endpointId) === endpoint,
    );
    if (outgoing.length > 1)
      endpoint.source.noteChange("subscriptions", "are an endpoint each, with the subscription's name");
    for (const subscription of outgoing)
      addEndpoint(endpoint, subscription, outgoing.length === 1 ? endpoint.name : subscription.name);
    if (endpoint.subscriptions > 0) continue;
    endpoint.source.noteChange("state", "is paused: it has no subscription, so that it received nothing");
    draft.add({
      section: "endpoints",
      name: endpoint.name,
      subject: endpoint.source,
      values: { ...endpoint.values, state: "paused" },
    });
  }
  for (const item of listed("sources")) sourceOf(draft, item, subscriptions, endpoints);
  all.rest();
}

/** What a response of the API contains. */
function dataOf(value: unknown): unknown {
  return isObject(value) && "data" in value && "status" in value ? value["data"] : value;
}

function eventTypeOf(draft: Draft, value: unknown): void {
  const type = new SourceObject(draft, "event type", value);
  const name = type.text("name") ?? "";
  type.label = `event type ${shown(name)}`;
  // It stands for all types.
  if (name === "*") return;
  const description = type.text("description");
  const schema = type.any("json_schema");
  const archived = type.text("deprecated_at") !== null;
  type.ignore(...STATE);
  type.rest();
  addEventType(type, { name, description, schema, archived });
}
