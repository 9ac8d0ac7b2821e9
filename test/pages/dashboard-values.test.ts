import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";

const server = useConsole({ args: ["--allow-private-targets", "127.0.0.0/8"] });
let sink: WebhookSink;
beforeAll(() => {
  sink = new WebhookSink();
});
afterAll(() => sink.stop());

/** A name without a space, and one that is written from right to left. */
const LONG = "w".repeat(100);
const RTL = "\u05d7\u05e0\u05d5\u05ea ".repeat(12).trim();

test(
  "long names leave every page as wide as the window and do not squeeze other columns",
  async () => {
    const { operator } = server;
    const created = await operator.post("/v1/pulse", { url: sink.url(), interval: 300_000, name: LONG });
    await operator.post("/v1/pulse", { url: sink.url("/b"), interval: 300_000, name: RTL });
    await operator.post("/v1/pulse/channels", {
      name: LONG,
      kind: "slack",
      config: { url: sink.url() },
      events: ["monitor.down"],
      default: true,
    });
    await operator.post("/v1/pulse/pages", { slug: "long", title: LONG });
    await operator.post("/v1/pulse/maintenance", {
      title: LONG,
      starts_at: "2030-01-31T22:00:00Z",
      ends_at: "2030-01-31T23:00:00Z",
    });
    await operator.post("/v1/pulse/incidents", { title: LONG, message: LONG, public: true });
    const bucket = await operator.post("/v1/catch/buckets", { target_url: sink.url(`/${LONG}`), name: LONG });
    await operator.post("/v1/relay/endpoints", { url: sink.url(`/${LONG}`), name: LONG });
    const key = await operator.post("/v1/keys", {
      name: LONG,
      prefix: "sm",
      scopes: ["*"],
      owner_id: "o".repeat(60),
    });
    await operator.post("/v1/gate", { flag_key: "f".repeat(64), enabled: true, description: LONG });
    await operator.post("/v1/projects", { name: LONG, description: LONG });
    const pages = [
      ...["overview", "projects", "keys", `keys/${key.body["key_id"]}`, "flags", `flags/${"f".repeat(64)}`],
      ...["monitors", `monitors/${created.body["id"]}`, "monitors/channels", "monitors/maintenance"],
      ...["monitors/pages", "monitors/incidents", "relay/endpoints", "catch", `catch/${bucket.body["id"]}`],
      ...["audit", "settings", "monitors?new=1", "monitors/maintenance?new=1"],
    ];
    const visit = await Console.enter(server);
    const { page } = visit;
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 860 });
      for (const view of pages) {
        await visit.go(view);
        await eventually(async () =>
          expect(await visit.overflow(), `${view} at ${width}`).toBeLessThanOrEqual(0),
        );
        const dialog = page.locator("dialog");
        if ((await dialog.count()) > 0)
          await eventually(async () =>
            expect(
              await dialog.evaluate<number, HTMLElementLike>((box) => box.scrollWidth - box.clientWidth),
              `${view} at ${width}`,
            ).toBeLessThanOrEqual(0),
          );
      }
    }
    await page.setViewportSize({ width: 1280, height: 860 });
    await visit.go("monitors");
    const states = page.locator("main tbody .status");
    const [first, second] = [await states.nth(0).boundingBox(), await states.nth(1).boundingBox()];
    expect(first?.x).toBe(second?.x ?? -1);
    await eventually(async () =>
      expect((await page.locator("main tbody tr").first().boundingBox())?.height).toBeLessThan(80),
    );
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

interface HTMLElementLike {
  readonly scrollWidth: number;
  readonly clientWidth: number;
}

test(
  "the audit log shows what changed and nothing else, and names monitors",
  async () => {
    const { operator } = server;
    const { body } = await operator.post("/v1/pulse", {
      url: sink.url("/shop"),
      interval: 300_000,
      name: "Shop",
    });
    await operator.put(`/v1/pulse/${body["id"]}`, { interval: 600_000 });
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("audit?action=monitors.update");
    await page.locator("main a.row").first().click();
    const changes = page.getByRole("table", { name: "Changes" }).last();
    await changes.getByText("interval").waitFor();
    await eventually(async () => expect(await changes.locator("tbody tr").count()).toBe(1));
    await eventually(async () => expect(await changes.locator("del").innerText()).toBe("300000"));
    await eventually(async () => expect(await changes.locator("ins").innerText()).toBe("600000"));
    await page.locator(".inspector").getByRole("link", { name: "Shop", exact: true }).waitFor();
    const work = { title: "Move", monitor_ids: [], schedule: "0 3 * * *", duration_ms: 60_000 };
    const created = await operator.post("/v1/pulse/maintenance", work);
    await operator.patch(`/v1/pulse/maintenance/${created.body["id"]}`, { monitor_ids: [body["id"]] });
    const log = await operator.get(`/v1/audit?target_id=${created.body["id"]}`);
    const [{ sequence } = { sequence: "" }] = log.body["entries"] as { sequence: string }[];
    await visit.go(`audit/${sequence}`);
    await changes.locator("ins", { hasText: "Shop" }).waitFor();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "the overview counts the open incidents that it lists",
  async () => {
    const account = await server.account();
    const visit = await Console.enter(server, String(account.key));
    const { page } = visit;
    await account.post("/v1/pulse", { url: sink.url("/till"), interval: 300_000, name: "Till" });
    await visit.go("overview");
    for (let at = 0; at < 6; at += 1) await account.post("/v1/pulse/incidents", { title: `Incident ${at}` });
    await page.getByText("6 things need attention").waitFor();
    await eventually(async () =>
      expect(await page.locator(".attention li strong", { hasText: /^Incident \d/ }).count()).toBe(6),
    );
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
