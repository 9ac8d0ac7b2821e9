import { afterAll, beforeAll, expect, test } from "bun:test";
import { isAtLeast, ROLES, type Role } from "../../../src/kernel/callers/role.ts";
import type { DeclaredRoute } from "../../../src/kernel/http/api.ts";
import { expectError } from "../../support/errors.ts";
import { makeResource, parametersOf, pathOf } from "../../support/matrix.ts";
import type { AccountClient, TestServer } from "../../support/server.ts";
import { startTestServer } from "../../support/server.ts";
import { ARGS, join, type PersonBrowser } from "./support.ts";

let server: TestServer;
let account: AccountClient;
let people: Record<Role, PersonBrowser>;
beforeAll(async () => {
  server = await startTestServer({
    manualClock: true,
    args: [...ARGS, "--allow-private-targets", "127.0.0.0/8"],
  });
  account = await server.account({ tier: "unlimited" });
  const joined = [];
  for (const role of ROLES) joined.push([role, await join(server, account, { role })]);
  people = Object.fromEntries(joined);
});
afterAll(() => server.stop());

/** Operations that people can call; those of the operator are for owners of an account like this one. */
function routes(): readonly DeclaredRoute[] {
  return server.server.app.http.routes.filter(
    ({ operation }) => operation.access !== "public" && !operation.byPortal && !operation.forProxies,
  );
}

/** A request that passes the gates and is rejected because of its input, or finds nothing: it has no effect. */
function knock(browser: PersonBrowser, route: DeclaredRoute) {
  const params = Object.fromEntries(parametersOf(route).map((name) => [name, "none"]));
  return browser.send(route.method, pathOf(route, params), route.body === undefined ? undefined : "[1]");
}

/** Without input that could be rejected: they would run, or never end. */
const WITHOUT_INPUT =
  /^(session\.end|sessions\.end|people\.me\.|changes\.stream|catch\.stream|keys\.platform\.rotate|admin\.|witness\.|relay\.secret|monitors\.ping_key|audit\.export|meter\.alert\.project)/;

test("every role may call what the table says, and nothing else", async () => {
  const known = routes().filter(({ operation }) => !WITHOUT_INPUT.test(operation.name));
  expect(known.length).toBeGreaterThan(100);
  for (const route of known) {
    const { name, role: least } = route.operation;
    for (const role of ROLES) {
      const { status, body, text } = await knock(people[role], route);
      const isAllowed = least !== null && isAtLeast(role, least);
      expect([name, role, body["code"] !== "forbidden" || status !== 403], text).toEqual([
        name,
        role,
        isAllowed,
      ]);
    }
  }
}, 60_000);

test("GET /v1/people/roles lists the table for everyone", async () => {
  const { body } = await people.viewer.get("/v1/people/roles");
  const { roles, operations } = body as {
    roles: { role: Role }[];
    operations: { operation: string; role: Role }[];
  };
  expect(roles.map(({ role }) => role)).toEqual([...ROLES]);
  for (const { operation } of routes()) {
    const listed = operations.find((candidate) => candidate.operation === operation.name);
    expect([operation.name, listed?.role]).toEqual([operation.name, operation.role as Role]);
  }
});

test("viewers and responders see no URL that is a secret; editors do", async () => {
  const { bucket_id } = await makeResource("catch", account);
  const heartbeat = await account.post("/v1/pulse", { type: "heartbeat", slug: "nightly" });
  const url = "https://hooks.example.com/services/T0/B0/token-in-path";
  const channel = await account.post("/v1/pulse/channels", {
    name: "Chat",
    kind: "webhook",
    config: { url },
  });
  const delivery = { target_url: url, method: "POST", delay: "1d", payload: {}, headers: {} };
  const sent = await account.post("/v1/relay", delivery);
  const paths = [
    `/v1/catch/buckets/${bucket_id}`,
    "/v1/catch/buckets",
    `/v1/pulse/${heartbeat.body["id"]}`,
    "/v1/pulse",
    `/v1/pulse/channels/${channel.body["id"]}`,
    "/v1/pulse/channels",
    `/v1/relay/${sent.body["relay_id"]}`,
    "/v1/relay",
    "/v1/audit?limit=100",
    "/v1/audit/export",
    "/v1/audit/export?format=csv",
    "/v1/overview",
  ];
  const pings = String(heartbeat.body["ping_url"]).split("/ping/")[1] ?? "";
  for (const path of paths) {
    for (const role of ["viewer", "responder"] as const) {
      const { status, text } = await people[role].get(path);
      expect([path, status], text).toEqual([path, 200]);
      for (const secret of ["token-in-path", "/v1/in/", pings, "secret_digest"]) {
        expect([path, role, secret, text.includes(secret)]).toEqual([path, role, secret, false]);
      }
    }
  }
  expect((await people.editor.get(`/v1/relay/${sent.body["relay_id"]}`)).body["target_url"]).toBe(url);
  expect((await people.editor.get(`/v1/catch/buckets/${bucket_id}`)).body["ingest_url"]).toContain("/v1/in/");
});

test("people of another account find nothing", async () => {
  const other = await server.account();
  const stranger = await join(server, other, { role: "owner" });
  const { person_id } = await makeResource("people", account);
  expectError(await stranger.get(`/v1/people/${person_id}`), "not_found");
  expectError(await stranger.patch(`/v1/people/${person_id}`, { role: "owner" }), "not_found");
  expectError(await stranger.delete(`/v1/people/${person_id}`), "not_found");
  expectError(await stranger.post(`/v1/people/${person_id}/invitation`), "not_found");
  const ids = ((await stranger.get("/v1/people")).body["people"] as { person_id: string }[]).map(
    (one) => one.person_id,
  );
  expect(ids).toEqual([stranger.personId]);
});
