import { StartupError } from "../../../kernel/errors.ts";
import { type Draft, Secret } from "../draft.ts";
import { isObject, SourceObject, shown } from "../source.ts";
import { headerValue, SECRET_FORM } from "./endpoints.ts";
import { addEventType } from "./event-types.ts";
import { itemsOf, type PageForm } from "./pages.ts";

/** Secrets of endpoints that sign with a private key. */
const PRIVATE_KEY_PREFIX = "whsk_";
const PRIVATE_KEY_BYTES = 32;

const PAGE: PageForm = {
  product: "Svix",
  itemsKey: "data",
  ignored: ["iterator", "prevIterator"],
  moreKey: "done",
  hasMore: (done) => done === false,
  further: "iterator",
};

/** Names of the state of an endpoint, an application or an event type. */
const STATE = ["createdAt", "updatedAt", "id", "version"];

/**
 * Imports endpoints and event types of Svix. Accepted: the response to `GET /api/v1/app/{app_id}/endpoint/`, a list of
 * endpoints, or `{applications, endpoints, event_types}`: applications as the API lists them, endpoints by the id or uid of
 * their application, event types as listed. An endpoint may have the members `headers` and `secret` of its other resources.
 * `owner`: owner of endpoints without an application. @throws StartupError
 */
export function importSvix(draft: Draft, value: unknown, owner: string | null): void {
  const isWhole = isObject(value) && "endpoints" in value;
  if (!isWhole) {
    for (const endpoint of itemsOf(draft, value, "endpoints", PAGE)) endpointOf(draft, endpoint, owner);
    return;
  }
  const all = new SourceObject(draft, "Svix", value);
  const owners = new Map<string, string>();
  const applications = all.any("applications");
  for (const application of applications === null ? [] : itemsOf(draft, applications, "applications", PAGE))
    applicationOf(draft, application, owners);
  const endpoints = all.any("endpoints");
  const isByApplication = isObject(endpoints) && !("data" in endpoints);
  if (!isByApplication)
    for (const endpoint of itemsOf(draft, endpoints, "endpoints", PAGE)) endpointOf(draft, endpoint, owner);
  else
    for (const [application, list] of Object.entries(endpoints)) {
      const ownerId = owners.get(application) ?? application;
      for (const endpoint of itemsOf(draft, list, `endpoints of ${shown(application)}`, PAGE))
        endpointOf(draft, endpoint, ownerId);
    }
  const types = all.any("event_types");
  for (const type of types === null ? [] : itemsOf(draft, types, "event types", PAGE))
    eventTypeOf(draft, type);
  all.rest();
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

function eventTypeOf(draft: Draft, value: unknown): void {
  const type = new SourceObject(draft, "event type", value);
  const name = type.text("name") ?? "";
  type.label = `event type ${shown(name)}`;
  const description = type.text("description");
  const schemas = type.any("schemas");
  const versions = isObject(schemas) ? Object.keys(schemas).sort((a, b) => Number(a) - Number(b)) : [];
  const newest = versions.at(-1);
  if (versions.length > 1)
    type.note("schemas", `only version ${shown(newest ?? "")}, the newest, is carried over`);
  const isDeprecated = type.flag("deprecated");
  const isArchived = type.flag("archived");
  type.ignore(...STATE);
  type.rest();
  if (isDeprecated && !isArchived)
    type.noteChange("deprecated", "is not shown to customers: archive the type instead");
  addEventType(type, {
    name,
    description,
    schema: isObject(schemas) && newest !== undefined ? schemas[newest] : null,
    archived: isArchived,
  });
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
    ...signatureOf(endpoint),
  };
  endpoint.ignore(...STATE, "rateLimit");
  endpoint.rest();
  draft.add({ section: "endpoints", name, subject: endpoint, values });
}

/** The secret is a text, or `{key}` as the API returns it. Its form says how the endpoint signs. */
function signatureOf(endpoint: SourceObject): Readonly<Record<string, unknown>> {
  const secret = endpoint.any("secret");
  const text = isObject(secret)
    ? new SourceObject(endpoint.draft, `${endpoint.label}: secret`, secret).text("key")
    : endpoint.text("secret");
  if (text === null) return { secret: Secret.unknown(SECRET_FORM) };
  if (!text.startsWith(PRIVATE_KEY_PREFIX)) return { secret: new Secret(text) };
  // Behind the key, some forms have the public key, which follows from it.
  const bytes = Buffer.from(text.slice(PRIVATE_KEY_PREFIX.length), "base64").subarray(0, PRIVATE_KEY_BYTES);
  const key = `${PRIVATE_KEY_PREFIX}${bytes.toString("base64")}`;
  return { signature: { scheme: "ed25519" }, secret: new Secret(key) };
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
    return [name, headerValue(name, value)] as const;
  });
  const hidden = sensitive
    .filter((name): name is string => typeof name === "string")
    .map((name) => [name, Secret.unknown("a")] as const);
  const all = Object.fromEntries([...headers, ...hidden]);
  return Object.keys(all).length === 0 ? null : all;
}
