import { describe, expect, test } from "bun:test";
import { MINUTE_MS } from "../../src/kernel/time/units.ts";
import type { Client } from "../support/client.ts";
import { undocumented } from "../support/document.ts";
import { expectError } from "../support/errors.ts";
import {
  bodyOf,
  isForKeys,
  makeResource,
  parametersOf,
  pathOf,
  queryOf,
  segmentOf,
} from "../support/matrix.ts";
import { useTestServer } from "../support/server.ts";

const server = useTestServer({
  manualClock: true,
  args: ["--allow-private-targets", "127.0.0.0/8"],
});

/** An operation that blocks until a lock is free, for a default time without `timeout`. */
const WAITING: ReadonlySet<string> = new Set(["latch.acquire"]);

interface Shape {
  readonly enum?: unknown;
}
interface Described {
  readonly operationId?: string;
  readonly parameters?: readonly { readonly name: string; readonly schema: Shape }[];
  readonly responses?: Readonly<Record<string, unknown>>;
}

describe("clients that are generated from the document", () => {
  /** `meter.usage`, `granularity` → `MeterUsageGranularity`, as generators name the types of values without a name. */
  const typeName = (...names: string[]) =>
    names
      .flatMap((name) => name.split(/[^A-Za-z0-9]+/))
      .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
      .join("");
  const document = async () => (await server.client(null).get("/openapi.json")).body;

  test("find single statuses: several make invalid code of a range", async () => {
    const { paths } = (await document()) as { paths: Record<string, Record<string, Described>> };
    const operations = Object.values(paths).flatMap((path) => Object.values(path));
    const statuses = operations.flatMap(({ responses = {} }) => Object.keys(responses));
    expect([...new Set(statuses)].filter((status) => !/^[1-5]\d\d$/.test(status))).toEqual([]);
  });

  test("name no enum of a parameter like one of a schema", async () => {
    const { paths, components } = (await document()) as {
      paths: Record<string, Record<string, Described>>;
      components: { schemas: Record<string, { properties?: Record<string, Shape> }> };
    };
    const schemas = Object.entries(components.schemas);
    const taken = new Set([
      ...schemas.map(([name]) => name),
      ...schemas.flatMap(([name, { properties = {} }]) =>
        Object.entries(properties).flatMap(([field, shape]) =>
          shape.enum === undefined ? [] : typeName(name, field),
        ),
      ),
    ]);
    const ofParameters = Object.values(paths)
      .flatMap((path) => Object.values(path))
      .flatMap(({ operationId = "", parameters = [] }) =>
        parameters.flatMap(({ name, schema }) =>
          schema?.enum === undefined ? [] : typeName(operationId, name),
        ),
      );
    expect(ofParameters.length).toBeGreaterThan(10);
    expect(ofParameters.filter((name) => taken.has(name))).toEqual([]);
  });
});

/** Checks that {@link Client.send} applies to every response of every test. */
describe("the check of responses against the API document", () => {
  const received = (status: number, type: string | null, text: string) => {
    const headers = new Headers(type === null ? {} : { "content-type": type });
    let body: unknown = {};
    if (text !== "") body = JSON.parse(text);
    return { status, headers, text, body };
  };
  const balance = '{"balance":1,"meter_id":"m","available":1,"held":0}';

  test.each([
    ["what is described", 200, "application/json", balance, []],
    ["a status", 418, "application/json", "{}", ["this status is not described"]],
    ["a media type", 200, "text/html", balance, ["the media type text/html is not described"]],
    ["a field too many", 200, "application/json", balance.replace("{", '{"a":1,'), [".a is not described"]],
    [
      "a field too few",
      200,
      "application/json",
      balance.replace('"held":0', '"held":0').replace('"balance":1,', ""),
      [".balance is missing"],
    ],
    [
      "another type",
      200,
      "application/json",
      balance.replace('"m"', "1"),
      ['.meter_id is not a "string": 1'],
    ],
    [
      "a body in an error",
      404,
      "application/json",
      "{}",
      [".error is missing", ".code is missing", ".request_id is missing"],
    ],
  ] as const)("finds %s", (_, status, type, text, found) => {
    const seen = undocumented("GET", "/v1/meter/m/balance?x=1", received(status, type, text));
    expect(seen).toEqual(found.map((item) => `meter.balance ${status}: ${item}`));
  });

  test("ignores responses of paths without an operation", () => {
    expect(undocumented("GET", "/docs", received(200, "text/html", ""))).toEqual([]);
  });
});

