import { usageStore } from "../../src/areas/meter/store.ts";
import { peopleStore } from "../../src/areas/people/store.ts";
import { Browser } from "../areas/session/support.ts";
import { CertificateAuthority } from "./certificates.ts";
import { witnessOf } from "./checkpoints.ts";
import type { Client } from "./client.ts";
import { makeResource, SEGMENTS } from "./matrix.ts";
import { AccountClient, type TestServer } from "./server.ts";

const NOWHERE = "https://127.0.0.1:9/";
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ALL = { prefix: "sm", name: "all", scopes: ["*"] };

/** A successful response's body. @throws Error without success. */
async function done(response: ReturnType<Client["get"]>): Promise<Record<string, unknown>> {
  const { status, body, text } = await response;
  if (status >= 300) throw new Error(`${status} ${text}`);
  return body;
}

/** A client certificate and its key. */
const CLIENT = new CertificateAuthority().issue("client", null);

/** The secrets of a full account that its rows contain, sealed. */
export const SEALED = [
  "monitor-secret",
  CLIENT.key.split("\n")[1] ?? "",
  "endpoint-secret",
  "relay-secret",
  "schedule-secret",
  "bucket-secret",
  "bucket-previous",
  "bucket-token",
  "slack-secret",
  "gotify-secret",
];

/** Flags of the server of a full account: its targets are on this machine, where nothing listens. */
export const FULL_ACCOUNT_ARGS = ["--trust-proxy", "127.0.0.1", "--allow-private-targets", "loopback"];

/** A full account, with a second key and a browser session. */
export interface FullAccount {
  readonly account: AccountClient;
  readonly managed: Client;
  readonly browser: Client;
  /** A public status page, a heartbeat and a bucket, without the origin. */
  readonly publicPaths: Readonly<Record<"page" | "ping" | "bucket", string>>;
}

/** The operator's accounts are not of this account; projects and locks are made below. */
const MADE_ELSEWHERE = ["admin", "projects", "latch", "people"];

/** Makes an account with rows in every table that can have some for longer, in two projects. The server has a manual clock. */
export async function makeFullAccount(server: TestServer, email: string): Promise<FullAccount> {
  let account = await server.account({ email, tier: "scale", balance: 1_000_000 });
  const created: Record<string, string> = {};
  for (const segment of SEGMENTS.filter((segment) => !MADE_ELSEWHERE.includes(segment)))
    Object.assign(created, await makeResource(segment, account));
  let managed = server.client(String((await done(account.post("/v1/keys", ALL))).secret));
  await done(managed.get("/v1/gate"));
  await fillKeysAndProjects(server, account);
  await fillPeople(server, account);
  await fillMonitors(server, account);
  await fillDeliveries(account, server.clock.now());
  const variants = { on: true, off: false };
  await done(account.post("/v1/gate", { flag_key: "wide", enabled: true, variants, tags: ["full"] }));
  await done(account.post("/ofrep/v1/evaluate/flags/wide", { context: {} }));
  const store = {
    endpoint: NOWHERE,
    bucket: "receipts",
    region: "eu-central-1",
    accessKeyId: "AKIAIOSFODNN7EXAMPLE",
    secretAccessKey: "s3-secret-s3-secret",
  };
  await done(account.post("/v1/witness/config", store));
  await done(account.put("/v1/witness/index", { fields: ["/event"] }));
  await done(account.post("/v1/witness/log", { log: { event: "copied" } }));
  await fillWitnesses(server, account);
  await done(account.post("/v1/witness/log", { content_hash: "0".repeat(64), note: "file.pdf" }));
  // Days are summed shortly after midnight. Until then nothing runs: hundreds of retries would add no row of another kind.
  server.clock.freeze(11 * HOUR);
  await server.clock.advance(2 * HOUR);
  // Writes the uses of keys, which otherwise wait for some seconds.
  await server.restart();
  account = new AccountClient(server.url, account.key ?? "", account.userId, email);
  managed = server.client(managed.key);
  // Ends after a quarter of an hour.
  await makeResource("latch", account);
  const browser = await new Browser(server).logIn(account.key ?? "");
  await fillUsage(server);
  const publicPaths = {
    page: `/status/${created["page"]}`,
    ping: `/ping/${created["check"]}`,
    bucket: `/v1/in/${created["bucket_id"]}`,
  };
  return { account, managed, browser, publicPaths };
}

