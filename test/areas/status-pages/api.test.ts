import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  GROUP_MONITORS_MAX,
  GROUPS_MAX,
  LOGO_BYTES_MAX,
  PAGE_LENGTHS_MAX,
} from "../../../src/areas/status-pages/schema.ts";
import { DEFAULT_TIERS } from "../../../src/kernel/limits/tiers.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const PAGES = "/v1/pulse/pages";
const UNKNOWN = `${PAGES}/page_0190a0a0000070008000000000000000`;
let slugs = 0;
const fresh = () => `page-${++slugs}`;

async function monitor(account: AccountClient): Promise<string> {
  const body = { url: "https://site.example.com/health", interval: 300_000 };
  return String((await account.post("/v1/pulse", body)).body["id"]);
}

async function page(account: AccountClient, more: object = {}): Promise<string> {
  const { status, text, body } = await account.post(PAGES, { slug: fresh(), title: "Acme", ...more });
  expect(status, text).toBe(201);
  return String(body["id"]);
}

function created(name: string, more: object, holds: object = more): Scenario {
  const body = { slug: fresh(), title: "Acme", ...more };
  return { name, request: ["POST", PAGES, body], status: 201, holds, spent: 1 };
}

function rejected(name: string, more: object, field: string): Scenario {
  return {
    name,
    request: ["POST", PAGES, { slug: fresh(), title: "Acme", ...more }],
    status: 400,
    code: "validation_error",
    after: (_, { body }) => expect(Object.keys(body["fields"] as object)[0]?.split(/[.[/]/)[0]).toBe(field),
  };
}

const logoOf = (bytes: number) => `data:image/png;base64,${Buffer.alloc(bytes, 7).toString("base64")}`;
const groups = (count: number) => Array.from({ length: count }, () => ({ name: "", monitor_ids: [] }));
const unknownMonitors = (count: number) => [
  { name: "G", monitor_ids: Array.from({ length: count }, () => crypto.randomUUID()) },
];

describe("POST /v1/pulse/pages", () => {
  const DEFAULTS = {
    description: "",
    groups: [],
    color: null,
    logo: null,
    website_url: null,
    show_latency: false,
    show_urls: false,
    publish_incidents: "outages",
    footer: "",
    index: false,
    published: true,
  };
  const { title, description, footer, groupName } = PAGE_LENGTHS_MAX;
  endpoint(() => server, "POST /v1/pulse/pages", [
    created("only required fields: the others have defaults", {}, DEFAULTS),
    created("the longest texts, in characters", {
      title: "🙂".repeat(title),
      description: "d".repeat(description),
      footer: "f".repeat(footer),
      groups: [{ name: "g".repeat(groupName), monitor_ids: [] }],
    }),
    created("the largest logo", { logo: logoOf(LOGO_BYTES_MAX) }),
    created("a colour and a website", { color: "#0F766e", website_url: "https://acme.example/help" }),
    rejected("a logo beyond its limit", { logo: logoOf(LOGO_BYTES_MAX + 1) }, "logo"),
    rejected("a logo of another type", { logo: "data:text/html;base64,PGgxPg==" }, "logo"),
    rejected("a logo that is not base64", { logo: "data:image/png;base64,a===" }, "logo"),
    rejected("a logo by its address", { logo: "https://acme.example/logo.png" }, "logo"),
    rejected("an empty logo", { logo: "data:image/png;base64," }, "logo"),
    rejected("a colour by its name", { color: "red" }, "color"),
    rejected("a website without http", { website_url: "javascript:alert(1)" }, "website_url"),
    rejected(
      "a website beyond its limit",
      { website_url: `https://a.example/${"x".repeat(500)}` },
      "website_url",
    ),
    created("the maximum number of groups", { groups: groups(GROUPS_MAX) }),
    created("everything set", {
      show_latency: true,
      show_urls: true,
      publish_incidents: "all",
      index: true,
      published: false,
    }),
    created("an undeclared field has no effect", { colour: "red" }, DEFAULTS),
    rejected("a slug with other characters", { slug: "Acme" }, "slug"),
    rejected("a slug with a dot, which would hide the JSON of another page", { slug: "acme.json" }, "slug"),
    rejected("no title", { title: "" }, "title"),
    rejected("a title beyond its limit", { title: "t".repeat(title + 1) }, "title"),
    rejected("a description beyond its limit", { description: "d".repeat(description + 1) }, "description"),
    rejected("a footer beyond its limit", { footer: "f".repeat(footer + 1) }, "footer"),
    rejected(
      "a group's name beyond its limit",
      { groups: [{ name: "g".repeat(101), monitor_ids: [] }] },
      "groups",
    ),
    rejected("one group too many", { groups: groups(GROUPS_MAX + 1) }, "groups"),
    rejected(
      "one monitor too many in a group",
      { groups: unknownMonitors(GROUP_MONITORS_MAX + 1) },
      "groups",
    ),
    rejected("an unknown monitor", { groups: unknownMonitors(1) }, "groups"),
    rejected("an invalid monitor id", { groups: [{ name: "", monitor_ids: ["1"] }] }, "groups"),
    rejected("a flag that is not a boolean", { index: "yes" }, "index"),
    rejected("an unknown value of publish_incidents", { publish_incidents: "some" }, "publish_incidents"),
    { name: "without a key", as: "nobody", request: ["POST", PAGES, {}], status: 401, code: "unauthorized" },
    {
      name: "without credits",
      account: { balance: 0 },
      request: ["POST", PAGES, { slug: fresh(), title: "Acme" }],
      status: 402,
      code: "insufficient_balance",
    },
    {
      name: "beyond the limit of the tier",
      account: { tier: "free" },
      before: ({ account }: World) => page(account),
      request: ["POST", PAGES, { slug: fresh(), title: "Acme" }],
      status: 403,
      code: "page_limit_exceeded",
      spent: 0,
    },
    {
      name: "a slug of another account's page",
      before: async ({ server: { operator } }: World) => {
        const { status } = await operator.post(PAGES, { slug: "taken", title: "First" });
        expect(status).toBe(201);
      },
      request: ["POST", PAGES, { slug: "taken", title: "Acme" }],
      status: 409,
      code: "page_slug_taken",
      spent: 1,
      lacks: ["First", "page_0"],
    },
  ]);

  test("the maximum number of monitors in a group", async () => {
    const account = await server.account();
    const id = await monitor(account);
    const monitor_ids = Array.from({ length: GROUP_MONITORS_MAX }, () => id);
    await page(account, { groups: [{ name: "G", monitor_ids }] });
  });

  test("a monitor of another project is rejected", async () => {
    const id = await monitor(await server.account());
    const other = await server.account();
    const groups = [{ name: "G", monitor_ids: [id] }];
    expectError(await other.post(PAGES, { slug: fresh(), title: "Acme", groups }), "validation_error");
  });

  test.each([
    ["free", 1],
    ["starter", 3],
    ["pro", 10],
    ["scale", 50],
    ["unlimited", 1_000],
  ] as const)("the tier %s allows %d pages", (tier, pages) => {
    expect(DEFAULT_TIERS[tier].pages).toBe(pages);
  });
});

describe("GET, PATCH and DELETE", () => {
  test.each(["GET", "PATCH", "DELETE"])("%s: 400, 401, 402, 404", async (method) => {
    const body = method === "PATCH" ? { title: "B" } : undefined;
    const account = await server.account({ balance: 2 });
    const theirs = `${PAGES}/${await page(await server.account())}`;
    expectError(await server.client(null).send(method, theirs, body), "unauthorized");
    expectError(await account.send(method, `${PAGES}/${"x".repeat(65)}`, body), "validation_error");
    expectError(await account.send(method, UNKNOWN, body), "not_found");
    expectError(await account.send(method, theirs, body), "not_found");
    expectError(await account.send(method, theirs, body), "insufficient_balance");
  });

  test("the list: 400, 401, 402", async () => {
    const account = await server.account({ balance: 1 });
    expectError(await server.client(null).get(PAGES), "unauthorized");
    expectError(await account.get(`${PAGES}?cursor=abc`), "validation_error");
    expect((await account.get(PAGES)).body).toEqual({ pages: [] });
    expectError(await account.get(PAGES), "insufficient_balance");
  });

  test.each([{ title: "" }, { slug: "A B" }, { groups: unknownMonitors(1) }])(
    "a change to %p: 400",
    async (body) => {
      const account = await server.account();
      const path = `${PAGES}/${await page(account)}`;
      expectError(await account.patch(path, body), "validation_error");
    },
  );

  test("omitted fields stay unchanged, and a changed slug frees the previous one", async () => {
    const account = await server.account();
    const id = await monitor(account);
    const slug = fresh();
    const groups = [{ name: "G", monitor_ids: [id] }];
    const created = await account.post(PAGES, { slug, title: "Acme", groups, footer: "f" });
    const path = `${PAGES}/${created.body["id"]}`;
    await server.clock.advance(1_000);
    const moved = fresh();
    const changed = await account.patch(path, { slug: moved, index: true });
    expect(changed.body).toEqual({
      ...created.body,
      slug: moved,
      index: true,
      url: `${server.url}/status/${moved}`,
      updated_at: new Date(server.clock.now()).toISOString(),
    });
    expect((await account.get(path)).body).toEqual(changed.body);
    await page(account, { slug });
  });

  test("a deleted monitor disappears from the page's groups", async () => {
    const account = await server.account();
    const [first, second] = [await monitor(account), await monitor(account)];
    const id = await page(account, { groups: [{ name: "G", monitor_ids: [first, second] }] });
    await account.delete(`/v1/pulse/${first}`);
    const { groups } = (await account.get(`${PAGES}/${id}`)).body;
    expect(groups).toEqual([{ name: "G", monitor_ids: [second] }]);
  });
});

test("deleting a project removes its pages and frees their slugs", async () => {
  const account = await server.account();
  const project = await account.post("/v1/projects", { name: "Shop" });
  const key = await account.post(`/v1/projects/${project.body["id"]}/keys`, {
    prefix: "sm",
    name: "k",
    scopes: ["pulse:*"],
  });
  const inside = server.client(String(key.body["secret"] ?? key.body["key"]));
  const slug = fresh();
  const created = await inside.post(PAGES, { slug, title: "Acme" });
  expect(created.status, created.text).toBe(201);
  expect((await server.client(null).get(`/status/${slug}`)).status).toBe(200);
  expect((await account.delete(`/v1/projects/${project.body["id"]}`)).status).toBeLessThan(300);
  expect((await server.client(null).get(`/status/${slug}`)).status).toBe(404);
  for (let attempts = 0; attempts < 100; attempts += 1) {
    await server.clock.advance(60_000);
    if ((await account.post(PAGES, { slug, title: "Acme" })).status === 201) return;
  }
  throw new Error("the slug was not freed");
});
