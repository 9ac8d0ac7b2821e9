import { afterEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { Scratch } from "../../kernel/support.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { Browser, loggedIn } from "../session/support.ts";
import { join } from "./support.ts";

const scratch = new Scratch();
let server: TestServer;
afterEach(() => server.stop());

const path = scratch.path("people.toml");
const write = (...people: string[]) =>
  writeFileSync(path, people.map((one) => `[[people]]\n${one}\n`).join("\n"));
const people = async () =>
  (await server.operator.get("/v1/people")).body["people"] as Record<string, unknown>[];
const restart = async (...entries: string[]) => {
  write(...entries);
  await server.restart();
};

test("people of the configuration file are what it says at every start", async () => {
  write(
    'email = "Ann@example.com"\nrole = "owner"',
    'email = "bob@example.com"\nrole = "viewer"\nname = "Bob"',
  );
  server = await startTestServer({ manualClock: true, args: ["--config", path] });
  expect(await people()).toMatchObject([
    { email: "bob@example.com", name: "Bob", role: "viewer", status: "invited", from_file: true },
    { email: "Ann@example.com", role: "owner", status: "invited", from_file: true },
  ]);
  const [bob] = await people();
  const at = `/v1/people/${bob?.["person_id"]}`;
  expectError(await server.operator.patch(at, { role: "editor" }), "conflict");
  expectError(await server.operator.patch(at, { projects: [] }), "validation_error");
  expect((await server.operator.patch(at, { name: "Robert", disabled: true })).status).toBe(200);
  await restart('email = "BOB@example.com"\nrole = "editor"\nname = "Bob"');
  expect(await people()).toMatchObject([
    // Disabling is not of the file.
    { email: "bob@example.com", name: "Bob", role: "editor", status: "disabled", from_file: true },
    { email: "Ann@example.com", role: "owner", from_file: false },
  ]);
  expect(server.logs.map(({ message }) => message)).toContain(
    "a person is not in the configuration file any more, and keeps their role: delete them if they have left",
  );
  const { body } = await server.operator.get("/v1/audit?action=people.update&limit=1");
  expect(body["entries"]).toMatchObject([
    { actor: { type: "system" }, before: { role: "viewer" }, after: { role: "editor" } },
  ]);
});

test("the last active owner keeps their role, and mistakes keep no server from starting", async () => {
  write();
  server = await startTestServer({
    manualClock: true,
    args: ["--config", path, "--public-url", "https://ninefold.example.com", "--trust-proxy", "127.0.0.1"],
  });
  const ann = await join(server, server.operator, { role: "owner" });
  const { key, userId } = await server.account();
  const project = await server.client(key).post("/v1/projects", { name: "Shop" });
  await restart(
    `email = "${ann.email}"\nrole = "viewer"`,
    'email = "nobody@example.com"\nrole = "viewer"\naccount = "usr_none"',
    `email = "cy@example.com"\naccount = "${userId}"\nprojects = [{ project_id = "${project.body["id"]}", role = "admin" }]`,
  );
  expect(await people()).toMatchObject([{ email: ann.email, role: "owner", from_file: true }]);
  expect((await server.client(key).get("/v1/people")).body["people"]).toMatchObject([
    { email: "cy@example.com", role: null, projects: [{ project_id: project.body["id"], role: "admin" }] },
  ]);
  const messages = server.logs.map(({ message }) => message);
  expect(messages).toContain(
    "the last active owner keeps their role, which the configuration file would change",
  );
  expect(messages).toContain("a person of the configuration file could not be applied");
});

test("with login.keys = operator, keys of other accounts log no browser in, and their sessions end", async () => {
  writeFileSync(path, "");
  server = await startTestServer({ manualClock: true, args: ["--config", path] });
  const account = await server.account();
  const { cookie } = await loggedIn(server, account.key);
  const ofOperator = (await loggedIn(server, server.key)).cookie;
  /** A browser at the port that the server has now. */
  const browser = (kept: string) => Object.assign(new Browser(server), { cookie: kept });
  writeFileSync(path, '[login]\nkeys = "operator"\n');
  await server.restart();
  expect((await browser(cookie).get("/v1/gate")).status).toBe(401);
  expect((await browser(ofOperator).get("/v1/gate")).status).toBe(200);
  expectError(await new Browser(server).post("/v1/session", { key: account.key }), "forbidden");
  expect((await loggedIn(server, server.key)).cookie).not.toBe("");
  expect((await server.client(account.key).get("/v1/gate")).status).toBe(200);
  writeFileSync(path, "");
  await server.restart();
  expect((await browser(cookie).get("/v1/gate")).status).toBe(401);
});
