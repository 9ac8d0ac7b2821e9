import { SET_BUCKET } from "./views.ts";

/** Calls the API. @throws Error unless it succeeds */
type Call = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<Record<string, unknown>>;

/** Creates data for every page of the console, for pictures and tests. */
export async function fillConsole(url: string, key: string): Promise<void> {
  const call = callsTo(url, key);
  await fillAccount(call);
  await fillMeters(call);
  await fillTraffic(call, url);
  await fillNotary(call);
  const { plan } = await call("GET", "/v1/admin/backups");
  if (plan !== null) await call("POST", "/v1/admin/backups");
}

/** Creates data of a server on which everything works. */
export async function fillCalmly(url: string, key: string): Promise<void> {
  const call = callsTo(url, key);
  for (const [name, scopes] of KEYS) await call("POST", "/v1/keys", { name, prefix: "sm", scopes });
  for (const flag of FLAGS) await call("POST", "/v1/gate", flag);
  await fillMeters(call);
  await call("POST", "/v1/latch/monthly-invoices/acquire", { ttl: 300_000, timeout: 1_000 });
  const inbox = await call("POST", "/v1/catch/buckets", {
    target_url: "https://example.com/hooks",
    name: "Orders",
  });
  const target_url = `${url}/v1/in/${inbox["id"]}`;
  for (let at = 0; at < CALM_DELIVERIES; at += 1)
    await call("POST", "/v1/relay", {
      target_url,
      method: "POST",
      delay: "0s",
      payload: { order: 1_000 + at },
    });
  await fillNotary(call);
}

/** Deliveries of a server on which everything works. */
const CALM_DELIVERIES = 8;

/** Calls the API of a server with a key. */
function callsTo(url: string, key: string): Call {
  return async (method, path, body, headers) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? {} : JSON.parse(text);
  };
}

const KEYS = [
  ["Warehouse", ["*"]],
  ["CI", ["gate:read", "relay:write"]],
  ["Mobile app", ["gate:read", "meter:read", "catch:read", "pulse:read"]],
] as const;

const FLAGS = [
  { flag_key: "dark-mode", enabled: true, description: "Colours for the night" },
  { flag_key: "beta-search", enabled: false, description: "Search with typing mistakes forgiven" },
  { flag_key: "old-basket", enabled: true, archived: true },
  {
    flag_key: "new-checkout",
    enabled: true,
    description: "Checkout in one step",
    tags: ["team:checkout"],
    rules: [
      {
        name: "Our own people",
        when: [{ attribute: "email", op: "ends_with", values: ["@acme.com"], ignore_case: true }],
        serve: { variant: "on" },
      },
      {
        name: "Paying customers",
        when: [
          { attribute: "plan", op: "in", values: ["pro", "scale"] },
          { attribute: "app.version", op: "semver_gte", values: ["2.3.0"] },
        ],
        serve: {
          split: [
            { variant: "on", weight: 25 },
            { variant: "off", weight: 75 },
          ],
        },
      },
    ],
    default: { variant: "off" },
    scheduled: [
      { at: new Date(Date.now() + 86_400_000).toISOString(), set: { enabled: false } },
      { at: new Date(Date.now() + 2 * 86_400_000).toISOString(), set: { tags: ["team:search"] } },
    ],
  },
];
const PROPOSALS = [
  { enabled: false, tags: ["team:search"], comment: "Too many complaints since Tuesday" },
  { delete: true },
];
const EVENT_TYPE = {
  description: "An invoice was paid",
  schema: { type: "object", properties: { amount: { type: "integer" } }, required: ["amount"] },
  example: { amount: 4_200 },
};