describe("every operation of the document", () => {
  /** Sends an operation in its usual form, and in forms that reach its other statuses. */
  async function drive(
    owner: Client,
    route: (typeof server.server.app.http.routes)[number],
  ): Promise<number[]> {
    const { method, operation } = route;
    const made = parametersOf(route).length === 0 ? {} : await makeResource(segmentOf(route), owner);
    const path = pathOf(route, made) + queryOf(route);
    const unknown =
      route.path.replace(/:[A-Za-z_]+/g, "00000000-0000-7000-8000-000000000000") + queryOf(route);
    const body = method === "GET" ? undefined : bodyOf(route);
    const headers = operation.fromOwnPage ? { "x-ninefold-session": "1" } : {};
    const proxied = operation.forProxies ? { "x-ninefold-key": owner.key ?? "" } : {};
    const all = { headers: { ...headers, ...proxied } };
    const answers = [
      await owner.send(method, path, body, all),
      await owner.send(method, unknown, body, all),
      await owner.send(method, `${path}${path.includes("?") ? "&" : "?"}limit=none&cursor=none`, body, all),
      await owner.send(method, path, method === "GET" ? undefined : "[", all),
      ...(WAITING.has(operation.name)
        ? []
        : [await owner.send(method, path, method === "GET" ? undefined : {}, all)]),
      await server.client(null).send(method, path, body, all),
      await owner.send(method, path, body, { headers: { ...all.headers, "if-none-match": "*" } }),
      await owner.send(method, path, body, { headers: { ...all.headers, accept: "text/html" } }),
    ];
    return answers.map(({ status }) => status);
  }

  test("responds as documented, with every status that its input can cause", async () => {
    const { routes } = server.server.app.http;
    const seen = new Set<string>();
    const rich = await server.account({ tier: "unlimited" });
    for (const route of routes) {
      const { operation } = route;
      const isEndless = operation.responseTypes?.includes("text/event-stream");
      if (operation.monitoring || isEndless) continue;
      const owner = operation.access === "operator" ? server.operator : rich;
      // A network can send some requests for status pages a minute.
      if (operation.name.startsWith("status.")) await server.clock.advance(MINUTE_MS);
      for (const status of await drive(owner, route)) seen.add(`${operation.name} ${status}`);
    }
    expect(seen.size).toBeGreaterThan(450);
    const names = new Set([...seen].map((one) => one.split(" ")[0]));
    expect(names.size).toBeGreaterThan(140);
  }, 60_000);

  test("describes the responses of status pages, feeds and badges", async () => {
    await server.clock.advance(MINUTE_MS);
    const account = await server.account();
    const monitor = await account.post("/v1/pulse", { url: "https://127.0.0.1:9/", interval: 300_000 });
    const monitor_ids = [monitor.body["id"]];
    const settings = { show_latency: true, show_urls: true, publish_incidents: "all" };
    const groups = [{ name: "Shop", monitor_ids }];
    await account.post("/v1/pulse/pages", { slug: "described", title: "Described", groups, ...settings });
    const told = { title: "Slow", monitor_ids, public: true, message: "We are looking into it." };
    expect((await account.post("/v1/pulse/incidents", told)).status).toBe(201);
    const planned = {
      title: "Upgrade",
      monitor_ids,
      public: true,
      starts_at: "2026-03-11T00:00:00Z",
      ends_at: "2026-03-11T01:00:00Z",
    };
    expect((await account.post("/v1/pulse/maintenance", planned)).status).toBe(201);
    const visitor = server.client(null);
    const page = await visitor.get("/status/described.json");
    expect(page.body).toMatchObject({ incidents: [{ title: "Slow" }], maintenance: [{ title: "Upgrade" }] });
    for (const below of [
      ".json",
      "",
      "/feed.atom",
      "/badge/1.svg",
      "/badge/1.json",
      "/badge.svg",
      "/badge.json",
    ]) {
      const { status, headers } = await visitor.get(`/status/described${below}`);
      expect(status).toBe(200);
      const known = { "if-none-match": headers.get("etag") ?? "" };
      expect((await visitor.get(`/status/described${below}`, { headers: known })).status).toBe(304);
    }
    const missing = await visitor.get("/status/missing", { headers: { accept: "text/html" } });
    expect(missing.headers.get("content-type")).toStartWith("text/html");
  });

  test("returns 404 to a session that selects an unknown project", async () => {
    const account = await server.account();
    // The requests above were rejected logins as well, which count for ten minutes.
    await server.clock.advance(10 * MINUTE_MS);
    const own = { "x-ninefold-session": "1" };
    const opened = await server.client(null).post("/v1/session", { key: account.key }, { headers: own });
    const cookie = opened.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
    const headers = { ...own, cookie, "x-ninefold-project": "proj_00000000000000000000" };
    for (const { path, method, operation } of server.server.app.http.routes) {
      if (!isForKeys({ operation })) continue;
      const answer = await server
        .client(null)
        .send(method, path.replace(/:\w+/g, "none"), undefined, { headers });
      expectError(answer, "not_found");
    }
  });
});
