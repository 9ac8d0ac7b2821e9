/** Responses of the API of Convoy, in the shape of its reference. */

const TIMES = { created_at: "2030-01-05T10:00:00Z", updated_at: "2030-02-01T08:30:00Z", deleted_at: null };
const PROJECT_ID = "01JQ8ZT3H8T7C2D5Z3N9W6V4KA";

/** A response of the API. */
export function response(data: unknown) {
  return { status: true, message: "fetched successfully", data };
}

/** A page of a list. */
export function page(content: readonly unknown[], hasNextPage = false) {
  return response({
    content,
    pagination: {
      per_page: 20,
      has_next_page: hasNextPage,
      has_prev_page: false,
      prev_page_cursor: "",
      next_page_cursor: "",
    },
  });
}

/** A project, with members of its `config` in place of the default ones. */
export function project(config: Readonly<Record<string, unknown>> = {}) {
  return response({
    uid: PROJECT_ID,
    name: "Billing",
    logo_url: "",
    organisation_id: "01JQ8ZS4W0B6M1E8R2X7Y5T3PC",
    type: "outgoing",
    config: {
      max_payload_read_size: 51_200,
      replay_attacks_prevention_enabled: false,
      add_event_id_trace_headers: false,
      disable_endpoint: false,
      multiple_endpoint_subscriptions: false,
      search_policy: "720h",
      ssl: { enforce_secure_endpoints: true },
      ratelimit: { count: 0, duration: 0 },
      strategy: { type: "linear", duration: 100, retry_count: 10 },
      signature: {
        header: "X-Convoy-Signature",
        versions: [{ uid: "01JQ8ZT3H9", hash: "SHA256", encoding: "hex", created_at: TIMES.created_at }],
      },
      meta_event: { is_enabled: false, type: "", event_type: null, url: "", secret: "", pub_sub: null },
      circuit_breaker: { sample_rate: 30, failure_threshold: 70 },
      ...config,
    },
    statistics: null,
    retained_events: 0,
    ...TIMES,
  });
}

/** An endpoint. */
export function endpoint(name: string, members: Readonly<Record<string, unknown>> = {}) {
  return {
    uid: `ep-${name}`,
    project_id: PROJECT_ID,
    owner_id: "acme",
    url: `https://${name}.example.com/hooks`,
    name,
    secrets: [{ uid: "01JQ8ZT3HB", value: `secret of ${name} in Convoy`, expires_at: null, ...TIMES }],
    advanced_signatures: false,
    description: "",
    status: "active",
    http_timeout: 10,
    authentication: { type: "" },
    rate_limit: 0,
    rate_limit_duration: 0,
    content_type: "application/json",
    failure_rate: 0.2,
    cb_state: null,
    ...TIMES,
    ...members,
  };
}

/** A subscription of an endpoint, to a source if that is given. */
export function subscription(
  name: string,
  endpointName: string,
  members: Readonly<Record<string, unknown>> = {},
) {
  return {
    uid: `sub-${name}`,
    name,
    type: "api",
    project_id: PROJECT_ID,
    function: null,
    source_metadata: null,
    endpoint_metadata: endpoint(endpointName),
    device_metadata: null,
    filter_config: {
      event_types: ["*"],
      filter: { is_flattened: false, headers: {}, body: {}, query: {}, path: {} },
    },
    delivery_mode: "at_least_once",
    ...TIMES,
    ...members,
  };
}

/** A filter of a subscription. */
export function filterConfig(eventTypes: readonly string[], filter: Readonly<Record<string, unknown>>) {
  return {
    event_types: eventTypes,
    filter: { is_flattened: true, headers: null, body: null, query: null, path: null, ...filter },
  };
}

/** A source of incoming events. */
export function source(name: string, members: Readonly<Record<string, unknown>> = {}) {
  return {
    uid: `src-${name}`,
    project_id: PROJECT_ID,
    mask_id: "GzuS7KiIFPyyFrG5",
    name,
    url: "https://dashboard.example.com/ingest/GzuS7KiIFPyyFrG5",
    type: "http",
    provider: "",
    is_disabled: false,
    verifier: { type: "noop", hmac: null, basic_auth: null, api_key: null },
    custom_response: { body: "", content_type: "" },
    provider_config: null,
    forward_headers: null,
    pub_sub: { type: "", workers: 0, sqs: null, google: null, kafka: null, amqp: null },
    idempotency_keys: null,
    event_type_location: "",
    body_function: null,
    header_function: null,
    ...TIMES,
    ...members,
  };
}
