import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { RENDER_INTERVAL_MS } from "../../../src/areas/status-pages/public-pages.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
let account: AccountClient;
let projectId: string;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
  const { body } = await account.get("/v1/projects");
  projectId = String((body["projects"] as { id: string }[])[0]?.id);
  const page = { slug: "zones", title: "Zones" };
  expect((await account.post("/v1/pulse/pages", page)).status).toBe(201);
  const incident = {
    title: "Late",
    public: true,
    updates: [{ at: "2026-03-09T23:30:00Z", status: "resolved", message: "Over." }],
    started_at: "2026-03-09T23:10:00Z",
  };
  expect((await account.post("/v1/pulse/incidents", incident)).status).toBe(201);
});
afterAll(() => server.stop());

const look = (path: string) => server.client(null).get(`/status/${path}`);

describe("the time zone of a project", () => {
  test("is UTC by default, and changed under any of its names", async () => {
    const path = `/v1/projects/${projectId}`;
    expect((await account.get(path)).body["time_zone"]).toBe("UTC");
    for (const name of ["time_zone", "timezone", "tz"])
      expect((await account.patch(path, { [name]: "Asia/Tokyo" })).body["time_zone"]).toBe("Asia/Tokyo");
    for (const name of ["Mars/Base", "", 7, null])
      expectError(await account.patch(path, { time_zone: name }), "validation_error");
    const created = await account.post("/v1/projects", { name: "East", time_zone: "Asia/Tokyo" });
    expect(created.body["time_zone"]).toBe("Asia/Tokyo");
    await account.patch(path, { time_zone: "UTC" });
  });

  test("is that of the page's times, of which JSON and bars stay in UTC", async () => {
    const before = await look("zones.json");
    expect((await look("zones")).text).toContain("All times are in UTC.");
    await account.patch(`/v1/projects/${projectId}`, { time_zone: "Europe/Berlin" });
    await server.clock.advance(RENDER_INTERVAL_MS);
    const { text } = await look("zones");
    expect(text).toContain('<time datetime="2026-03-09T23:10:00.000Z">10 Mar, 00:10</time>');
    expect(text).toContain("Tue 10 March");
    expect(text).toContain("All times are in Europe/Berlin, those of bars in UTC.");
    expect((await look("zones.json")).body).toEqual(before.body);
    await account.patch(`/v1/projects/${projectId}`, { time_zone: "UTC" });
    await server.clock.advance(RENDER_INTERVAL_MS);
  });
});

describe("the zone of a reader", () => {
  test("is chosen in a form, and kept by links", async () => {
    const { text } = await look("zones?tz=Asia/Tokyo");
    expect(text).toContain('<time datetime="2026-03-09T23:10:00.000Z">10 Mar, 08:10</time>');
    expect(text).toContain("<option selected>Asia/Tokyo</option>");
    const [, link] = /href="(zones\/incidents\/[^"]+)"/.exec(text) ?? [];
    expect(link).toEndWith("?tz=Asia%2FTokyo");
    const incident = await look(link ?? "");
    expect(incident.text).toContain("All times are in Asia/Tokyo.");
    expect(incident.text).toContain("10 Mar, 08:30");
  });

  test("has no effect if there is no such zone, and on JSON", async () => {
    const usual = await look("zones");
    for (const name of ["", "Mars/Base", "x".repeat(64), "%3Cb%3E"])
      expect((await look(`zones?tz=${name}`)).text).toBe(usual.text);
    expect((await look("zones.json?tz=Asia/Tokyo")).text).toBe((await look("zones.json")).text);
  });
});