/** A witness, and a cosignature as it would store it. */
async function fillWitnesses({ server: { kernel } }: TestServer, account: AccountClient): Promise<void> {
  const { vkey } = witnessOf(8);
  await done(account.put("/v1/witness/witnesses", { witnesses: [{ url: NOWHERE, vkey }] }));
  const add = kernel.db.change<[string]>(
    `INSERT INTO notary_cosignatures (chain_ref, epoch, size, vkey, line, signed_at)
     SELECT max(ref), 0, 1, ?, '', 0 FROM chains`,
  );
  await kernel.writer.submit((tx) => add(tx, vkey));
}

/** Usage as the sums of every ten seconds write it. */
async function fillUsage({ server: { kernel } }: TestServer): Promise<void> {
  const { ref, project } = kernel.db.one<{ ref: number; project: number }>(
    "SELECT ref, project_ref AS project FROM meters ORDER BY ref DESC LIMIT 1",
  )() ?? { ref: 0, project: 0 };
  const sums = { deducted: 1, refilled: 2, reset: 0, entries: 2, last_sequence: 1, balance: 1, hour: 1 };
  await kernel.writer.submit((tx) =>
    usageStore(kernel.db).add(tx, { ...sums, project_ref: project, meter_ref: ref }),
  );
}

/** A person of one project, with an open invitation, and with a passkey and an identity as logins store them. */
async function fillPeople({ server: { kernel } }: TestServer, account: AccountClient): Promise<void> {
  const { projects } = await done(account.get("/v1/projects"));
  const [{ id: project_id }] = projects as [{ id: string }];
  const roles = [{ project_id, role: "editor" }];
  const { person_id } = await done(
    account.post("/v1/people", { email: `person-of-${account.email}`, projects: roles }),
  );
  const store = peopleStore(kernel.db);
  const person_ref = store.withId(String(person_id))?.ref ?? 0;
  const common = { person_ref, created_at: 0 };
  await kernel.writer.submit((tx) => {
    store.insertPasskey(tx, {
      ...common,
      id: `pky_${account.userId}`,
      credential_id: account.userId,
      public_key: new Uint8Array(1),
      counter: 0,
      transports: "[]",
      relying_party: "localhost",
      name: "Phone",
    });
    const identity = { issuer: "https://login.example.com", subject: account.userId };
    const used = { sent_auth_time: 0, used_at: null };
    store.insertIdentity(tx, { ...common, ...identity, ...used, id: `idn_${account.userId}` });
  });
}

async function fillKeysAndProjects(server: TestServer, account: AccountClient): Promise<void> {
  const project = await done(account.post("/v1/projects", { name: "Second" }));
  const terms = { prefix: "sm", name: "of a project", scopes: ["*"] };
  const key = await done(account.post(`/v1/projects/${project["id"]}/keys`, terms));
  const second = server.client(String(key["secret"]));
  await done(account.put("/v1/keys/roles/editor", { permissions: ["documents.write"] }));
  const granted = { permissions: ["documents.read"], roles: ["editor"] };
  const limited = { prefix: "acme", name: "limited", scopes: ["x"], uses: { remaining: 100 }, ...granted };
  const ratelimits = [{ name: "month", limit: 100, duration_ms: "30d" }];
  const { secret } = await done(account.post("/v1/keys", { ...limited, ratelimits }));
  await done(account.post("/v1/keys/verify", { secret }));
  for (const segment of ["meter", "gate", "latch", "relay", "catch"]) await makeResource(segment, second);
  const gone = await done(account.post("/v1/projects", { name: "Gone" }));
  await done(account.post(`/v1/projects/${gone["id"]}/keys`, { prefix: "sm", name: "gone", scopes: ["*"] }));
  await done(account.delete(`/v1/projects/${gone["id"]}`));
  const once = { headers: { "Idempotency-Key": "once" } };
  await done(account.post("/v1/meter/kept/refill", { amount: 3 }, once));
  await account.post("/v1/meter/kept/refill", { amount: -3 }, { headers: { "Idempotency-Key": "rejected" } });
}

