import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { DEFAULT_EVENTS } from "../../../src/areas/alerts/schema.ts";
import { MONITOR_CHANNELS_MAX } from "../../../src/areas/monitors/schema.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const CHANNELS = "/v1/pulse/channels";
const SLACK = { name: "Chat", kind: "slack", config: { url: "https://example.com/hooks/x" } };

let server: TestServer;
let owner: Client;
beforeEach(async () => {
  server = await startTestServer({
    manualClock: true,
    environment: { NINEFOLD_SMTP_URL: "smtp://127.0.0.1:9", NINEFOLD_MAIL_FROM: "a@ninefold.example" },
  });
  owner = await server.account({ tier: "unlimited" });
});
afterEach(() => server.stop());

describe("a channel", () => {
  test("has settings, which a change replaces one by one", async () => {
    const { status, body } = await owner.post(CHANNELS, SLACK);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      name: "Chat",
      kind: "slack",
      config: { url: "https://example.com/[secret]" },
      default: true,
      events: DEFAULT_EVENTS,
    });
    const path = `${CHANNELS}/${body["id"]}`;
    await server.clock.advance(1_000);
    const change = { name: "Team", default: false, events: ["monitor.down"] };
    const changed = await owner.patch(path, change);
    expect(changed.body).toEqual({ ...body, ...change, updated_at: changed.body["updated_at"] });
    expect(changed.body["updated_at"]).not.toBe(body["updated_at"]);
    const moved = await owner.patch(path, { config: { url: "https://other.example/x" } });
    expect(moved.body["config"]).toEqual({ url: "https://other.example/[secret]" });
    expect((await owner.delete(path)).body).toEqual({ deleted: true });
    expectError(await owner.post(`${path}/test`), "not_found");
  });

  test("requires exactly the configuration of its kind", async () => {
    const url = "https://example.com/x";
    const right = [
      ...["webhook", "slack", "discord", "apprise", "ntfy"].map((kind) => ({ kind, config: { url } })),
      { kind: "telegram", config: { token: "12:ab_c-D", chat_id: "-1001" } },
      { kind: "telegram", config: { token: "12:ab", chat_id: "@shop", url } },
      { kind: "ntfy", config: { url, token: "t".repeat(256) } },
      { kind: "gotify", config: { url, token: "A" } },
      { kind: "email", config: { to: ["a@example.com", "b@example.com", "c@d.e", "f@g.h", "i@j.k"] } },
    ];
    for (const terms of right) {
      const { status, text } = await owner.post(CHANNELS, { name: "x", ...terms });
      expect([terms, status, text]).toEqual([terms, 201, text]);
    }
    const wrong: [string, object, string][] = [
      ...["webhook", "slack", "discord", "apprise", "ntfy", "gotify"].map(
        (kind): [string, object, string] => [kind, {}, "config.url"],
      ),
      ["slack", { url, token: "x" }, "config.token"],
      ["slack", { url: "ftp://example.com" }, "config.url"],
      ["slack", { url: "http://example.com" }, "config.url"],
      ["slack", { url: "https://127.0.0.1/" }, "config.url"],
      ["slack", { url: `https://example.com/${"x".repeat(2_048)}` }, "config.url"],
      ["telegram", { token: "12:ab" }, "config.chat_id"],
      ["telegram", { chat_id: "1" }, "config.token"],
      ["telegram", { token: "12:ab/../x", chat_id: "1" }, "config.token"],
      ["telegram", { token: "12:ab", chat_id: "shop" }, "config.chat_id"],
      ["telegram", { token: "12:ab", chat_id: `@${"x".repeat(64)}` }, "config.chat_id"],
      ["gotify", { url }, "config.token"],
      ["gotify", { url, token: "a b" }, "config.token"],
      ["gotify", { url, token: "a\r\nX: y" }, "config.token"],
      ["ntfy", { url, token: "t".repeat(257) }, "config.token"],
      ["email", {}, "config.to"],
      ["email", { to: [] }, "config.to"],
      ["email", { to: ["nobody"] }, "config.to"],
      ["email", { to: ["1", "2", "3", "4", "5", "6"].map((name) => `${name}@example.com`) }, "config.to"],
      ["pager", { url }, "kind"],
    ];
    for (const [kind, config, field] of wrong) {
      const { fields } = expectError(
        await owner.post(CHANNELS, { name: "x", kind, config }),
        "validation_error",
      );
      expect([kind, config, Object.keys(fields ?? {})]).toEqual([kind, config, [field]]);
    }
    for (const more of [{ events: [] }, { events: ["down"] }, { name: "a\nb" }, { default: 1 }])
      expectError(await owner.post(CHANNELS, { ...SLACK, ...more }), "validation_error");
  });

  test("rejects a masked secret, which would replace the stored one", async () => {
    const url = "https://example.com/x";
    const shown: [string, object, string][] = [
      ["slack", { url }, "config.url"],
      ["ntfy", { url }, "config.url"],
      ["gotify", { url, token: "A" }, "config.token"],
      ["telegram", { token: "12:ab", chat_id: "1" }, "config.token"],
    ];
    for (const [kind, config, field] of shown) {
      const { body } = await owner.post(CHANNELS, { name: "x", kind, config });
      const path = `${CHANNELS}/${body["id"]}`;
      const { fields } = expectError(await owner.patch(path, { config: body["config"] }), "validation_error");
      expect([kind, fields]).toEqual([kind, { [field]: ["must contain the secret itself, not [secret]"] }]);
      expectError(
        await owner.post(CHANNELS, { name: "x", kind, config: body["config"] }),
        "validation_error",
      );
      expect((await owner.get(path)).body).toEqual(body);
      expect((await owner.patch(path, { config })).status).toBe(200);
    }
    const webhook = await owner.post(CHANNELS, { name: "x", kind: "webhook", config: { url } });
    const path = `${CHANNELS}/${webhook.body["id"]}`;
    expect((await owner.patch(path, { config: webhook.body["config"] })).status).toBe(200);
  });

  test("requires the tier starter, and pro for e-mails, which go only to the account's address", async () => {
    const free = await server.account({ tier: "free" });
    expect(expectError(await free.post(CHANNELS, SLACK), "forbidden").error.message).toContain("starter");
    const starter = await server.account({ tier: "starter" });
    expect((await starter.post(CHANNELS, SLACK)).status).toBe(201);
    const email = (to: string) => ({ name: "x", kind: "email", config: { to: [to] } });
    expect(expectError(await starter.post(CHANNELS, email("a@b.c")), "forbidden").error.message).toContain(
      "pro",
    );
    const pro = await server.account({ tier: "pro", email: "ada@example.com" });
    expect((await pro.post(CHANNELS, email("Ada@example.com"))).status).toBe(201);
    expectError(await pro.post(CHANNELS, email("bob@example.com")), "validation_error");
  });

  test("is one of at most ten of a monitor, in its own project", async () => {
    const ids: string[] = [];
    while (ids.length <= MONITOR_CHANNELS_MAX)
      ids.push(String((await owner.post(CHANNELS, SLACK)).body["id"]));
    const monitor = { url: "https://example.com/", interval: 300_000 };
    const named = ids.slice(0, MONITOR_CHANNELS_MAX);
    const created = await owner.post("/v1/pulse", { ...monitor, channels: named });
    expect(created.body["channels"]).toEqual(named);
    expectError(await owner.post("/v1/pulse", { ...monitor, channels: ids }), "validation_error");
    const stranger = await server.account();
    const theirs = String((await stranger.post(CHANNELS, SLACK)).body["id"]);
    for (const channels of [[theirs], ["chn_0"], [1], "all", [ids[0], ids[0]]])
      expectError(await owner.put(`/v1/pulse/${created.body["id"]}`, { channels }), "validation_error");
  });
});

test("e-mail channels require a mail server; a project's channels are deleted with it", async () => {
  await server.stop();
  server = await startTestServer({ manualClock: true });
  const other = await server.account({ tier: "unlimited" });
  const email = { name: "x", kind: "email", config: { to: ["a@example.com"] } };
  expectError(await other.post(CHANNELS, email), "validation_error");
  const { body: project } = await other.post("/v1/projects", { name: "Short-lived" });
  const body = { prefix: "sm", name: "k", scopes: ["*"] };
  const { body: key } = await other.post(`/v1/projects/${project["id"]}/keys`, body);
  const inside = server.client(String(key["secret"]));
  const id = (await inside.post(CHANNELS, SLACK)).body["id"];
  expectError(await other.get(`${CHANNELS}/${id}`), "not_found");
  const monitor = { url: "https://example.com/", interval: 300_000, channels: [id] };
  expect((await inside.post("/v1/pulse", monitor)).status).toBe(201);
  await other.delete(`/v1/projects/${project["id"]}`);
  await server.clock.advance(3_600_000);
  for (const table of ["channels", "monitor_channels"])
    expect(server.server.kernel.db.one(`SELECT count(*) AS n FROM ${table}`)()).toEqual({ n: 0 });
});
