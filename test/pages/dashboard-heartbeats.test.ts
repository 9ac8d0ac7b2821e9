import { expect, test } from "bun:test";
import { Client } from "../support/client.ts";
import { eventually } from "../support/eventually.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useFilledConsole } from "./console.ts";

const server = useFilledConsole();

test(
  "creates a heartbeat, shows its ping command and pings, and updates it",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("monitors");
    await page.getByRole("button", { name: "New heartbeat" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Mail queue");
    await page.getByLabel("Slug").fill("mail-queue");
    await page.getByLabel("Time between pings").fill("90");
    await page.getByLabel("Grace period (minutes)").fill("5");
    await page.getByRole("button", { name: "Create heartbeat" }).click();
    await page.getByRole("heading", { name: "Mail queue", level: 1 }).waitFor();
    const found = async () => {
      const { body } = await server.operator.get(`/v1/pulse?name=${encodeURIComponent("Mail queue")}`);
      return (body["monitors"] as Record<string, unknown>[])[0] ?? {};
    };
    const created = await found();
    expect(created).toMatchObject({ type: "heartbeat", period_ms: 5_400_000, grace_ms: 300_000 });
    await page.getByText("No outages yet.").waitFor();
    await page.getByRole("button", { name: "Pings", exact: true }).click();
    await page.getByText("No pings yet.").waitFor();
    const line = `curl --globoff -fsS -m 10 --retry 5 ${created["ping_url"]}`;
    await eventually(async () => expect(await page.locator(".code pre").first().innerText()).toBe(line));
    const nobody = new Client(server.url, null);
    const { pathname } = new URL(String(created["ping_url"]));
    await nobody.send("POST", pathname, "12 sent\n<b>none</b> left");
    await nobody.get(`${pathname}/3`);
    await page.getByText("fail, exit 3").waitFor();
    await page.getByText("12 sent").first().click();
    await page.getByText("<b>none</b> left").waitFor();
    await eventually(async () =>
      expect(await page.getByRole("button", { name: "Check now" }).count()).toBe(0),
    );
    await page.getByRole("button", { name: "Create the project's ping key" }).click();
    await page.getByText(/\/ping\/[0-9A-Za-z]{22}\/mail-queue/).waitFor();
    await page
      .getByText(
        "Pinged every 1 h 30 min, grace period 5 min. Notifies Duty phone and Team chat (default channels).",
      )
      .waitFor();
    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByText("More", { exact: true }).click();
    await page.getByLabel("Longest run (minutes)").fill("20");
    await page.getByLabel("Runs per period").fill("2");
    await page.getByLabel("Group").fill("Mail");
    await page.getByLabel("Pings are expected").selectOption("schedule");
    await page.getByLabel("Schedule").fill("0 6 * * MON");
    await page.getByLabel("Time zone").fill("Europe/Berlin");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("at 0 6 * * MON, Europe/Berlin").waitFor();
    expect(await found()).toMatchObject({
      schedule: "0 6 * * MON",
      tz: "Europe/Berlin",
      period_ms: null,
      group: "Mail",
      start_grace_ms: 1_200_000,
      max_runs_per_period: 2,
    });
    await page.getByText("grace period 5 min, longest run 20 min, at most 2 runs per period.").waitFor();
    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByText("More", { exact: true }).click();
    await page.getByLabel("Longest run (minutes)").fill("");
    await page.getByLabel("Runs per period").fill("");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("grace period 5 min. Notifies").waitFor();
    expect(await found()).toMatchObject({ start_grace_ms: null, max_runs_per_period: null });
    await page.getByRole("link", { name: "Monitors / Mail" }).waitFor();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
