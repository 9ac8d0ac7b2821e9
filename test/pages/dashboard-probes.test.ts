import { expect, test } from "bun:test";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";

const server = useConsole();

test(
  "creates a probe with a token that is shown once, shows what it sees of a monitor, and deletes it",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("monitors/probes");
    await page.getByText("No probes").waitFor();
    await page.getByRole("button", { name: "New probe" }).click();
    await page.getByLabel("Name", { exact: true }).fill("fra");
    await page.getByLabel("Location").fill("Frankfurt");
    await page.getByRole("button", { name: "Create probe" }).click();
    await page.getByText("ninefold probe --url").waitFor();
    const token = await page.locator("[data-secret]").innerText();
    await page.getByRole("button", { name: "I have saved it" }).click();
    const row = page.getByRole("row").filter({ hasText: "Frankfurt" });
    await row.getByText("new", { exact: true }).waitFor();

    const monitor = { url: "https://10.9.8.7/", interval: 60_000, name: "Shop", probes: ["fra"] };
    const { id } = (await server.operator.post("/v1/pulse", monitor)).body;
    const probe = server.client(token);
    const result = {
      result_id: "a",
      monitor_id: id,
      age_ms: 0,
      status: "down",
      latency_ms: 7,
      error: "timeout: none",
    };
    expect((await probe.post("/v1/probe/results", { results: [result] })).body["accepted"]).toBe(1);
    await row.getByText("online", { exact: true }).waitFor();
    await visit.go(`monitors/${id}`);
    await page.getByText("Down when most probes see it down").waitFor();
    const seen = page.getByRole("table", { name: "Probes" }).getByRole("row").filter({ hasText: "fra" });
    await seen.getByText("timeout: none").waitFor();
    await visit.go(`monitors/${id}?rows=checks`);
    await page.getByText("from fra").waitFor();

    const seenBy = (note: string) =>
      page.locator("section").filter({ hasText: note }).getByRole("row").filter({ hasText: "fra" });
    const { incident_id } = (await server.operator.get(`/v1/pulse/${id}`)).body;
    await visit.go(`monitors/incidents/${incident_id}`);
    await seenBy("Now · All probes").getByText("timeout: none").waitFor();
    const up = { ...result, result_id: "b", status: "up", error: null };
    expect((await probe.post("/v1/probe/results", { results: [up] })).body["accepted"]).toBe(1);
    await page.setViewportSize({ width: 390, height: 844 });
    await seenBy("When it was opened · All probes").getByText("down", { exact: true }).waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
    await page.setViewportSize({ width: 1280, height: 844 });

    await visit.go("monitors/probes");
    await page.getByRole("button", { name: "Delete fra" }).click();
    await page.getByRole("button", { name: "Delete probe" }).click();
    await page.getByText("Only this probe checks the monitor").waitFor();
    await server.operator.delete(`/v1/pulse/${id}`);
    await page.getByRole("button", { name: "Delete probe" }).click();
    await page.getByText("No probes").waitFor();
  },
  TIMEOUT_MS,
);
