import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Browser } from "../areas/session/support.ts";
import type { Ended } from "../support/ended.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { ninefold } from "./run.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

function call(line: string): Promise<Ended> {
  return ninefold(line.split(" "), {
    environment: { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: server.key },
  });
}

async function json(line: string): Promise<Record<string, unknown>> {
  const { code, out, error } = await call(`${line} --json`);
  expect([code, error]).toEqual([0, ""]);
  return JSON.parse(out);
}

describe("people", () => {
  test("are invited with a link at localhost, listed, and disabled by address", async () => {
    const invited = await json("people invite Ann@example.com --role editor --name Ann");
    const { port } = new URL(server.url);
    expect(invited).toMatchObject({
      email: "Ann@example.com",
      name: "Ann",
      role: "editor",
      status: "invited",
      invitation_url: expect.stringContaining(`http://localhost:${port}/dashboard/#/invitation/`),
    });
    expect((await call("people list")).out).toMatch(/psn_\w{20} +Ann@example\.com +Ann +editor +invited +-/);
    expect(await json("people disable ann@EXAMPLE.com")).toMatchObject({
      person_id: invited["person_id"],
      status: "disabled",
    });
    expect(await call("people disable nobody@example.com")).toMatchObject({
      code: 1,
      error: "ninefold: There is no person with the e-mail address nobody@example.com.\n",
    });
    expect((await call("people invite bob@example.com")).error).toContain("people invite needs --role.");
  });

  test("log in by a link that is made on the folder of the stopped server, once", async () => {
    await server.operator.post("/v1/people", { email: "eve@example.com", role: "owner" });
    const account = await server.account();
    await account.post("/v1/people", { email: "dan@example.com", role: "viewer" });
    const link = (line: string) => call(`people login-link ${line} --data ${server.folder} --json`);
    expect((await link("eve@example.com")).error).toContain("A running server uses");
    await server.halt();
    const { out } = await link("EVE@example.com");
    const { url, expires_at } = JSON.parse(out);
    expect(url).toStartWith("http://localhost:9909/dashboard/#/setup/");
    expect(Date.parse(expires_at)).toBeGreaterThan(Date.now());
    const ofAccount = JSON.parse((await link(`dan@example.com --account ${account.userId}`)).out);
    expect((await link("dan@example.com")).error).toContain("has no person with the address dan@example.com");
    expect((await link("dan@example.com --account usr_none")).error).toContain(
      "There is no account usr_none",
    );
    expect((await link("ann@example.com")).error).toContain("ann@example.com is disabled");
    await server.restart();
    const open = (text: string) => new Browser(server).post("/v1/session", { link: text.split("/").at(-1) });
    expect((await open(url)).body).toMatchObject({
      method: "link",
      person: { email: "eve@example.com", role: "owner" },
    });
    expect((await open(url)).status).toBe(401);
    expect((await open(ofAccount.url)).body).toMatchObject({ user_id: account.userId });
    const { body } = await server.operator.get("/v1/audit?action=people.login_link.create");
    expect(body["entries"]).toMatchObject([{ summary: expect.stringContaining("eve@example.com") }]);
  });
});
