import { afterEach, beforeEach, expect, test } from "bun:test";
import { XMLValidator } from "fast-xml-parser";
import { INCIDENTS_MAX } from "../../../src/areas/status-pages/events.ts";
import { DAY_MS, dayOf } from "../../../src/kernel/time/units.ts";
import { type AccountClient, startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const MINUTE_MS = 60_000;
/** A simulated day has hundreds of checks. */
const TIMEOUT_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let server: TestServer;
let site: WebhookSink;
let account: AccountClient;
let shop: string;
let search: string;
let pageId: string;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  site = new WebhookSink();
  account = await server.account({ tier: "scale" });
  const create = async (name: string) =>
    String(
      (await account.post("/v1/pulse", { url: site.url(`/${name}`), interval: 300_000, name })).body["id"],
    );
  [shop, search] = [await create("shop"), await create("search")];
  await server.clock.advance(5_000);
  const groups = [{ name: "", monitor_ids: [shop, search] }];
  pageId = String((await account.post("/v1/pulse/pages", { slug: "facts", title: "F", groups })).body["id"]);
});
afterEach(async () => {
  await server.stop();
  site.stop();
});

interface Shown {
  readonly sentence: string;
  readonly incidents: readonly { title: string; monitors: number[]; status: string; updates: object[] }[];
  readonly maintenance: readonly { title: string; monitors: number[]; starts_at: string }[];
  readonly groups: readonly { monitors: readonly { status: string }[] }[];
}

async function shown(): Promise<Shown> {
  await server.clock.advance(MINUTE_MS);
  return (await server.client(null).get("/status/facts.json")).body as unknown as Shown;
}

async function incident(more: object): Promise<string> {
  const { status, text, body } = await account.post("/v1/pulse/incidents", {
    title: "Incident",
    public: true,
    ...more,
  });
  expect(status, text).toBe(201);
  return String(body["id"]);
}

test(
  "a manual incident is shown with its updates, until 15 days after its resolution",
  async () => {
    await incident({ title: "Not public", public: false });
    const id = await incident({
      impact: "degraded",
      monitor_ids: [search],
      message: "We are investigating.",
    });
    const update = { status: "resolved", message: "It was the disk." };
    expect(await shown()).toMatchObject({
      sentence: "Degraded performance",
      incidents: [{ title: "Incident", monitors: [2] }],
    });
    expect((await account.post(`/v1/pulse/incidents/${id}/updates`, update)).status).toBe(201);
    const after = await shown();
    expect(after).toMatchObject({ sentence: "All systems operational", incidents: [{ status: "resolved" }] });
    expect(after.incidents[0]?.updates.at(-1)).toMatchObject(update);
    const atom = (await server.client(null).get("/status/facts/feed.atom")).text;
    expect(XMLValidator.validate(atom)).toBe(true);
    expect(atom).toContain("It was the disk.");
    expect(atom).not.toContain(id);
    for (const item of [shop, search]) await account.put(`/v1/pulse/${item}`, { active: false });
    await server.clock.advance(15 * DAY_MS);
    expect((await shown()).incidents).toEqual([]);
  },
  TIMEOUT_MS,
);

test("automatic incidents are shown with publish_incidents all, with the names of the page", async () => {
  site.answersBy(({ path }) => (path === "/shop" ? 503 : 200));
  await server.clock.advance(10 * MINUTE_MS);
  expect(await shown()).toMatchObject({ sentence: "Partial outage: 1 of 2 systems is down", incidents: [] });
  await account.patch(`/v1/pulse/pages/${pageId}`, { publish_incidents: "all" });
  expect((await shown()).incidents).toMatchObject([{ title: "shop is down", monitors: [1], updates: [] }]);
  site.answersBy(() => 200);
  await server.clock.advance(10 * MINUTE_MS);
  expect((await shown()).incidents).toMatchObject([{ title: "shop was down", status: "resolved" }]);
  await account.patch(`/v1/pulse/pages/${pageId}`, { publish_incidents: "none" });
  expect((await shown()).incidents).toEqual([]);
  expect((await server.operator.get("/metrics")).text).toContain("\nninefold_incidents_open 0\n");
});

test("a page shows the newest incidents up to its limit", async () => {
  for (let count = 0; count <= INCIDENTS_MAX; count += 1) {
    const id = await incident({ title: `Incident ${count}` });
    await account.post(`/v1/pulse/incidents/${id}/updates`, { status: "resolved", message: "" });
  }
  const { incidents } = await shown();
  expect(incidents).toHaveLength(INCIDENTS_MAX);
  expect(incidents[0]?.title).toBe(`Incident ${INCIDENTS_MAX}`);
});

test(
  "maintenance is announced, shown in progress, and noted on its day",
  async () => {
    const at = (ms: number) => new Date(TEST_START_MS + ms).toISOString();
    const maintenance = {
      title: "New disks",
      monitor_ids: [shop],
      starts_at: at(HOUR_MS),
      ends_at: at(2 * HOUR_MS),
    };
    expect((await account.post("/v1/pulse/maintenance", { ...maintenance, title: "Hidden" })).status).toBe(
      201,
    );
    const { text, status } = await account.post("/v1/pulse/maintenance", { ...maintenance, public: true });
    expect(status, text).toBe(201);
    const every = { title: "Nightly", schedule: "0 23 * * *", duration_ms: HOUR_MS, monitor_ids: [search] };
    expect((await account.post("/v1/pulse/maintenance", every)).status).toBe(201);
    const announced = { title: "New disks", monitors: [1], starts_at: at(HOUR_MS) };
    expect(await shown()).toMatchObject({ sentence: "All systems operational", maintenance: [announced] });
    expect((await server.client(null).get("/status/facts")).text).toContain("Scheduled");
    await server.clock.advance(HOUR_MS);
    expect(await shown()).toMatchObject({
      sentence: "Under maintenance",
      groups: [{ monitors: [{ status: "maintenance" }, { status: "up" }] }],
    });
    await server.clock.advance(DAY_MS);
    const days = server.server.kernel.db.all<{ ref: number; ms: number }, [number]>(
      "SELECT monitor_ref AS ref, maintenance_ms AS ms FROM monitor_days WHERE day = ? ORDER BY 1",
    );
    expect(days(dayOf(TEST_START_MS))).toEqual([
      { ref: 1, ms: HOUR_MS },
      { ref: 2, ms: HOUR_MS },
    ]);
    const { text: html } = await server.client(null).get("/status/facts");
    expect(html).toContain("10 Mar: 100%, 60 min of maintenance");
  },
  TIMEOUT_MS,
);
