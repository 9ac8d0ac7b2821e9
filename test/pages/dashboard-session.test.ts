import { describe, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";

const server = useConsole();

/** Makes the browser say that nobody sees the page, or that somebody does. */
function hide(visit: Console, hidden: boolean): Promise<unknown> {
  return visit.page.evaluate(
    `Object.defineProperty(document, "hidden", { value: ${hidden}, configurable: true });
     document.dispatchEvent(new Event("visibilitychange"))`,
  );
}

test(
  "a login link opens one session, is removed from the address, and works once",
  async () => {
    const { body } = await server.operator.post("/v1/admin/login-links", {});
    const visit = await Console.open(server);
    const url = String(body["url"]);
    // The part behind # alone would not load the page anew.
    const follow = async (): Promise<void> => {
      await visit.page.goto("about:blank");
      await visit.page.goto(url);
    };
    await follow();
    await visit.page.getByRole("navigation", { name: "Pages" }).waitFor();
    await eventually(() => expect(visit.page.url()).not.toContain("setup"));
    await visit.page.getByRole("button", { name: "Log out" }).click();
    await visit.page.getByLabel("API key").waitFor();
    await follow();
    await visit.page.getByLabel("API key").waitFor();
    await eventually(async () =>
      expect(await visit.page.getByRole("status").first().innerText()).not.toBe(""),
    );
    await eventually(async () =>
      expect(await visit.page.getByRole("navigation", { name: "Pages" }).count()).toBe(0),
    );
    expect(visit.faults.splice(0)).toEqual([expect.stringContaining("401")]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

describe("an open page", () => {
  test(
    "shows changes by other keys, and keeps no connection while hidden",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("flags");
      await page.getByText("live", { exact: true }).waitFor();
      await server.operator.post("/v1/gate", { flag_key: "by-another", enabled: true });
      await page.getByRole("switch", { name: "by-another" }).waitFor();

      const ended = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/v1/changes"));
      await hide(visit, true);
      await ended;
      await page.getByText("polling", { exact: true }).waitFor();
      await visit.settleRequests();
      const before = visit.requests.length;
      await server.operator.post("/v1/gate", { flag_key: "unseen", enabled: true });
      await page.waitForTimeout(1_500);
      expect(visit.requests).toHaveLength(before);

      await hide(visit, false);
      await page.getByRole("switch", { name: "unseen" }).waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "of a key without * shows only its own project",
    async () => {
      await server.operator.post("/v1/projects", { name: "Other" });
      const key = { name: "Narrow", prefix: "sm", scopes: ["gate:read", "projects:read"] };
      const { body } = await server.operator.post("/v1/keys", key);
      const visit = await Console.enter(server, String(body["secret"]));
      await visit.go("flags");
      await eventually(async () =>
        expect(await visit.page.getByLabel("Project", { exact: true }).isDisabled()).toBe(true),
      );
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "requests a new login when its key is revoked",
    async () => {
      const key = { name: "Short", prefix: "sm", scopes: ["gate:read"] };
      const { body } = await server.operator.post("/v1/keys", key);
      const visit = await (await Console.open(server)).logIn(String(body["secret"]));
      const { page } = visit;
      expect((await server.operator.delete(`/v1/keys/${body["key_id"]}`)).status).toBe(200);
      // By its address: the links may have gone, since the server ends the stream of a revoked key.
      await page.evaluate("location.hash = '#/flags'");
      await page.getByText("Your session has expired.").waitFor();
      expect(visit.faults.splice(0).every((fault) => fault.includes("401"))).toBe(true);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});
