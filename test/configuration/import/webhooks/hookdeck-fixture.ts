/** Responses of the API of Hookdeck, version 2025-07-01, in the shape of its reference. */

const TEAM = { team_id: "tm_5b3mzbxk83bdyhq" };
const TIMES = { created_at: "2030-01-05T10:00:00.000Z", updated_at: "2030-02-01T08:30:00.000Z" };

/** A page of a list. */
export function page(models: readonly unknown[], next?: string) {
  return {
    models,
    pagination: { order_by: "created_at", dir: "desc", limit: 100, ...(next === undefined ? {} : { next }) },
    count: models.length,
  };
}

/** A source. */
export function source(name: string, type = "HTTP", config: Readonly<Record<string, unknown>> = {}) {
  return {
    id: `src_${name}`,
    name,
    description: null,
    ...TEAM,
    url: `https://hkdk.events/${name}`,
    type,
    authenticated: true,
    config: { custom_response: null, ...config },
    disabled_at: null,
    ...TIMES,
  };
}

/** A destination with a URL. */
export function destination(name: string, config: Readonly<Record<string, unknown>> = {}, type = "HTTP") {
  return {
    id: `des_${name}`,
    name,
    description: null,
    ...TEAM,
    type,
    config: {
      url: `https://${name}.example.com/hooks`,
      rate_limit: null,
      rate_limit_period: null,
      path_forwarding_disabled: false,
      http_method: null,
      auth_type: "HOOKDECK_SIGNATURE",
      auth: {},
      ...config,
    },
    disabled_at: null,
    ...TIMES,
  };
}

/** A connection of a source and a destination. */
export function connection(
  from: ReturnType<typeof source>,
  to: ReturnType<typeof destination>,
  rules: readonly unknown[] = [],
  members: Readonly<Record<string, unknown>> = {},
) {
  return {
    id: `web_${from.name}_${to.name}`,
    name: null,
    full_name: `${from.name} -> ${to.name}`,
    description: null,
    ...TEAM,
    source: from,
    destination: to,
    rules,
    disabled_at: null,
    paused_at: null,
    ...TIMES,
    ...members,
  };
}