async function fillAccount(call: Call): Promise<void> {
  await call("POST", "/v1/projects", { name: "Shop", description: "What customers see" });
  for (const [name, scopes] of KEYS) await call("POST", "/v1/keys", { name, prefix: "sm", scopes });
  await call("POST", "/v1/people", { email: "ann@example.com", name: "Ann", role: "editor" });
  await call("POST", "/v1/people", { email: "bob@example.com", role: "viewer" });
  const ends = new Date(Date.now() + 3 * 86_400_000).toISOString();
  await call("POST", "/v1/keys", {
    name: "Contractor",
    prefix: "sm",
    scopes: ["pulse:read"],
    expires_at: ends,
  });
  await call("PUT", "/v1/keys/roles/editor", {
    description: "Writes documents.",
    permissions: ["documents.read", "documents.write", "documents.share", "comments.*"],
  });
  const { secret } = await call("POST", "/v1/keys", {
    name: "Acme",
    prefix: "shop_live",
    scopes: ["orders:*"],
    owner_id: "acme",
    environment: "live",
    permissions: ["billing.read"],
    roles: ["editor"],
    ratelimits: [{ name: "requests", limit: 6, duration_ms: 3_600_000 }],
    uses: { remaining: 10_000, refill: { every: "month", amount: 10_000 } },
  });
  for (let at = 0; at < 8; at += 1)
    await call("POST", "/v1/keys/verify", { secret, require: ["orders:read"], cost: 5 });
  for (const flag of FLAGS) await call("POST", "/v1/gate", flag);
  for (const change of PROPOSALS) await call("POST", "/v1/gate/new-checkout/proposals", change);
  await call("PUT", "/v1/relay/event-types/invoice.paid", EVENT_TYPE);
  await call("POST", "/v1/admin/accounts", { email: "shop@example.com", tier: "pro", balance: 50_000 });
  await call("POST", "/v1/latch/invoice:42/acquire", { ttl: 300_000, timeout: 1_000 });
  await call("POST", "/v1/latch/nightly-report/acquire", { ttl: 60_000, timeout: 1_000 });
}

const METERS = ["customer-42", "customer-43", "team-blue"];
const DEDUCTIONS = 40;

async function fillMeters(call: Call): Promise<void> {
  for (const meter of METERS) {
    await call("POST", `/v1/meter/${meter}/refill`, { amount: 5_000 });
    for (let at = 0; at < DEDUCTIONS; at += 1)
      await call("POST", `/v1/meter/${meter}/deduct`, { amount: 1 + ((at * 37) % 190) });
    for (const number of [1, 2]) {
      const body = { amount: 120 * number, hold_id: `${meter}-call-${number}`, ttl_seconds: 3_600 };
      await call("POST", `/v1/meter/${meter}/holds`, body);
    }
    await call("PUT", `/v1/meter/${meter}/plan`, { amount: 5_000, every: "month" });
  }
  await call("PUT", "/v1/meter/alert", { threshold: 10, webhook_url: "https://example.com/low" });
}

const CHECKS = 12;

async function fillTraffic(call: Call, url: string): Promise<void> {
  await call("POST", "/v1/pulse/probes", { name: "fra", location: "Frankfurt" });
  for (const [name, path, checks, probes] of [
    ["Shop", "/v1/ping", CHECKS, ["local", "fra"]],
    ["Nightly report", "/missing", 4, ["local"]],
  ] as const) {
    const { id } = await call("POST", "/v1/pulse", { url: url + path, interval: 60_000, name, probes });
    for (let at = 0; at < checks; at += 1) await call("POST", `/v1/pulse/${id}/check`);
  }
  const { monitors } = await call("GET", "/v1/pulse");
  const monitor_ids = (monitors as { monitor_id: string }[]).map(({ monitor_id }) => monitor_id);
  const groups = [{ name: "Shop", monitor_ids }];
  await call("POST", "/v1/pulse/pages", { slug: "acme", title: "Acme", groups, publish_incidents: "all" });
  const hook = { url: `${url}/v1/ping` };
  const { id: chat } = await call("POST", "/v1/pulse/channels", {
    name: "Team chat",
    kind: "slack",
    config: hook,
  });
  await call("POST", "/v1/pulse/channels", {
    name: "Duty phone",
    kind: "ntfy",
    config: hook,
    quiet_hours: { from: "22:00", to: "07:00", time_zone: "America/Argentina/Buenos_Aires" },
    group_ms: 30_000,
    escalate: [{ after_ms: 900_000, channel_ids: [chat] }],
  });
  const incident = {
    title: "Payments fail",
    message: "Our provider has an outage.",
    monitor_ids,
    public: true,
  };
  const { id: incidentId } = await call("POST", "/v1/pulse/incidents", incident);
  await call("POST", `/v1/pulse/incidents/${incidentId}/acknowledge`);
  const work = { title: "Backups are moved", schedule: "0 3 * * SUN", tz: "Europe/Berlin" };
  await call("POST", "/v1/pulse/maintenance", { ...work, duration_ms: 3_600_000 });
  const beat = { type: "heartbeat", name: "Backup", slug: "backup", schedule: "30 2 * * *" };
  const { ping_url } = await call("POST", "/v1/pulse", beat);
  await fetch(`${ping_url}/start`);
  await fetch(String(ping_url), { method: "POST", body: "42 files\n1.2 GB" });
  for (const delay of ["1s", "2h", "3d"]) {
    const headers = { "X-Shop": "42" };
    const payload = { order: 1017, total: "42.00" };
    await call("POST", "/v1/relay", {
      target_url: `${url}/v1/ping`,
      method: "POST",
      delay,
      payload,
      headers,
    });
  }
  // A delivery that fails immediately, with its response in the log.
  const failing = { target_url: `${url}/missing`, method: "POST", delay: "0s", payload: { order: 1018 } };
  await call("POST", "/v1/relay", failing);
  for (const [name, cron, state] of [
    ["nightly report", "30 2 * * *", "live"],
    ["invoices", "0 9 1 * *", "paused"],
  ] as const) {
    const schedule = { name, cron, state, time_zone: "Europe/Berlin", target_url: `${url}/v1/ping` };
    await call("POST", "/v1/relay/schedules", { ...schedule, payload: { job: name } });
  }
  for (const [name, path] of [
    ["Bookkeeping", "/v1/ping"],
    ["Warehouse", "/missing"],
  ])
    await call("POST", "/v1/relay/endpoints", { url: url + path, name, event_types: ["order.*"] });
  await call("POST", "/v1/relay/messages", { event_type: "order.paid", payload: { order: 1019 } });
  await fillBuckets(call, url);
}

