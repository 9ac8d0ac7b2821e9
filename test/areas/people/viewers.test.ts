import { afterAll, beforeAll, expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import { makeResource, parametersOf, pathOf, queryOf, segmentOf } from "../../support/matrix.ts";
import type { AccountClient, TestServer } from "../../support/server.ts";
import { startTestServer } from "../../support/server.ts";
import { ARGS, join, type PersonBrowser } from "./support.ts";

let server: TestServer;
let account: AccountClient;
let viewer: PersonBrowser;
let responder: PersonBrowser;
beforeAll(async () => {
  server = await startTestServer({
    manualClock: true,
    args: [...ARGS, "--allow-private-targets", "127.0.0.0/8"],
  });
  account = await server.account({ tier: "unlimited" });
  viewer = await join(server, account, { role: "viewer" });
  responder = await join(server, account, { role: "responder" });
});
afterAll(() => server.stop());

/** How the targets of the matrix begin; what viewers see of them ends before the slash. */
const TARGET = "https://127.0.0.1:9/";
/** What a monitor checks is what its viewers are interested in. */
const MONITOR = /"url":"https:\/\/127\.0\.0\.1:9\/","name"|"target":\{[^}]*\}/g;
const SECRETS =
  /https:\/\/127\.0\.0\.1:9\/|\/v1\/in\/|\/ping\/[0-9A-Za-z]|\/api\/push\/|whsec_|secret_digest/;

test("viewers and responders see no URL that is a secret in any read", async () => {
  const made = new Map<string, Readonly<Record<string, string>>>();
  const reads = server.server.app.http.routes.filter(
    ({ method, operation }) =>
      method === "GET" &&
      operation.access !== "public" &&
      operation.access !== "operator" &&
      !operation.byPortal &&
      !operation.forProxies &&
      operation.name !== "changes.stream",
  );
  let targets = 0;
  for (const read of reads) {
    const segment = segmentOf(read);
    const isNamed = parametersOf(read).length > 0;
    const known = made.get(segment) ?? (isNamed ? await makeResource(segment, account) : {});
    if (isNamed) made.set(segment, known);
    const path = pathOf(read, known) + queryOf(read);
    if ((await account.get(path)).text.includes(TARGET)) targets += 1;
    for (const person of [viewer, responder]) {
      const { text } = await person.get(path);
      const [secret = null] = SECRETS.exec(text.replace(MONITOR, "")) ?? [];
      expect([read.operation.name, secret], text.slice(0, 2_000)).toEqual([read.operation.name, null]);
    }
  }
  // Those of an owner have targets: the test looks at the right fields.
  expect(targets).toBeGreaterThan(8);
}, 60_000);

test("a stored response is that which the person saw", async () => {
  const monitor = await account.post("/v1/pulse", {
    url: "https://127.0.0.1:9/",
    interval: 300_000,
    webhook_url: "https://hooks.example.com/token-in-path",
  });
  const check = (client: Pick<PersonBrowser, "post">) =>
    client.post(`/v1/pulse/${monitor.body["id"]}/check`, undefined, {
      headers: { "idempotency-key": "check" },
    });
  for (const replayed of [null, "true"]) {
    const { status, headers, body, text } = await check(responder);
    expect([status, headers.get("idempotent-replayed")], text).toEqual([200, replayed]);
    expect(body["webhook_url"]).toBe("https://hooks.example.com");
  }
});

test("a stored response is not replayed to another person, nor that of a key to a person", async () => {
  const sent = { headers: { "idempotency-key": "name" } };
  const rename = (person: PersonBrowser) => person.patch("/v1/people/me", { name: "Ann" }, sent);
  expect((await rename(viewer)).body["email"]).toBe(viewer.email);
  expect((await rename(viewer)).headers.get("idempotent-replayed")).toBe("true");
  const { text, ...other } = await rename(responder);
  expect(text).not.toContain(viewer.email);
  expectError({ text, ...other }, "conflict");
  const plan = (client: Pick<PersonBrowser, "post">) =>
    client.post("/v1/pulse/maintenance", { title: "Move", schedule: "@yearly", duration_ms: 60_000 }, once);
  const once = { headers: { "idempotency-key": "maintenance" } };
  expect((await plan(account)).status).toBe(201);
  expectError(await plan(responder), "conflict");
});
