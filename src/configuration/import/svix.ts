import { StartupError } from "../../kernel/errors.ts";
import { SECRET_NAMES } from "../../kernel/secrets/secret-names.ts";
import { type Draft, Secret } from "./draft.ts";
import { isObject, SourceObject, shown } from "./source.ts";

/** A secret of the form that endpoints accept. The API lists endpoints without theirs. */
const SECRET_FORM = `whsec_${Buffer.alloc(24).toString("base64")}`;

/** Names of the state of an endpoint or an application. */
const STATE = ["createdAt", "updatedAt", "id", "version"];

/**
 * Imports endpoints of Svix. Accepted: the response to `GET /api/v1/app/{app_id}/endpoint/`, a list of endpoints, or
 * `{applications, endpoints, event_types}`: applications as the API lists them, endpoints by the id or uid of their
 * application, event types as listed. An endpoint may have the members `headers` and `secret` of its other resources.
 * `owner`: owner of endpoints without an application. @throws StartupError
 */
export function importSvix(draft: Draft, value: unknown, owner: string | null): void {
  const isWhole = isObject(value) && "endpoints" in value;
  if (!isWhole) {
    for (const endpoint of items(draft, value, "endpoints")) endpointOf(draft, endpoint, owner);
    return;
  }
  const all = new SourceObject(draft, "Svix", value);
  const owners = new Map<string, string>();
  const applications = all.any("applications");
  for (const application of applications === null ? [] : items(draft, applications, "applications"))
    applicationOf(draft, application, owners);
  const endpoints = all.any("endpoints");
  const isByApplication = isObject(endpoints) && !("data" in endpoints);
  if (!isByApplication)
    for (const endpoint of items(draft, endpoints, "endpoints")) endpointOf(draft, endpoint, owner);
  else
    for (const [application, list] of Object.entries(endpoints)) {
      const ownerId = owners.get(application) ?? application;
      for (const endpoint of items(draft, list, `endpoints of ${shown(application)}`))
        endpointOf(draft, endpoint, ownerId);
    }
  const types = all.any("event_types");
  const count = types === null ? 0 : items(draft, types, "event types").length;
  if (count > 0)
    all.note(
      "event_types",
      `${count} are not carried over: messages can have any type, and there is no catalog`,
    );
  all.rest();
}

/** The items of a page, or of a list. @throws StartupError */
function items(draft: Draft, value: unknown, label: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (!isObject(value) || !Array.isArray(value["data"]))
    throw new StartupError(`The ${label} of Svix must be a list, or {"data": […]} as the API returns them.`);
  const page = new SourceObject(draft, `Svix ${label}`, value);
  const list = page.list("data");
  page.ignore("iterator", "prevIterator");
  if (page.any("done") === false)
    page.note(
      "done",
      "there are further pages: request them with iterator, and import all items in one list",
    );
  page.rest();
  return list;
}

function applicationOf(draft: Draft, value: unknown, owners: Map<string, string>): void {
  const application = new SourceObject(draft, "application", value);
  const id = application.text("id");
  const uid = application.text("uid");
  application.label = `application ${shown(uid ?? id ?? "")}`;
  if (id !== null) owners.set(id, uid ?? id);
  application.ignore(...STATE, "name");
  application.rest();
}

function endpointOf(draft: Draft, value: unknown, owner: string | null): void {
  const endpoint = new SourceObject(draft, "endpoint", value);
  const id = endpoint.text("id");
  const uid = endpoint.text("uid");
  const description = endpoint.text("description");
  endpoint.label = `endpoint ${shown(uid ?? id ?? description ?? "")}`;
  const name = uid ?? id ?? description ?? "endpoint";
  const types = endpoint.texts("filterTypes");
  const channels = endpoint.texts("channels");
  const metadata = endpoint.any("metadata");
  const isTexts = isObject(metadata) && Object.values(metadata).every((value) => typeof value === "string");
  if (metadata !== null && !isTexts)
    throw new StartupError(`${endpoint.label}: metadata must be texts by name.`);
  const values = {
    url: endpoint.text("url"),
    description,
    event_types: types.length === 0 ? null : types,
    channels: channels.length === 0 ? null : channels,
    // Formerly `rateLimit`.
    max_per_second: endpoint.number("throttleRate") ?? endpoint.number("rateLimit"),
    metadata: isTexts && Object.keys(metadata).length > 0 ? metadata : null,
    state: endpoint.flag("disabled") ? "paused" : null,
    owner_id: owner,
    // Svix sends the payload alone.
    format: "raw",
    headers: headersOf(endpoint),
    secret: secretOf(endpoint),
  };
  endpoint.ignore(...STATE, "rateLimit");
  endpoint.rest();
  draft.add({ section: "endpoints", name, subject: endpoint, values });
}

/** A text, or `{key}` as the API returns it. */
function secretOf(endpoint: SourceObject): Secret {
  const secret = endpoint.any("secret");
  const text = isObject(secret)
    ? new SourceObject(endpoint.draft, `${endpoint.label}: secret`, secret).text("key")
    : endpoint.text("secret");
  return text === null ? Secret.unknown(SECRET_FORM) : new Secret(text);
}

/** `{"X-Name": "value"}`, or `{headers, sensitive}` as the API returns them, where sensitive values are missing. */
function headersOf(endpoint: SourceObject): Readonly<Record<string, unknown>> | null {
  const source = endpoint.any("headers");
  if (source === null) return null;
  if (!isObject(source)) throw new StartupError(`${endpoint.label}: headers must be an object.`);
  const isResponse = isObject(source["headers"]);
  const plain = isResponse ? (source["headers"] as Readonly<Record<string, unknown>>) : source;
  const sensitive = isResponse && Array.isArray(source["sensitive"]) ? source["sensitive"] : [];
  const headers = Object.entries(plain).map(([name, value]) => {
    if (typeof value !== "string")
      throw new StartupError(`${endpoint.label}: header ${shown(name)} must be a text.`);
    return [name, SECRET_NAMES.has(name.toLowerCase()) ? new Secret(value) : value] as const;
  });
  const hidden = sensitive
    .filter((name): name is string => typeof name === "string")
    .map((name) => [name, Secret.unknown("a")] as const);
  const all = Object.fromEntries([...headers, ...hidden]);
  return Object.keys(all).length === 0 ? null : all;
}
