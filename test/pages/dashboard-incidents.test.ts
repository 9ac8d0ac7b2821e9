import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { closeBrowser, TIMEOUT_MS } from "./browser.ts";
import { Console } from "./console.ts";

let server: TestServer;
const sink = new WebhookSink();
beforeAll(async () => {
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  await server.stop();
  sink.stop();
}, TIMEOUT_MS);

test(
  "creates a channel, tests it, updates it without its secret, selects it for a monitor, and deletes it",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("monitors");
    await page.getByRole("link", { name: "Channels", exact: true }).click();
    await page.getByText("No channels here").waitFor();
    await visit.go("monitors?new=heartbeat");
    await page.getByRole("link", { name: "create a channel" }).waitFor();
    await visit.go("monitors/channels");
    await page.getByRole("button", { name: "New channel" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Ops phone");
    await page.getByLabel("Kind").selectOption("gotify");
    await page.getByLabel("URL").fill(sink.url("/gotify"));
    await page.getByLabel("Token").fill("s3cret");
    await page.getByLabel("is acknowledged").check();
    await page.getByLabel("Remind while a target is down").selectOption("6h");
    await page.getByLabel("Default for monitors without channels").uncheck();
    await page.getByRole("button", { name: "Create channel" }).click();
    await page.getByText("Channel created. Send a test.").waitFor();
    await page.getByRole("button", { name: "Test Ops phone" }).click();
    await page.getByText("Test sent to Ops phone").waitFor();
    expect(sink.take().map(({ path }) => path)).toEqual(["/gotify/message"]);
    await page.getByRole("button", { name: "Edit Ops phone" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Ops");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Test Ops" }).click();
    await page.getByText("Test sent to Ops", { exact: true }).waitFor();
    expect(sink.take()[0]?.headers.get("x-gotify-key")).toBe("s3cret");
    const [channel] = (await server.operator.get("/v1/pulse/channels")).body["channels"] as { id: string }[];
    expect(channel).toMatchObject({
      name: "Ops",
      kind: "gotify",
      default: false,
      remind: "6h",
      last_error: null,
    });
    expect(channel).toMatchObject({ config: { token: "[secret]" } });

    const monitor = { url: sink.url("/site"), interval: 300_000, name: "Shop" };
    const { body: made } = await server.operator.post("/v1/pulse", monitor);
    await visit.go(`monitors/${made["id"]}`);
    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByLabel("The project's default channels").uncheck();
    await page.getByLabel("Ops", { exact: true }).check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Monitor updated").waitFor();
    const { body: chosen } = await server.operator.get(`/v1/pulse/${made["id"]}`);
    expect(chosen["channels"]).toEqual([channel?.id]);

    await visit.go("monitors/channels");
    await page.getByRole("button", { name: "Delete Ops" }).click();
    await page.getByRole("button", { name: "Delete channel" }).click();
    await page.getByText("No channels here").waitFor();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "a channel with escalation, quiet hours and a group is created and edited, also on a phone, and its fields say what is wrong",
  async () => {
    await server.operator.post("/v1/pulse/channels", {
      name: "Boss",
      kind: "webhook",
      config: { url: sink.url("/boss") },
      default: false,
    });
    const visit = await Console.enter(server);
    const { page } = visit;
    await page.setViewportSize({ width: 390, height: 844 });
    await visit.go("monitors/channels");
    await page.getByRole("button", { name: "New channel" }).click();
    const dialog = page.getByRole("dialog");
    await page.getByLabel("Name", { exact: true }).fill("Duty");
    await page.getByLabel("Kind").selectOption("webhook");
    await page.getByLabel("URL").fill(sink.url("/duty"));
    await dialog.getByText("More", { exact: true }).click();
    await dialog.getByRole("button", { name: "Add a step" }).click();
    await dialog.getByRole("button", { name: "Add a step" }).click();
    const minutes = (step: number) => dialog.getByLabel(`Step ${step}: minutes after the alert`);
    const problemAt = (field: ReturnType<typeof minutes>) =>
      field.evaluate(({ validationMessage }: { readonly validationMessage: string }) => validationMessage);
    const create = dialog.getByRole("button", { name: "Create channel" });
    await create.click();
    expect(await problemAt(minutes(1))).toBe("Select a channel that the step notifies.");
    for (const box of await dialog.getByLabel("Notify Boss").all()) await box.check();
    await minutes(2).fill("15");
    await create.click();
    expect(await problemAt(minutes(2))).toBe("Must be more minutes than in the step before.");
    await minutes(1).fill("0.5");
    await create.click();
    expect(await problemAt(minutes(1))).not.toBe("");
    await minutes(1).fill("1.5");
    await dialog.getByLabel("Hold alerts in quiet hours").check();
    const [from, to] = [dialog.getByLabel("From", { exact: true }), dialog.getByLabel("To", { exact: true })];
    const zone = dialog.getByLabel("Time zone");
    await from.fill("24:00");
    await create.click();
    expect(await problemAt(from)).not.toBe("");
    await from.fill("07:00");
    await create.click();
    expect(await problemAt(to)).toBe("Must be another time than From.");
    await from.fill("23:30");
    await zone.fill("Mars/Olympus");
    await create.click();
    expect(await problemAt(zone)).toBe("Must be a time zone such as Europe/Berlin or UTC.");
    await zone.fill("Asia/Kathmandu");
    await dialog.getByLabel("Collect alerts for").fill("30");
    expect([await visit.overflow(), await visit.violations()]).toEqual([0, []]);
    expect(await server.operator.get("/v1/pulse/channels").then(({ body }) => body["channels"])).toHaveLength(
      1,
    );
    await create.click();
    await page.getByText("Channel created. Send a test.").waitFor();
    const found = async () =>
      ((await server.operator.get("/v1/pulse/channels")).body["channels"] as Record<string, unknown>[]).find(
        ({ name }) => name === "Duty",
      ) ?? {};
    const { escalate, ...duty } = await found();
    expect(duty).toMatchObject({
      quiet_hours: { from: "23:30", to: "07:00", time_zone: "Asia/Kathmandu" },
      group_ms: 30_000,
    });
    expect((escalate as { after_ms: number }[]).map(({ after_ms }) => after_ms)).toEqual([90_000, 900_000]);
    await page.getByRole("button", { name: "Edit Duty" }).click();
    await dialog.getByText("More", { exact: true }).click();
    expect(await minutes(2).inputValue()).toBe("15");
    await dialog.getByRole("button", { name: "Remove step 1" }).click();
    await dialog.getByLabel("Hold alerts in quiet hours").uncheck();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Channel updated").waitFor();
    const after = await found();
    expect(after).toMatchObject({ quiet_hours: null, group_ms: 30_000 });
    expect((after["escalate"] as { after_ms: number }[]).map(({ after_ms }) => after_ms)).toEqual([900_000]);
    await visit.expectClean();
    for (const { id } of (await server.operator.get("/v1/pulse/channels")).body["channels"] as {
      id: string;
    }[])
      await server.operator.delete(`/v1/pulse/channels/${id}`);
  },
  TIMEOUT_MS,
);

test(
  "acknowledges the incident of an outage; posts updates to a manual one with a preview of what visitors see",
  async () => {
    sink.answers(500);
    const hook = { name: "Team chat", kind: "webhook", config: { url: sink.url("/hook") } };
    const events = ["monitor.down", "monitor.acknowledged"];
    await server.operator.post("/v1/pulse/channels", { ...hook, events });
    const monitor = { url: sink.url("/site"), interval: 300_000, name: "Basket" };
    const { body: made } = await server.operator.post("/v1/pulse", monitor);
    await server.operator.post(`/v1/pulse/${made["id"]}/check`);
    const groups = [{ name: "", monitor_ids: [made["id"]] }];
    await server.operator.post("/v1/pulse/pages", { slug: "acme", title: "Acme", groups });
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go(`monitors/${made["id"]}`);
    await page.getByText(/Notifies .+\./).waitFor();
    await page.getByText("1 outage").first().waitFor();
    const chart = page.getByRole("slider", { name: "Availability and latency" });
    await chart.focus();
    await page.getByText(/: 0 of \d checks? up/).waitFor();
    await chart.press("Home");
    await page.getByText(": no checks").waitFor();
    await page.getByRole("button", { name: "90d", exact: true }).click();
    await page.waitForURL(/range=90d/);
    await page.getByRole("button", { name: "Checks", exact: true }).click();
    await page
      .getByRole("table", { name: "Checks" })
      .getByText("the target responded with 500")
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Outages", exact: true }).click();
    const outages = page.getByRole("table", { name: "Outages" });
    await outages.getByText("not acknowledged").waitFor();
    await outages.getByRole("link").click();
    await page.getByRole("heading", { name: "Basket is down" }).waitFor();
    await page.getByText("Nothing: no published status page has these monitors").waitFor();
    // Only a check resolves it.
    await eventually(async () =>
      expect(await page.getByRole("button", { name: "Resolved", exact: true }).count()).toBe(0),
    );
    const timeline = page.getByRole("table", { name: "Timeline" });
    await timeline.getByText("the target responded with 500").waitFor();
    await page.getByRole("button", { name: "Snooze 1 h" }).click();
    await page.getByText("Snoozed. Nobody is notified again for an hour.").waitFor();
    await page.getByText(/ · snoozed until /).waitFor();
    await visit.go(`monitors/${made["id"]}`);
    await page.getByRole("button", { name: "Outages", exact: true }).click();
    await page.getByRole("table", { name: "Outages" }).getByText("snoozed until").waitFor();
    await page.getByRole("table", { name: "Outages" }).getByRole("link").click();
    await page.getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText("Acknowledged. The alert will not be repeated.").waitFor();
    await page.getByRole("button", { name: "Acknowledge" }).waitFor({ state: "detached" });
    expect(await page.getByRole("button", { name: "Snooze 1 h" }).count()).toBe(0);
    await timeline.getByRole("row", { name: "acknowledged" }).getByText("notified Team chat").waitFor();

    await page.getByRole("link", { name: "Incidents" }).last().click();
    await page.getByRole("button", { name: "New incident" }).click();
    await page.getByLabel("Title").fill("Payments fail");
    await page.getByRole("dialog").getByLabel("Message").fill("We look into it.");
    await page.getByRole("dialog").getByLabel("Basket").check();
    await page.getByRole("button", { name: "Open incident" }).click();
    await page.getByRole("heading", { name: "Payments fail", level: 1 }).waitFor();
    const preview = page.getByRole("article", { name: "Preview" });
    await preview.getByText("We look into it.").waitFor();
    await page.getByText("Hidden from Acme. Publish the incident to show it there.").waitFor();
    await page.getByText("No status page shows this incident").waitFor();
    await page.getByRole("button", { name: "Publish" }).click();
    await page.getByRole("button", { name: "Hide" }).waitFor();
    await page.getByText("Shown on Acme.").waitFor();
    const monitors = page.getByRole("table", { name: "Affected monitors" });
    await monitors.getByText("down", { exact: true }).waitFor();

    // The preview shows what is being written.
    await page.getByRole("button", { name: "Monitoring", exact: true }).click();
    await page.getByLabel("Impact").selectOption("degraded");
    await page.getByLabel("Message").fill("Fixed.\nSee https://acme.example/fix");
    await preview.getByText("Fixed.").waitFor();
    await eventually(async () =>
      expect(await preview.innerText()).toMatch(/Payments fail\s+degraded · .* · Basket\s+monitoring now/),
    );
    await page.getByLabel("Message").press("Control+Enter");
    await timeline.getByText("Fixed.").waitFor();
    await eventually(async () => expect(await page.getByLabel("Message").inputValue()).toBe(""));
    const { body: shown } = await server.operator.get("/status/acme.json");
    expect(shown["incidents"]).toMatchObject([{ impact: "degraded", status: "monitoring" }]);
    await eventually(async () => expect(await visit.violations()).toEqual([]));

    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByRole("dialog").getByLabel("Title").fill("Payments failed");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Payments failed", level: 1 }).waitFor();
    await page.getByRole("button", { name: "Resolved", exact: true }).click();
    await page.getByLabel("Message").fill("All is well.");
    await page.getByRole("button", { name: "Post update" }).click();
    await timeline.getByText("All is well.").waitFor();
    await page.getByRole("button", { name: "Post update" }).waitFor({ state: "detached" });
    const { body } = await server.operator.get("/v1/pulse/incidents?status=resolved");
    expect(body["incidents"]).toMatchObject([{ title: "Payments failed", public: true }]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