async function fillMonitors(server: TestServer, account: AccountClient): Promise<void> {
  const channel = { name: "Hook", kind: "webhook", config: { url: `${NOWHERE}hook` }, remind: "1h" };
  const { id: channelId } = await done(account.post("/v1/pulse/channels", channel));
  const slack = { name: "Slack", kind: "slack", config: { url: `${NOWHERE}slack-secret` } };
  await done(account.post("/v1/pulse/channels", slack));
  const gotify = { name: "Gotify", kind: "gotify", config: { url: NOWHERE, token: "gotify-secret" } };
  await done(account.post("/v1/pulse/channels", gotify));
  const incident = await done(account.post("/v1/pulse/incidents", { title: "Slow" }));
  const update = { status: "identified", message: "Found." };
  await done(account.post(`/v1/pulse/incidents/${incident["id"]}/updates`, update));
  const parent = await done(account.post("/v1/pulse", { url: `${NOWHERE}parent`, interval: HOUR }));
  const child = {
    url: `${NOWHERE}child`,
    interval: HOUR,
    headers: { Authorization: "monitor-secret" },
    depends_on: parent["id"],
    channels: [channelId],
  };
  const { id } = await done(account.post("/v1/pulse", child));
  const client = { tls_client_certificate: CLIENT.cert, tls_client_key: CLIENT.key };
  await done(account.post("/v1/pulse", { url: `${NOWHERE}secured`, interval: HOUR, ...client }));
  const work = { title: "Move", schedule: "@yearly", duration_ms: MINUTE, monitor_ids: [id] };
  await done(account.post("/v1/pulse/maintenance", work));
  const beat = await done(
    account.post("/v1/pulse", { type: "heartbeat", period_ms: 10 * MINUTE, slug: "beat" }),
  );
  await fetch(server.url + new URL(String(beat["ping_url"])).pathname, { method: "POST", body: "pinged" });
  await done(account.post("/v1/pulse/ping-key", {}));
  // Without the e-mail with its link: this server has no mail server.
  server.server.kernel.db.execute(
    `INSERT INTO status_subscribers (page_ref, account_ref, project_ref, email, created_at, confirmed_at)
     SELECT ref, account_ref, project_ref, 'visitor@example.com', created_at, created_at FROM status_pages ORDER BY ref DESC LIMIT 1`,
  );
  server.server.kernel.db.execute(
    "INSERT INTO status_unsubscribed (page_ref, project_ref, digest) SELECT ref, project_ref, randomblob(16) FROM status_pages ORDER BY ref DESC LIMIT 1",
  );
  await server.clock.advance(3 * MINUTE);
}

async function fillDeliveries(account: AccountClient, now: number): Promise<void> {
  await done(account.post("/v1/relay/secret", {}));
  const endpoint = { url: NOWHERE, headers: { "X-Api-Key": "endpoint-secret" } };
  await done(account.post("/v1/relay/endpoints", endpoint));
  const paused = { url: `${NOWHERE}paused`, state: "paused", template: { n: { $: "/data/n" } } };
  await done(account.post("/v1/relay/endpoints", paused));
  await done(account.post("/v1/relay/portal", { owner_id: "acme", expires_in: "7d" }));
  await done(account.put("/v1/relay/event-types/b", { schema: { required: ["m"] }, example: { m: 1 } }));
  await done(account.post("/v1/relay/messages", { event_type: "b", payload: { n: 1 }, order_key: "b" }));
  const delivery = {
    target_url: NOWHERE,
    method: "POST",
    delay: "20d",
    deduplication_id: "d",
    headers: { Authorization: "relay-secret" },
    callback_url: NOWHERE,
  };
  await done(account.post("/v1/relay", delivery));
  const schedule = { cron: "@yearly", target_url: NOWHERE, headers: { Authorization: "schedule-secret" } };
  await done(account.post("/v1/relay/schedules", schedule));
  const sealed = { target_url: NOWHERE, provider: "stripe", signing_secret: "whsec_bucket-secret" };
  const { id: sealedId } = await done(account.post("/v1/catch/buckets", sealed));
  const previous = {
    previous_signing_secret: "whsec_bucket-previous",
    previous_expires_at: new Date(now + HOUR).toISOString(),
  };
  await done(account.patch(`/v1/catch/buckets/${sealedId}`, previous));
  const challenged = { target_url: NOWHERE, provider: "meta", challenge: { token: "bucket-token" } };
  await done(account.post("/v1/catch/buckets", { ...challenged, signing_secret: "meta-bucket-secret" }));
  const bucket = { target_url: NOWHERE, provider: "github", deduplicate_hours: 24 };
  const { id } = await done(account.post("/v1/catch/buckets", bucket));
  await done(account.patch(`/v1/catch/buckets/${id}`, { state: "live" }));
  const { endpoint_id } = await done(account.post("/v1/relay/endpoints", { url: NOWHERE, name: "target" }));
  const inbox = await done(account.post("/v1/catch/buckets", { targets: [{ endpoint_id }] }));
  await done(account.patch(`/v1/catch/buckets/${inbox["id"]}`, { state: "live" }));
  await done(account.post(`/v1/in/${inbox["id"]}`, { n: 1 }));
  await done(account.post(`/v1/in/${inbox["id"]}`, new Uint8Array(2 * 1024 * 1024)));
  const headers = { "X-GitHub-Delivery": "d-1", "X-GitHub-Event": "push", Cookie: "event-secret" };
  await done(account.post(`/v1/in/${id}`, { ref: "main" }, { headers }));
}
