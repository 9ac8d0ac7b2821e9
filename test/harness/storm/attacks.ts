import type { Account } from "./account.ts";

/** Requests of one tenant that are expensive for the server. */
export interface Attack {
  readonly name: string;
  /** Statuses that the server may respond with. */
  readonly statuses: readonly number[];
  /** Number of clients that send the request at the same time. */
  readonly clients: number;
  /** Stores what the request works on. `scale` is a share of the full amount. Resolves to what sends one request. */
  readonly prepare: (operator: Account, scale: number) => Promise<() => Promise<number>>;
}

const MIB = 1_048_576;
/** Monitors of a status page, at most. */
const PAGE_MONITORS = 1_250;
/** Monitors of a group, at most. */
const GROUP_MONITORS = 50;
const ENDPOINTS = 1_000;
const KEYS = 1_050;

const countOf = (full: number, scale: number): number => Math.max(1, Math.ceil(full * scale));
const target = (index: number): string => `https://127.0.0.1:9/${index}`;
/** A JSON list of one number again and again, about so many bytes long. */
const numbers = (bytes: number): string => `[${"1.0,".repeat(Math.floor(bytes / 4) - 1)}1]`;

/** Heartbeats, which the server does not send requests for, in groups that status pages take. */
async function pagesWithMonitors(account: Account, pages: number, scale: number): Promise<void> {
  const monitors = await account.createMany<{ id: string }>(
    countOf(PAGE_MONITORS, scale),
    "/v1/pulse",
    (index) => ({ type: "heartbeat", name: `Heartbeat ${index}`, period_ms: 86_400_000 }),
  );
  const monitor_ids = monitors.map(({ id }) => id);
  await account.createMany(pages, "/v1/pulse/pages", (index) => ({
    slug: `neighbour-${index}`,
    title: `Page ${index}`,
    groups: Array.from({ length: Math.ceil(monitor_ids.length / GROUP_MONITORS) }, (_, group) => ({
      name: `Group ${group}`,
      monitor_ids: monitor_ids.slice(group * GROUP_MONITORS, (group + 1) * GROUP_MONITORS),
    })),
    published: index === 0,
    publish_incidents: "all",
  }));
}

/** A public status page whose incidents have as many and as large updates as they can have. */
async function pageWithIncidents(account: Account, scale: number): Promise<void> {
  const slug = "neighbour-incidents";
  await account.create("/v1/pulse/pages", { slug, title: "Incidents", publish_incidents: "all", groups: [] });
  const message = "http://a ".repeat(550);
  const incidents = await account.createMany<{ id: string }>(
    countOf(50, scale),
    "/v1/pulse/incidents",
    (index) => ({ title: `Incident ${index}`, public: true, message }),
  );
  for (const { id } of incidents)
    await account.createMany(countOf(90, scale), `/v1/pulse/incidents/${id}/updates`, () => ({
      status: "identified",
      message,
    }));
}

async function endpoints(account: Account, scale: number): Promise<void> {
  await account.createMany(countOf(ENDPOINTS, scale), "/v1/relay/endpoints", (index) => ({
    url: target(index),
    state: "paused",
  }));
}

const batch = (count: number, fields: object): string =>
  JSON.stringify({
    messages: Array.from({ length: count }, (_, n) => ({ event_type: "x", payload: { n }, ...fields })),
  });

/** Flags whose rules compare a long text. */
async function flagsWithRules(account: Account, count: number): Promise<void> {
  const values = Array.from({ length: 50 }, (_, index) => `${"a".repeat(50)}${index}`);
  await account.createMany(count, "/v1/gate", (index) => ({
    flag_key: `rule-${index}`,
    enabled: true,
    default: { variant: "off" },
    rules: [{ when: [{ attribute: "text", op: "contains", values }], serve: { variant: "on" } }],
  }));
}