/** A bucket that forwards to another one, whose public path accepts everything. */
async function fillBuckets(call: Call, url: string): Promise<void> {
  const nowhere = "https://example.com/webhooks";
  const archive = await call("POST", "/v1/catch/buckets", { target_url: nowhere, name: "Archive" });
  await fillInbox(call);
  const target_url = `${url}/v1/catch/${archive["id"]}`;
  const { id } = await call("POST", "/v1/catch/buckets", { target_url, name: "Shop payments" });
  const change = (body: object) => call("PATCH", `/v1/catch/buckets/${id}`, body);
  const send = async (at: number) => {
    const object = { id: `in_${at}`, amount_paid: 4_200 + at, note: "Pro plan <script>alert(1)</script>" };
    const event = { id: `evt_${at}`, type: "invoice.paid", data: { object } };
    const { event_id } = await call("POST", `/v1/catch/${id}`, event);
    return () => call("POST", `/v1/catch/${id}/events/${event_id}/replay`);
  };
  await change({ state: "live" });
  for (const at of [0, 1, 2, 3]) await (await send(at))();
  // An event that its target rejects before it accepts it,
  await change({ target_url: `${url}/missing` });
  const replay = await send(4);
  await replay();
  await change({ target_url });
  await replay();
  // and a pending one.
  await change({ state: "paused" });
  await send(5);
}

/** A bucket with settings for a sender with a challenge; one of its events has an invalid signature. */
async function fillInbox(call: Call): Promise<void> {
  const secret = "the app's secret";
  const { id } = await call("POST", "/v1/catch/buckets", {
    name: SET_BUCKET,
    provider: "meta",
    delivery: "pull",
    signing_secret: secret,
    signature: {
      header: "X-Hub-Signature-256",
      algorithm: "hmac-sha256",
      prefix: "sha256=",
      template: "{body}",
      event_id: "/entry/0/id",
      event_type: "/object",
    },
    challenge: { token: "asked-before" },
    deduplicate_hours: 24,
    retention_hours: 72,
    response: { status: 202, content_type: "application/json", body: '{"thanks":true}' },
    overload_status: 503,
  });
  await call("PATCH", `/v1/catch/buckets/${id}`, { state: "live" });
  for (const [at, key] of [secret, secret, "another"].entries()) {
    const changes = [{ field: "messages", value: { text: { body: "Is my order on its way?" } } }];
    const event = { object: "whatsapp_business_account", entry: [{ id: `chat-${at}`, changes }] };
    const signature = new Bun.CryptoHasher("sha256", key).update(JSON.stringify(event)).digest("hex");
    await call("POST", `/v1/catch/${id}`, event, { "x-hub-signature-256": `sha256=${signature}` });
  }
}

async function fillNotary(call: Call): Promise<void> {
  await call("POST", "/v1/witness/sys/init");
  for (const event of ["invoice.paid", "invoice.refunded", "account.closed"])
    await call("POST", "/v1/witness/log", { log: { event, invoice: 42, by: "ada@example.com" } });
}
