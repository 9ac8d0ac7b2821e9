import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { minuteStore } from "../../src/areas/server/store.ts";
import { eventually } from "../support/eventually.ts";
import { MailServer } from "../support/mail-server.ts";
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

/** Measurements of the last minutes; the disk was full for the last of them, and the server was stopped in between. */
async function storeMinutes(): Promise<void> {
  const { db, writer, clock } = server.server.kernel;
  const { insert } = minuteStore(db);
  const now = Math.floor(clock.now() / 60_000);
  await writer.submit((tx) => {
    for (let age = 50; age > 0; age -= 1) {
      if (age > 20 && age < 30) continue;
      insert(tx, {
        minute: now - age,
        requests: 60 + age,
        errors: 0,
        p99Ms: 4,
        commits: 5,
        commitFailures: 0,
        jobsDue: 0,
        jobsOverdueSeconds: 0,
        lagMs: 1,
        memoryBytes: 80_000_000,
        databaseBytes: 1_000_000,
        diskFreeBytes: age > 3 ? 10 ** 11 : 10 ** 8,
      });
    }
  });
}

test(
  "shows since when the server is not healthy, with the measurements of the last hours; settings show the options",
  async () => {
    await storeMinutes();
    const visit = await Console.enter(server);
    const { page } = visit;
    const main = page.locator("main");
    await visit.go("metrics");
    await eventually(async () => expect(await main.innerText()).toContain("not healthy since"));
    const problems = page.getByRole("table", { name: "Problems" }).locator("tbody tr");
    expect(await problems.allInnerTexts()).toEqual([
      expect.stringContaining("less than 1 GiB of the disk was free"),
      expect.stringContaining("the server was stopped or suspended"),
    ]);
    await page.getByRole("slider", { name: "Requests per minute" }).waitFor();
    await eventually(async () => expect(await page.locator(".line-chart svg").count()).toBe(8));
    await page.getByRole("button", { name: "7 d" }).click();
    await eventually(async () => expect(page.url()).toContain("hours=168"));
    await eventually(async () => expect(await main.innerText()).toContain("steps of 28 min"));
    await eventually(async () => expect(await main.innerText()).toContain("ninefold_http_requests_total"));
    await eventually(async () =>
      expect(await page.getByRole("link", { name: "All metrics" }).getAttribute("href")).toBe(
        `${server.url}/metrics`,
      ),
    );
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
  "sets the mail server, sends a test, and removes it; what a flag sets is shown with its place",
  async () => {
    const mail = await new MailServer().start();
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("settings");
    const panel = (title: string) =>
      page.locator("section.panel").filter({ has: page.getByRole("heading", { name: title, exact: true }) });
    await panel("Scheduled backups").getByText("set in --backup-dir").waitFor();
    const email = panel("E-mail");
    await email.getByLabel("Mail server").fill(mail.url);
    await email.getByLabel("Sender").fill("n@example.com");
    await email.getByRole("button", { name: "Save" }).click();
    await page.getByText("Settings saved").waitFor();
    await email.getByRole("button", { name: "Send a test…" }).click();
    await page.getByLabel("Recipient").fill("ada@example.com");
    await page.getByRole("button", { name: "Send test" }).click();
    await eventually(async () => expect(mail.received.map(({ to }) => to)).toEqual([["ada@example.com"]]));
    await page.getByText("The mail server accepted the e-mail").waitFor();
    await email.getByRole("button", { name: "Remove the stored settings: E-mail" }).click();
    await page.getByRole("button", { name: "Remove settings" }).click();
    await email.getByRole("button", { name: "Send a test…" }).waitFor({ state: "detached" });
    await mail.stop();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "leads through the first steps: what the server shows as done is ticked, and a step can be skipped",
  async () => {
    writeFileSync(join(folder, "ninefold-20260309T030000Z.db"), "backup");
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("start");
    const step = (title: string) => page.locator("main li").filter({ hasText: title });
    await step("Backup").getByText("done", { exact: true }).waitFor();
    await step("First monitor").getByText("to do", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Skip: 3. E-mail" }).click();
    await step("E-mail").getByText("skipped", { exact: true }).waitFor();
    const { status, text } = await server.operator.post("/v1/pulse", {
      type: "heartbeat",
      name: "Nightly",
      period_ms: 86_400_000,
    });
    expect(status, text).toBe(201);
    await step("First monitor").getByText("Nightly is monitored.").waitFor();
    await page.reload();
    await step("E-mail").getByRole("button", { name: "Do this step: 3. E-mail" }).click();
    await step("E-mail").getByRole("link", { name: "Set the mail server" }).waitFor();
    const sidebar = page.getByRole("navigation", { name: "Pages" });
    await page.getByRole("button", { name: "Hide in the sidebar" }).click();
    await sidebar.getByRole("link", { name: "Get started" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Show in the sidebar" }).click();
    await sidebar.getByRole("link", { name: "Get started" }).waitFor();
    await step("Alert channel").getByRole("link", { name: "Create a channel" }).click();
    await page.getByRole("heading", { name: "New channel" }).waitFor();
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
    const choose = async (action: string): Promise<void> => {
      await row.getByLabel("Actions for leaving@example.com").click();
      await row.getByRole("button", { name: action }).click();
    };
    const [file] = await Promise.all([page.waitForEvent("download"), choose("Export")]);
    expect(file.suggestedFilename()).toBe(`${account.userId}.jsonl`);
    await choose("Reset platform key…");
    const reset = page.getByRole("button", { name: "Reset key", exact: true });
    await eventually(async () => expect(await reset.isDisabled()).toBe(true));
    await page.getByLabel("Type leaving@example.com to confirm").fill("leaving@example.com");
    await reset.click();
    const secret = await page.locator("[data-secret]").innerText();
    expect((await account.get("/v1/meter/balance")).status).toBe(401);
    expect((await server.client(secret).get("/v1/meter/balance")).status).toBe(200);
    await page.getByRole("button", { name: "I have saved it" }).click();
    await choose("Delete…");
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
