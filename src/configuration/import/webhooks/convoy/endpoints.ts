import { SECOND_MS } from "../../../../kernel/time/units.ts";
import { type Draft, Secret } from "../../draft.ts";
import { SourceObject, shown } from "../../source.ts";
import { basicAuthorization, perSecondOf, SECRET_FORM, secretHeader, timeoutOf } from "../endpoints.ts";
import { STATE, seconds } from "./fields.ts";
import type { Project } from "./project.ts";
import type { Subscription } from "./subscriptions.ts";

/** Measurements and states of endpoints. */
const MEASURED = [
  ...["events", "failure_rate", "cb_state", "period_failure_rate"],
  ...["success_count", "failure_count", "retry_count"],
];

/** An endpoint before its subscriptions. */
export interface Endpoint {
  readonly source: SourceObject;
  readonly name: string;
  readonly values: Readonly<Record<string, unknown>>;
  /** Whether the receiver would get what it does not expect. */
  isHeld: boolean;
  /** Names of the endpoints of incoming events, by their differing settings. */
  readonly added: Map<string, string | null>;
  subscriptions: number;
}

/** Reads an endpoint into `endpoints`, by its id. @throws StartupError */
export function endpointOf(
  draft: Draft,
  value: unknown,
  project: Project,
  endpoints: Map<string, Endpoint>,
): void {
  const source = new SourceObject(draft, "endpoint", value);
  const id = source.text("uid");
  // Formerly `title` and `target_url`.
  const name = source.text("name") ?? source.text("title") ?? id ?? "endpoint";
  source.label = `endpoint ${shown(name)}`;
  const state = source.text("status");
  const isPaused = state === "paused" || state === "inactive" || source.flag("is_disabled");
  const isAdvanced = source.flag("advanced_signatures");
  if (isAdvanced)
    source.note("advanced_signatures", "are not supported: its receiver must verify by Standard Webhooks");
  const authentication = authenticationOf(source);
  const contentType = source.text("content_type");
  const isForm = contentType !== null && contentType !== "application/json";
  if (isForm) source.note("content_type", `${shown(contentType)} is not supported: bodies are JSON`);
  const certificate = source.any("mtls_client_cert");
  if (certificate !== null) source.note("mtls_client_cert", "client certificates are not supported");
  const signature = isAdvanced ? null : project.signature;
  const timeout = seconds(source, "http_timeout");
  const rate = source.number("rate_limit") ?? 0;
  const period = seconds(source, "rate_limit_duration");
  source.ignore(...STATE, ...MEASURED);
  const values = {
    url: source.text("url") ?? source.text("target_url"),
    description: source.text("description"),
    owner_id: source.text("owner_id"),
    timeout_ms: timeout === 0 ? null : timeoutOf(source, "http_timeout", timeout * SECOND_MS),
    max_per_second: rate === 0 || period === 0 ? null : perSecondOf(source, "rate_limit", rate, period),
    disable_after_hours: project.disableAfterHours,
    // Convoy sends the data of the event alone.
    format: "raw",
    headers: authentication.headers,
    state: isPaused ? "paused" : null,
    signature,
    secret: secretOf(source, signature !== null),
  };
  source.rest();
  endpoints.set(id ?? name, {
    source,
    name,
    values,
    isHeld: signature === null || isForm || certificate !== null || !authentication.isWhole,
    added: new Map(),
    subscriptions: 0,
  });
}

/** The secret without an end. One of Convoy signs as a text, whatever its form. */
function secretOf(source: SourceObject, isText: boolean): Secret {
  const secrets = source.list("secrets").map((value) => new SourceObject(source.draft, "secret", value));
  const isCurrent = (secret: SourceObject) => {
    const end = secret.any("expires_at");
    return end === null || end === 0 || end === "";
  };
  const current = secrets.find(isCurrent)?.text("value") ?? null;
  if (secrets.some((secret) => !isCurrent(secret)))
    source.note("secrets", "only the one without an end is carried over, others are in their grace time");
  return current === null || !isText ? Secret.unknown(SECRET_FORM) : new Secret(current);
}

/** `isWhole`: whether requests carry all that the receiver expects. */
function authenticationOf(endpoint: SourceObject): {
  headers: Readonly<Record<string, Secret>> | null;
  isWhole: boolean;
} {
  const value = endpoint.any("authentication");
  if (value === null) return { headers: null, isWhole: true };
  const authentication = new SourceObject(
    endpoint.draft,
    `${endpoint.label}: authentication`,
    value,
    "endpoint",
  );
  const type = authentication.text("type") ?? "";
  const { draft } = endpoint;
  if (type === "" || type === "noop") return { headers: null, isWhole: true };
  if (type === "api_key") {
    const key = new SourceObject(draft, authentication.label, authentication.any("api_key") ?? {});
    return {
      headers: secretHeader(key.text("header_name") ?? "Authorization", key.text("header_value")),
      isWhole: true,
    };
  }
  if (type === "basic_auth") {
    const basic = new SourceObject(draft, authentication.label, authentication.any("basic_auth") ?? {});
    const text = basicAuthorization(basic.text("username") ?? "", basic.text("password") ?? "");
    return { headers: secretHeader("Authorization", text), isWhole: true };
  }
  endpoint.note("authentication", `${shown(type)} is not supported`);
  return { headers: null, isWhole: false };
}

/** Adds an endpoint that receives what a subscription selects. Returns its name; null if it cannot exist. */
export function addEndpoint(endpoint: Endpoint, subscription: Subscription, name: string): string | null {
  const isHeld = endpoint.isHeld || subscription.isHeld;
  if (isHeld)
    endpoint.source.noteChange(
      "state",
      "is paused, since its receiver would get something else: see the notes of what is lost",
    );
  const isIncoming = subscription.sourceId !== null;
  if (isIncoming && endpoint.values["owner_id"] !== null)
    endpoint.source.noteChange("owner_id", "is empty: endpoints of customers receive no events of buckets");
  return endpoint.source.draft.add({
    section: "endpoints",
    name,
    subject: endpoint.source,
    values: {
      ...endpoint.values,
      event_types: subscription.eventTypes,
      // The filters of incoming events are those of the targets.
      ...(isIncoming ? { owner_id: null } : { filter: subscription.filter }),
      retry_schedule: subscription.retrySchedule,
      ...(isHeld ? { state: "paused" } : {}),
    },
  });
}

/** The targets of a bucket by a subscription, at most one. Subscriptions that differ in their filters alone share an endpoint. */
export function targetOf(
  subscription: Subscription,
  endpoints: ReadonlyMap<string, Endpoint>,
): readonly unknown[] {
  const endpoint = endpoints.get(subscription.endpointId);
  if (endpoint === undefined) return [];
  const { eventTypes, retrySchedule, isHeld, filter } = subscription;
  const key = JSON.stringify([eventTypes, retrySchedule, isHeld]);
  const name = endpoint.added.get(key) ?? addEndpoint(endpoint, subscription, endpoint.name);
  endpoint.added.set(key, name);
  return name === null ? [] : [{ endpoint: name, ...(filter === null ? {} : { filter }) }];
}
