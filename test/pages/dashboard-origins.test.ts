import { expect, test } from "bun:test";
import { NAME, openContext, TIMEOUT_MS } from "./browser.ts";
import { Console, useFilledConsole } from "./console.ts";

const server = useFilledConsole();

test(
  "a page of another port cannot use the session, although the browser sends the cookie",
  async () => {
    const visit = await Console.enter(server);
    using other = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response("<title>x</title>", { headers: { "content-type": "text/html" } }),
    });
    const page = await visit.context.newPage();
    await page.goto(`http://127.0.0.1:${other.port}/`);
    const ask = (init: string): Promise<string> =>
      page.evaluate(
        `fetch(${JSON.stringify(`${server.url}/v1/gate`)}, ${init}).then((answer) => "read " + answer.status, () => "refused")`,
      );
    // With the header that makes the cookie count the browser asks first, and is told no.
    expect(await ask('{ credentials: "include", headers: { "X-Ninefold-Session": "1" } }')).toBe("refused");
    expect(await ask('{ credentials: "include" }')).toBe("refused");
    const sent = page.waitForResponse((answer) => answer.url().endsWith("/v1/gate"));
    await page.evaluate(
      `fetch(${JSON.stringify(`${server.url}/v1/gate`)}, { method: "POST", mode: "no-cors", credentials: "include", body: '{"flag_key":"planted","enabled":true}' })`,
    );
    // Without the cookie it would be 401.
    expect((await sent).status()).toBe(403);
    expect((await server.operator.get("/v1/gate/planted")).status).toBe(404);
    await page.close();
    expect(visit.faults).toEqual([]);
    await visit.context.close();
  },
  TIMEOUT_MS,
);

test(
  "logs in, copies and verifies receipts over plain HTTP in a local network",
  async () => {
    const context = await openContext({ viewport: { width: 1280, height: 860 } });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("console", (message) => {
      // The browser says that it takes no notice of a header there.
      const isKnown = message.text().includes("Cross-Origin-Opener-Policy");
      if (message.type() === "error" && !isKnown) faults.push(message.text());
    });
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.goto(`${server.url.replace("127.0.0.1", NAME)}/dashboard/`);
    expect(await page.evaluate<boolean>("isSecureContext || 'clipboard' in navigator")).toBe(false);
    await page.getByLabel("API key").fill(server.key);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("navigation", { name: "Pages" }).waitFor();

    await page.getByRole("link", { name: "Notary", exact: true }).click();
    await page.locator("main a.row").first().click();
    await page.getByRole("button", { name: "Copy receipt" }).click();
    await page.getByText("Receipt copied").waitFor();
    await page.getByRole("button", { name: "Verify" }).click();
    await page.getByLabel("Receipts", { exact: true }).focus();
    await page.keyboard.press("Control+V");
    await page.getByRole("button", { name: "Verify", exact: true }).last().click();
    await page.getByText("The receipt is valid").waitFor();

    await page.getByRole("link", { name: "Flags", exact: true }).click();
    await page.getByRole("switch", { name: "beta-search" }).click();
    await page.getByText("beta-search is on").waitFor();
    expect(faults).toEqual([]);
    await context.close();
  },
  TIMEOUT_MS,
);