/** Expensive requests, one a row. */
export const ATTACKS: readonly Attack[] = [
  {
    name: "no attack, for comparison",
    statuses: [],
    clients: 0,
    prepare: async () => async () => 0,
  },
  {
    name: "list of 31 status pages with 1,250 monitors",
    statuses: [200],
    clients: 2,
    async prepare(operator, scale) {
      const account = await operator.newAccount();
      await pagesWithMonitors(account, 31, scale);
      return () => account.send("GET", "/v1/pulse/pages?limit=100");
    },
  },
  {
    name: "status page of 1,250 monitors, without a key",
    statuses: [200, 429],
    clients: 4,
    prepare: async (operator) => () => operator.anonymous().send("GET", "/status/neighbour-0"),
  },
  {
    name: "status page with 50 large incidents, without a key",
    statuses: [200, 429],
    clients: 4,
    async prepare(operator, scale) {
      await pageWithIncidents(await operator.newAccount(), scale);
      return () => operator.anonymous().send("GET", "/status/neighbour-incidents");
    },
  },
  {
    name: "feed of the same page, without a key",
    statuses: [200, 429],
    clients: 4,
    prepare: async (operator) => () =>
      operator.anonymous().send("GET", "/status/neighbour-incidents/feed.atom"),
  },
  {
    name: "evaluation of all flags, 20 at the same time",
    statuses: [200, 400],
    clients: 20,
    async prepare(operator, scale) {
      const account = await operator.newAccount();
      await flagsWithRules(account, countOf(200, scale));
      const context = { targetingKey: "user-1", text: "a".repeat(5_000) };
      const body = JSON.stringify({ context });
      return () => account.send("POST", "/ofrep/v1/evaluate/flags", body);
    },
  },
  {
    name: "full definitions of 20,000 flags",
    statuses: [200],
    clients: 2,
    async prepare(operator, scale) {
      const account = await operator.newAccount();
      const flag = (index: number) => ({ flag_key: `flag-${index}`, enabled: true });
      await account.createMany(countOf(20_000, scale), "/v1/gate", flag);
      return () => account.send("GET", "/v1/gate/config?full=true");
    },
  },
  {
    name: "rejected flag with a variant of 1 MiB",
    statuses: [400, 413],
    clients: 4,
    async prepare(operator) {
      const account = await operator.newAccount();
      const flag = { flag_key: "large", enabled: true, type: "object" };
      const body = JSON.stringify({ ...flag, variants: { on: "" } }).replace('""', numbers(MIB - 200));
      return () => account.send("POST", "/v1/gate", body);
    },
  },
  {
    name: "rejected flag with 90,000 metadata keys",
    statuses: [400, 413],
    clients: 4,
    async prepare(operator) {
      const account = await operator.newAccount();
      const metadata = Object.fromEntries(Array.from({ length: 90_000 }, (_, at) => [`m${at}`, 0]));
      const body = JSON.stringify({ flag_key: "large", enabled: true, metadata });
      return () => account.send("POST", "/v1/gate", body);
    },
  },
  {
    name: "export of the audit log with large entries",
    // One export of an account at a time.
    statuses: [200, 409],
    clients: 2,
    async prepare(operator, scale) {
      const account = await operator.newAccount();
      const value = "v".repeat(8_000);
      await account.createMany(countOf(500, scale), "/v1/gate", (index) => ({
        flag_key: `large-${index}`,
        enabled: true,
        type: "string",
        variants: { on: value, off: "" },
        default: { variant: "on" },
        off_variant: "off",
      }));
      return () => account.send("GET", "/v1/audit/export");
    },
  },
  {
    name: "verification of 1 MiB of numbers",
    statuses: [400, 413],
    clients: 4,
    async prepare(operator) {
      const account = await operator.newAccount();
      const body = `{"receipt":{"log":${numbers(MIB - 100)}}}`;
      return () => account.send("POST", "/v1/witness/verify", body);
    },
  },
  {
    name: "log of 1 MiB of numbers",
    statuses: [400, 413],
    clients: 4,
    async prepare(operator) {
      const account = await operator.newAccount();
      await account.create("/v1/witness/sys/init", {});
      const body = `{"log":${numbers(MIB - 100)}}`;
      return () => account.send("POST", "/v1/witness/log", body);
    },
  },
  {
    name: "delivery with 1 MiB of numbers",
    statuses: [400, 413],
    clients: 4,
    async prepare(operator) {
      const account = await operator.newAccount();
      const delivery = { target_url: target(0), method: "POST", delay: "1d" };
      const body = `{"payload":${numbers(MIB - 200)},${JSON.stringify(delivery).slice(1)}`;
      return () => account.send("POST", "/v1/relay", body);
    },
  },
  {
    name: "batch of 10,000 deliveries that the balance does not cover",
    statuses: [402, 429],
    clients: 5,
    async prepare(operator, scale) {
      const account = await operator.newAccount();
      await endpoints(account, scale * 0.1);
      await operator.update(account, { tier: "scale", balance: 1 });
      const body = batch(100, {});
      return () => account.send("POST", "/v1/relay/messages/batch", body);
    },
  },
  {
    name: "batch of 10 repeats to 1,000 endpoints",
    statuses: [200, 201],
    clients: 2,
    async prepare(operator, scale) {
      const account = await operator.newAccount();
      await endpoints(account, scale);
      const body = batch(10, { message_id: "repeated", payload: {} });
      return () => account.send("POST", "/v1/relay/messages/batch", body);
    },
  },
  {
    name: "message to 1,000 endpoints",
    statuses: [200, 201],
    clients: 2,
    async prepare(operator, scale) {
      const account = await operator.newAccount();
      await endpoints(account, scale);
      const body = JSON.stringify({ event_type: "x", payload: {} });
      return () => account.send("POST", "/v1/relay/messages", body);
    },
  },
  {
    name: "list of 1,050 large keys by an environment without keys",
    statuses: [200],
    clients: 10,
    async prepare(operator, scale) {
      const account = await operator.newAccount();
      const metadata = { note: "n".repeat(10_000) };
      await account.createMany(countOf(KEYS, scale), "/v1/keys", (index) => ({
        prefix: "acme",
        name: `Key ${index}`,
        scopes: ["a"],
        metadata,
      }));
      return () => account.send("GET", "/v1/keys?environment=nobody");
    },
  },
  {
    name: "revocation of 1,000 keys of an owner",
    statuses: [200],
    clients: 1,
    async prepare(operator, scale) {
      const account = await operator.newAccount();
      await account.createMany(countOf(KEYS, scale), "/v1/keys", (index) => ({
        prefix: "acme",
        name: `Key ${index}`,
        scopes: ["a"],
        owner_id: "customer-42",
      }));
      return () => account.send("POST", "/v1/keys/revoke", JSON.stringify({ owner_id: "customer-42" }));
    },
  },
  {
    name: "API description, 50 at the same time, without a key",
    statuses: [200],
    clients: 50,
    prepare: async (operator) => () => operator.anonymous().send("GET", "/openapi.json"),
  },
];
