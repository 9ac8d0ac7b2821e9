import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { closeBrowser, TIMEOUT_MS } from "./browser.ts";
import { Console } from "./console.ts";

let folder: string;
let server: TestServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-console-"));
  server = await startTestServer({ args: ["--backup-dir", folder] });
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  await server.stop();
  rmSync(folder, { recursive: true });
}, TIMEOUT_MS);

test(
  "starts a backup, lists it when it is complete, and shows how to restore it",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("overview");
    const card = page.locator("a.card", { hasText: "Last backup" });
    await eventually(async () => expect(await card.innerText()).toContain("none"));
    await visit.go("backups");
    await page.getByRole("button", { name: "Back up now" }).click();
    await page.getByText("Backup started").waitFor();
    const row = page.getByRole("table", { name: "Backups" }).locator("tbody tr");
    await row.waitFor();
    const [name = ""] = readdirSync(folder).filter((file) => file.endsWith(".db"));
    await eventually(async () => expect(await row.innerText()).toContain(name));
    const line = `ninefold restore ${folder}/${name} --data ${server.folder} --force`;
    await page.getByText(line, { exact: true }).waitFor();
    await page.getByText("fine", { exact: true }).waitFor();
    await visit.go("overview");
    await card.locator("time").waitFor();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "samples the metrics repeatedly and draws them; settings show the options",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.installClock();
    const looks = () => visit.requests.filter((request) => request.endsWith("/v1/admin/status")).length;
    await visit.go("metrics");
    const before = looks();
    for (let look = 1; look <= 2; look += 1) {
      const answered = page.waitForResponse((response) => response.url().endsWith("/v1/admin/status"));
      await page.clock.runFor(5_000);
      await answered;
    }
    expect(looks()).toBe(before + 2);
    await page.getByRole("slider", { name: "Requests per second" }).waitFor();
    await eventually(async () => expect(await page.locator(".line-chart svg").count()).toBe(4));
    await eventually(async () =>
      expect(await page.locator("main").innerText()).toContain("ninefold_http_requests_total"),
    );
    await eventually(async () =>
      expect(await page.getByRole("link", { name: "All metrics" }).getAttribute("href")).toBe(
        `${server.url}/metrics`,
      ),
    );
    await visit.go("overview");
    await page.clock.runFor(20_000);
    expect(looks()).toBe(before + 2);
    await visit.go("settings");
    const options = page.getByRole("table", { name: "Server options" });
    await eventually(async () => expect(await options.innerText()).toContain(folder));
    await eventually(async () => expect(await options.innerText()).not.toContain("signup"));
    await page.getByLabel("Show defaults").check();
    await options.getByText("signup", { exact: true }).waitFor();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "hides these pages from other accounts",
  async () => {
    const account = await server.account({ tier: "pro" });
    const visit = await Console.enter(server, String(account.key));
    const pages = await visit.page
      .getByRole("navigation", { name: "Pages" })
      .getByRole("link")
      .allInnerTexts();
    expect(pages).toContain("Settings");
    for (const name of ["Backups", "Metrics"]) expect(pages).not.toContain(name);
    await visit.go("settings");
    await eventually(async () =>
      expect(await visit.page.locator("main").innerText()).not.toContain("Server options"),
    );
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "exports an account, resets its key, and deletes it after its address was typed",
  async () => {
    const account = await server.account({ tier: "free", email: "leaving@example.com" });
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("settings");
    const row = page.getByRole("row").filter({ hasText: "leaving@example.com" });
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      row.getByRole("button", { name: "Export" }).click(),
    ]);
    expect(file.suggestedFilename()).toBe(`${account.userId}.jsonl`);
    await row.getByRole("button", { name: "Edit…" }).click();
    await page.getByRole("button", { name: "Reset platform key…" }).click();
    await page.getByRole("button", { name: "Reset key", exact: true }).click();
    const secret = await page.locator("[data-secret]").innerText();
    expect((await account.get("/v1/meter/balance")).status).toBe(401);
    expect((await server.client(secret).get("/v1/meter/balance")).status).toBe(200);
    await page.getByRole("button", { name: "I have saved it" }).click();
    await row.getByRole("button", { name: "Delete…" }).click();
    const confirm = page.getByRole("button", { name: "Delete account" });
    await eventually(async () => expect(await confirm.isDisabled()).toBe(true));
    await page.getByLabel("Type leaving@example.com to confirm").fill("leaving@example.com");
    await confirm.click();
    await row.waitFor({ state: "detached" });
    expect((await server.client(secret).get("/v1/meter/balance")).status).toBe(401);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
